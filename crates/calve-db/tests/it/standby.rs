//! Servers that wait to be handed over.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use calve_testkit::{FileSystem, UnprivilegedUser, git_command, is_root, matrix, skip};
use fs_err as fs;
use rustix::process::Signal;
use serde_json::Value;

use crate::marks::ends;
use crate::world::{Engine, Mariadb, Postgres, User, World, eventually, kill, names, ordinary, signal, until, users};

fn pool(world: &World, size: usize) -> Value {
    world.db(["pool", "t", "--json", "--size", &size.to_string()]).succeeds().json()["pools"][0].clone()
}

fn waiting(world: &World) -> u64 {
    world.db(["pool", "--json"]).succeeds().json()["pools"][0]["waiting"].as_u64().unwrap_or_default()
}

#[track_caller]
fn eventually_wait(world: &World, wanted: u64) {
    eventually(|| match waiting(world) {
        found if found == wanted => Ok(()),
        found => Err(format!("{found} wait")),
    });
}

/// Returns the records of the servers that wait.
fn records(world: &World) -> Vec<Value> {
    let servers = world.home().join("db/servers");
    let places = names(&servers).into_iter().map(|name| servers.join(name).join("server.json"));
    let records = places.filter_map(|path| serde_json::from_slice::<Value>(&fs::read(path).ok()?).ok());
    records.filter(|record| record["waits"] == true).collect()
}

#[track_caller]
fn end(world: &World) {
    pool(world, 0);
    world.stop_all();
    // A process that was killed while it wrote the pool's record.
    let half_written = world.home().join("db/pools/.new-0123456789abcdef");
    fs::write(&half_written, "{").unwrap();
    world.give(&half_written);
    world.db(["gc", "-q"]).succeeds();
    assert_eq!(names(&world.home().join("db/pools")), [".lock-t"]);
}

#[test]
fn a_standby_is_handed_over() {
    let of_root = matrix(Engine::families()).map(|engine| (User::This, engine));
    for (user, engine) in of_root.chain([(ordinary(), Postgres)]) {
        let Some(world) = World::of(user, engine) else { return };
        let set = pool(&world, 2);
        assert_eq!((&set["size"], &set["waiting"], &set["limit"]), (&2.into(), &2.into(), &Value::Null));
        // They have no owner yet.
        assert_eq!(world.sockets(), Vec::<std::path::PathBuf>::new());
        let [first, second] = &records(&world)[..] else { panic!("two wait") };
        world.db(["url", first["name"].as_str().unwrap()]).fails(1, &["no server"]);

        let named = world.start("a");
        assert_eq!((&named["standby"], &named["name"]), (&true.into(), &"a".into()));
        assert!([first, second].iter().any(|record| record["pid"] == named["pid"]), "{named}");
        assert_eq!(world.rows(engine, &named), "1000");
        world.query(engine, &named, engine.shrink());
        world.db(["start", "t", "--name", "a"]).fails(1, &["the server `a` already exists"]);
        eventually_wait(&world, 2);

        let unnamed = world.db(["start", "t", "--json", "--ttl", "1h"]).succeeds().json();
        assert_eq!(unnamed["standby"], true);
        let lives = unnamed["expires_unix_s"].as_u64().unwrap() - unnamed["started_unix_s"].as_u64().unwrap();
        assert_eq!(lives, 3600);
        assert_eq!((world.rows(engine, &unnamed).as_str(), world.rows(engine, &named).as_str()), ("1000", "10"));
        eventually_wait(&world, 2);

        let ran = world.db(["run", "t", "--"]).args(engine.client(engine.count())).succeeds();
        assert_eq!(ran.stdout().trim(), "1000");
        // What a standby cannot be.
        let port = world.db(["start", "t", "--json", "--tcp"]).succeeds().json();
        assert_ne!(port["standby"], true);

        world.db(["logs", "a"]).succeeds();
        world.db(["reset", "a", "-q"]).succeeds();
        assert_eq!(world.rows(engine, &named), "1000");
        world.stop("a");
        assert_eq!(world.start("a")["name"], "a");
        end(&world);
    }
}

#[test]
fn everybody_gets_another_one() {
    let Some(world) = World::having(Postgres) else { return };
    pool(&world, 3);
    let starts: Vec<_> =
        (0..8).map(|number| world.db(["start", "t", "--json", "--name", &format!("s{number}")]).spawn()).collect();
    let servers: Vec<Value> = starts
        .into_iter()
        .map(|start| serde_json::from_slice(&start.wait_with_output().unwrap().stdout).unwrap())
        .collect();
    let mut processes: Vec<u64> = servers.iter().map(|server| server["pid"].as_u64().unwrap()).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 8);
    assert!(servers.iter().filter(|server| server["standby"] == true).count() >= 3);
    for (number, server) in servers.iter().enumerate() {
        assert_eq!((&server["name"], world.rows(Postgres, server)), (&format!("s{number}").into(), "1000".into()));
    }
    eventually_wait(&world, 3);
    end(&world);
}

#[test]
fn a_claim_that_dies_half_way_leaves_nothing() {
    let Some(world) = World::having(Postgres) else { return };
    pool(&world, 1);
    let control = records(&world)[0]["control"].as_str().unwrap().to_owned();
    let mut claim = UnixStream::connect(&control).unwrap();
    claim.write_all(b"{\"Claim\":{\"name\":\"a\",\"ttl\":null,\"owner\":\"Nobody\"}}").unwrap();
    // The client has gone before the answer to the rest.
    claim.shutdown(std::net::Shutdown::Read).unwrap();
    claim.write_all(b"\n").unwrap();
    drop(claim);
    world.nothing_runs();
    assert_ne!(world.start("a")["standby"], true);
    end(&world);
}

#[test]
fn whoever_claims_a_standby_can_use_it_at_once() {
    // Where a reset takes some time.
    let Some(world) = World::at(FileSystem::Xfs, User::This, Postgres) else { return };
    pool(&world, 1);
    let record = &records(&world)[0];
    let supervisor = record["supervisor"].as_u64().unwrap();
    let ask = |request: &str| {
        let mut asking = UnixStream::connect(record["control"].as_str().unwrap()).unwrap();
        asking.write_all(request.as_bytes()).unwrap();
        BufReader::new(asking)
    };
    // It finds both at the same time.
    signal(supervisor, Signal::STOP);
    let mut claim = ask("{\"Claim\":{\"name\":\"a\",\"ttl\":null,\"owner\":\"Starter\"}}\n");
    let mut reset = ask("{\"Reset\":null}\n");
    signal(supervisor, Signal::CONT);
    for answers in [&mut claim, &mut reset] {
        let answer = answers.lines().map(Result::unwrap).next();
        assert!(answer.as_ref().is_some_and(|answer| answer.starts_with("{\"Ready\"")), "{answer:#?}");
    }
    drop(claim);
    world.nothing_runs();
    end(&world);
}

#[test]
fn a_standby_that_died_is_skipped() {
    for engine in [Postgres, Mariadb] {
        let Some(world) = World::having(engine) else { return };
        pool(&world, 2);
        let records = records(&world);
        // One lost its server, and one its supervisor.
        kill(records[0]["pid"].as_u64().unwrap());
        kill(records[1]["supervisor"].as_u64().unwrap());
        // A server with many threads takes a while to die, and answers until then.
        let killed = format!("/proc/{}", records[0]["pid"]);
        eventually(|| if Path::new(&killed).exists() { Err(format!("{killed} is there")) } else { Ok(()) });
        let server = world.start("a");
        // It may be one that has taken their place by now.
        assert!(records.iter().all(|record| record["pid"] != server["pid"]), "{server:#} {records:#?}");
        assert_eq!(world.rows(engine, &server), "1000");
        eventually_wait(&world, 2);
        // The ends of servers that were never handed over are not reported.
        assert_eq!(world.db(["list", "--json"]).succeeds().json()["ended"], serde_json::json!([]));
        end(&world);
    }
}

#[test]
fn a_template_that_is_rebuilt_gets_new_standbys() {
    let Some(world) = World::having(Postgres) else { return };
    pool(&world, 2);
    let fill = Postgres.fill().replace("1000", "5");
    let client: Vec<String> =
        Postgres.client(&fill).iter().map(|word| format!("'{}'", word.to_string_lossy())).collect();
    let script = format!("touch began; {}; {}", until("go"), client.join(" "));
    let words = ["template", "create", "t", "--rebuild", "-q", "--engine", "postgres", "--", "sh", "-ec"];
    let build = world.db(words).arg(&script).spawn();
    eventually(|| world.path().join("began").exists().then_some(()).ok_or_else(|| "not begun".into()));
    // As long as it is built, there is the old one.
    let old = world.start("old");
    assert_eq!((&old["standby"], world.rows(Postgres, &old)), (&true.into(), "1000".into()));
    fs::write(world.path().join("go"), "").unwrap();
    let output = build.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let new = world.start("new");
    assert_eq!(world.rows(Postgres, &new), "5");
    eventually_wait(&world, 2);
    let again = world.start("again");
    assert_eq!((&again["standby"], world.rows(Postgres, &again)), (&true.into(), "5".into()));
    // A template that is gone has no pool.
    world.db(["template", "remove", "t", "-q"]).succeeds();
    assert_eq!(waiting(&world), 0);
    world.stop_all();
}

#[test]
fn a_pool_is_as_large_as_its_disk_permits() {
    let Some(world) = World::at(FileSystem::Ext4, User::This, Postgres) else { return };
    // Room for a few servers, each of which writes some of its own; a tenth stays free.
    let room = rustix::fs::statvfs(world.path()).unwrap();
    let left = room.f_bavail - room.f_blocks / 10;
    let hog = fs::File::create(world.path().join("hog")).unwrap();
    let taken = left * room.f_frsize - (12 << 20);
    rustix::fs::fallocate(&hog, rustix::fs::FallocateFlags::empty(), 0, taken).unwrap();
    let set = pool(&world, 40);
    assert_eq!(set["limit"], "disk", "{set}");
    let waiting = set["waiting"].as_u64().unwrap();
    assert!((1..40).contains(&waiting), "{set}");
    let server = world.start("a");
    assert_eq!((&server["standby"], world.rows(Postgres, &server)), (&true.into(), "1000".into()));
    end(&world);
}

#[test]
fn a_pool_that_is_interrupted_is_as_it_was_unless_another_command_has_changed_it_meanwhile() {
    let Some(world) = World::having(Postgres) else { return };
    let size = || world.db(["pool", "--json"]).succeeds().json()["pools"][0]["size"].as_u64();
    for before in [0, 1] {
        world.db(["pool", "t", "-q", "--size", &before.to_string()]).succeeds();
        let mut child = world.db(["pool", "t", "--size", "64"]).spawn();
        eventually(|| if waiting(&world) > before { Ok(()) } else { Err("none waits".into()) });
        signal(child.id().into(), Signal::INT);
        assert_eq!(ends(&mut child), Some(130));
        assert_eq!(size().unwrap_or(0), before);
    }
    let is = |wanted| move || if size() == Some(wanted) { Ok(()) } else { Err(format!("{:?}", size())) };
    let mut first = world.db(["pool", "t", "--size", "64"]).spawn();
    eventually(is(64));
    let mut second = world.db(["pool", "t", "--size", "63"]).spawn();
    eventually(is(63));
    signal(first.id().into(), Signal::INT);
    assert_eq!(ends(&mut first), Some(130));
    assert_eq!(size(), Some(63));
    pool(&world, 0);
    assert_eq!(ends(&mut second), Some(0));
    end(&world);
}

#[test]
fn a_pool_ends_with_its_session() {
    let Some(world) = World::having(Postgres) else { return };
    let script = format!("\"$@\"; touch made; {}", until("go"));
    let words = ["pool", "t", "--json", "--size", "1", "--idle", "none"];
    let session = world.db_by(&["setsid", "--wait", "sh", "-c", &script, "sh"], words).spawn();
    eventually(|| world.path().join("made").exists().then_some(()).ok_or_else(|| "not made".into()));
    assert_eq!(waiting(&world), 1);
    fs::write(world.path().join("go"), "").unwrap();
    let made: Value = serde_json::from_slice(&session.wait_with_output().unwrap().stdout).unwrap();
    assert!(made["pools"][0]["session_pid"].is_u64(), "{made}");
    world.nothing_runs();
    world.nothing_left();
    // Nor does one come back.
    let server = world.start("a");
    assert_ne!(server["standby"], true);
    eventually(|| match names(&world.home().join("db/pools")) {
        found if found == [".lock-t"] => Ok(()),
        found => Err(format!("{found:?}")),
    });
    world.stop_last("a");
}

/// As where a container is entered from outside.
#[test]
fn a_pool_can_be_made_in_a_session_that_cannot_be_seen() {
    let Some(world) = World::having(Postgres) else { return };
    let (namespace, user) = (["unshare", "--pid", "--fork", "--mount-proc"], ["--user", "--map-current-user"]);
    // The first process of a namespace takes everything along that runs in it.
    let script = ["sh", "-c", "\"$@\" && ps -o sid= -p $$ >&2", "sh"];
    let by = [&namespace[..], if is_root() { &[] } else { &user[..] }, &script[..]].concat();
    let made = world.db_by(&by, ["pool", "t", "--json", "--size", "1"]).succeeds();
    assert_eq!(made.stderr().split_whitespace().last(), Some("0"));
    let pool = &made.json()["pools"][0];
    assert_eq!((&pool["waiting"], &pool["session_pid"]), (&1.into(), &Value::Null), "{pool}");
    world.nothing_runs();
    end(&world);
}

#[test]
fn a_pool_that_nobody_uses_is_emptied_until_somebody_does() {
    let Some(world) = World::having(Postgres) else { return };
    world.db(["pool", "t", "--size", "2", "--idle", "1s", "-q"]).succeeds();
    eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("they wait".into()) });
    world.db(["pool", "t", "--size", "2", "--idle", "1h", "-q"]).succeeds();
    eventually_wait(&world, 2);
    // Fewer are wanted.
    assert_eq!(pool(&world, 1)["waiting"], 1);
    end(&world);
}

#[test]
fn a_pool_takes_as_much_memory_as_there_is() {
    struct Group(PathBuf);
    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }
    // Version 1, or 2.
    let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
    let made = versions.into_iter().find_map(|(root, limit)| {
        let group = Path::new(root).join(format!("calve-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let group = Group(group);
        group.0.join(limit).exists().then_some((group, limit))
    });
    let Some((group, limit)) = made.filter(|_| is_root()) else {
        return skip("needs root, and control groups for memory");
    };
    let Some(world) = World::having(Postgres) else { return };
    fs::write(group.0.join(limit), "160M").unwrap();
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.0.display());
    let words = ["pool", "t", "--json", "--size", "8"];
    let pool = world.db_by(&["sh", "-c", &enter, "sh"], words).succeeds().json()["pools"][0].clone();
    assert_eq!(pool["limit"], "memory", "{pool}");
    assert!((1..8).contains(&pool["waiting"].as_u64().unwrap()), "{pool}");
    // Those that there are can be had.
    assert_eq!(world.start("a")["standby"], true);
    end(&world);
}

#[test]
fn pools_that_make_no_sense() {
    let Some(world) = World::new() else { return };
    world.db(["pool", "t", "--size", "1"]).fails(1, &["no template `t`"]);
    world.db(["pool", "../t", "--size", "1"]).fails(2, &["is not a valid name"]);
    world.db(["pool", "t"]).ends().code(2);
    world.db(["pool", "--size", "1"]).ends().code(2);
    world.template(Postgres);
    world.db(["pool", "t", "--size", "65"]).fails(2, &["at most 64"]);
    world.db(["pool", "t", "--size", "0"]).succeeds();
    assert_eq!(world.db(["pool"]).succeeds().stdout(), "");
    // A name that is a server's cannot be a standby's, and an owner must be there.
    pool(&world, 1);
    world.db(["start", "t", "--owner-pid", "4194304"]).fails(1, &["no process", "hint: name a process that runs\n"]);
    assert_eq!(waiting(&world), 1);
    end(&world);
}

#[test]
fn a_command_that_is_killed_takes_its_standby_along() {
    for user in [User::This, User::Unprivileged] {
        let Some(world) = World::at(FileSystem::Xfs, user, Postgres) else { return };
        pool(&world, 1);
        let mut run = world.db(["run", "t", "--", "sleep", "1000"]).spawn();
        eventually(|| if world.sockets().len() == 1 { Ok(()) } else { Err("no server".into()) });
        pool(&world, 0);
        run.kill().unwrap();
        run.wait().unwrap();
        world.nothing_runs();
        world.nothing_left();
    }
}

#[test]
fn a_project_has_a_pool() {
    for user in users() {
        let Some(world) = World::of(user, Postgres) else { return };
        let project = world.path().join("project");
        fs::create_dir_all(project.join(".git")).unwrap();
        fs::create_dir(project.join("below")).unwrap();
        let configure = |text: &str| {
            fs::write(project.join(".calve.toml"), text).unwrap();
            world.give(&project);
        };
        configure("[db.t]\nstandby = 2\n[db.other]\nstandby = 7\n");
        let there = |words: &[&str]| world.db(words).within(&project.join("below"));
        // A server that no standby can be, and one elsewhere, need none.
        world.db(["run", "t", "--", "true"]).succeeds();
        there(&["run", "t", "--tcp", "--", "true"]).succeeds();
        assert_eq!(world.db(["pool"]).succeeds().stdout(), "");
        // The first start takes none yet, and does not wait for any.
        there(&["run", "t", "--", "true"]).succeeds();
        eventually_wait(&world, 2);
        assert_eq!(there(&["start", "t", "--json", "--name", "a"]).succeeds().json()["standby"], true);
        eventually_wait(&world, 2);
        // What the file says holds, also for a pool that there is.
        configure("[db.t]\nstandby = 1\n");
        there(&["run", "t", "-q", "--", "true"]).succeeds();
        eventually_wait(&world, 1);
        assert_eq!(world.db(["pool", "--json"]).succeeds().json()["pools"][0]["size"], 1);
        // For this machine there is to be none.
        pool(&world, 0);
        fs::write(project.join(".calve.local.toml"), "db.t.standby = 0").unwrap();
        world.give(&project);
        there(&["run", "t", "--", "true"]).succeeds();
        assert_eq!(world.db(["pool"]).succeeds().stdout(), "");

        configure("[db.t]\nstandbys = 1\n");
        there(&["start", "t"]).fails(1, &[".calve.toml`, line 2, column 1", "did you mean `standby`?"]);
        fs::remove_file(project.join(".calve.local.toml")).unwrap();
        configure("[db.t]\nstandby = 65\n");
        there(&["start", "t"]).fails(1, &[".calve.toml`, line 2, column 11", "`standby` is at most 64"]);
        end(&world);
    }
}

/// A user who can write to a directory above decides nothing.
#[test]
fn the_configuration_of_somebody_else_makes_no_pool() {
    if !is_root() {
        return skip("needs root, for files of another user");
    }
    let Some(world) = World::having(Postgres) else { return };
    fs::create_dir(world.path().join(".git")).unwrap();
    fs::write(world.path().join(".calve.toml"), "[db.t]\nstandby = 1\n").unwrap();
    std::os::unix::fs::chown(world.path(), Some(UnprivilegedUser::UID), None).unwrap();
    world.db(["run", "t", "--", "true"]).succeeds();
    assert_eq!(world.db(["pool"]).succeeds().stdout(), "");
    std::os::unix::fs::chown(world.path(), Some(0), None).unwrap();
    world.db(["run", "t", "--", "true"]).succeeds();
    eventually_wait(&world, 1);
    end(&world);
}

/// A pull request's file decides as little, wherever git has checked it out.
#[test]
fn the_configuration_of_a_pull_request_makes_no_pool() {
    let Some(world) = World::having(Postgres) else { return };
    let project = world.path().join("project");
    fs::create_dir(&project).unwrap();
    let git = |line: &str| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
        let output = git_command(&project).args(identity).args(line.split(' ')).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git("init -q -b main");
    git("commit -q --allow-empty -m one");
    git("switch -q -c theirs");
    fs::write(project.join(".calve.toml"), "[db.t]\nstandby = 3\n").unwrap();
    git("add .calve.toml");
    git("commit -q -m theirs");
    git("update-ref refs/pull/7/head theirs");
    git("switch -q main");
    git("branch -q -D theirs");
    git("worktree add -q --detach ../request refs/pull/7/head");
    // A branch with a name of one's own changes nothing. Without the log, the commit was not made here.
    git("worktree add -q -b mine ../mine refs/pull/7/head");
    fs::remove_file(project.join(".git/logs/HEAD")).unwrap();
    for name in ["request", "mine"] {
        world.db(["run", "t", "--", "true"]).within(&world.path().join(name)).succeeds();
        assert_eq!(world.db(["pool"]).succeeds().stdout(), "", "{name}");
    }
    // The main worktree's decides.
    fs::write(project.join(".calve.toml"), "[db.t]\nstandby = 1\n").unwrap();
    world.db(["run", "t", "--", "true"]).within(&world.path().join("request")).succeeds();
    eventually_wait(&world, 1);
    end(&world);
}
