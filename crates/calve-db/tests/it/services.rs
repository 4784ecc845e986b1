//! Servers on data that outlives them, in worktrees of git: whatever is killed, no committed row is lost, and no two servers use one
//! data directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, SplitMix64, few_rounds, is_root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::full_disk::fill_all;
use crate::marks::ends;
use crate::world::{
    Engine, MUCH, Mariadb, Postgres, Redis, Run, User, World, eventually, fill, kill, names, ordinary, signal,
};

/// A repository with a service of the template `t`.
pub(crate) struct Project {
    pub(crate) world: World,
    pub(crate) path: PathBuf,
}

impl Project {
    pub(crate) fn new(world: World, engine: Engine) -> Self {
        world.template(engine);
        let path = world.path().join("proj");
        fs_err::create_dir(&path).unwrap();
        fs_err::write(path.join(".calve.toml"), "[services.t]\n").unwrap();
        world.give(&path);
        let project = Self { world, path };
        let script =
            "git init -q -b main && git add . && git -c user.name=A -c user.email=a@example.org commit -q -m one";
        let output = project.world.inside(&["sh", "-ec", script]).current_dir(&project.path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        project
    }

    fn of(user: User, engine: Engine) -> Option<Self> {
        Some(Self::new(World::with(user, None)?, engine))
    }

    fn at(file_system: FileSystem, user: User, engine: Engine) -> Option<Self> {
        Some(Self::new(World::on(file_system, user)?, engine))
    }

    fn down(&self) -> Run {
        self.world.calve("down").within(&self.path)
    }

    fn up(&self) -> Value {
        self.world.calve("up").arg("-q").within(&self.path).succeeds();
        self.server().unwrap()
    }

    fn server(&self) -> Option<Value> {
        self.world.db(["list", "--json"]).succeeds().json()["servers"].get(0).cloned()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.down().ends();
    }
}

/// Returns what takes a while, and changes no number of rows.
fn unconfirmed(engine: Engine) -> &'static str {
    if engine.is_sql() { "BEGIN; UPDATE t SET a = a + 1" } else { "for i = 1, 1000000 do redis.call('INCR', 'u') end" }
}

/// Until it has ended, and its starter has been told.
fn until_gone(pid: u64) {
    while fs_err::exists(format!("/proc/{pid}")).unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// By root, by others in a user namespace, and without namespaces, where processes of a server outlive the first one.
fn worlds() -> Option<Vec<World>> {
    let mut worlds = vec![World::with(ordinary(), None)?, World::with(ordinary(), None)?.without_namespaces()];
    if is_root() {
        worlds.push(World::with(User::This, None)?);
    }
    Some(worlds)
}

#[test]
fn killed_with_its_supervisor_or_alone_no_committed_row_is_lost() {
    let mut random = SplitMix64::new(7);
    for engine in Engine::kinds() {
        let Some(mut worlds) = worlds() else { return };
        // How a process is killed is the same for every engine, and what it keeps is not.
        worlds.truncate(if engine == Postgres && !few_rounds() { worlds.len() } else { 1 });
        for world in worlds {
            let project = Project::new(world, engine);
            let world = &project.world;
            let mut rows = 1000;
            for round in 0..2 {
                let server = project.up();
                assert_eq!(world.rows(engine, &server), rows.to_string(), "{engine:?} round {round}");
                world.query(engine, &server, engine.add());
                rows += 1;
                // Something that is still being written, and never confirmed.
                let mut client = world.client(engine, &server, unconfirmed(engine));
                let mut client = client.stderr(std::process::Stdio::null()).spawn().unwrap();
                std::thread::sleep(Duration::from_micros(random.below(20_000)));
                if round % 2 == 0 {
                    world.supervisors().into_iter().for_each(kill);
                } else {
                    let pid = server["pid"].as_u64().unwrap();
                    kill(pid);
                    until_gone(pid);
                }
                let _ = client.wait();
                // At once, while processes of the old server may still end.
            }
            let server = project.up();
            assert_eq!(world.rows(engine, &server), rows.to_string());
            project.down().succeeds();
            assert_eq!(project.server(), None);
            world.nothing_runs();
        }
    }
}

/// As a server leaves them that is killed before `calve up` ends. It would begin empty with them.
#[test]
fn append_only_files_that_were_never_complete_are_not_loaded() {
    let Some(project) = Project::of(ordinary(), Redis) else { return };
    let (up, rows) = (|| project.up(), |server: &Value| project.world.rows(Redis, server));
    let down = || project.down().succeeds();
    let data = PathBuf::from(up()["data_directory"].as_str().unwrap());
    down();
    fs_err::remove_file(data.join("appendonlydir/appendonly.aof.manifest")).unwrap();
    let server = up();
    assert_eq!(rows(&server), "1000");
    project.world.query(Redis, &server, Redis.add());
    down();
    assert_eq!(rows(&up()), "1001");
}

/// The files from before would be loaded, without later writes.
#[test]
fn data_of_a_client_that_turned_append_only_files_off_is_there_after_an_orderly_end() {
    let Some(project) = Project::of(ordinary(), Redis) else { return };
    let world = &project.world;
    let server = project.up();
    world.set(&server, "appendonly", "no");
    world.query(Redis, &server, Redis.add());
    project.down().succeeds();
    let server = project.up();
    assert_eq!(world.rows(Redis, &server), "1001");
    // Not complete yet when it is to end: writing a key takes a third of a second, in microseconds.
    world.set(&server, "appendonly", "no");
    world.query(Redis, &server, Redis.add());
    world.set(&server, "rdb-key-save-delay", "333333");
    world.set(&server, "appendonly", "yes");
    project.down().succeeds();
    assert_eq!(world.rows(Redis, &project.up()), "1002");
}

#[test]
fn append_only_files_that_do_not_fit_on_the_disk_are_not_waited_for() {
    let Some(project) = Project::at(FileSystem::Ext4, User::This, Redis) else { return };
    let world = &project.world;
    world.db(["template", "create", "t", "-q", "--rebuild", "--engine", "redis", "--", "sh", "-ec", MUCH]).succeeds();
    // Room for a clone of the dump of 40 MB, and not for the files.
    fill(world.path(), 60 << 20);
    let started = Instant::now();
    world.calve("up").arg("-q").within(&project.path).fails(1, &["could not write its append-only files"]);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(project.server(), None);
}

/// Data that its append-only files lack is nowhere else.
#[test]
fn a_server_that_cannot_write_its_data_goes_on_until_it_is_forced_to_end() {
    let Some(project) = Project::at(FileSystem::Ext4, User::This, Redis) else { return };
    let world = &project.world;
    let server = project.up();
    world.set(&server, "appendonly", "no");
    world.fill_up(&server);
    world.query(Redis, &server, Redis.add());
    let filler = fill(world.path(), 8 << 20);
    let hint = "hint: free some space on its disk and try again; `calve down --force` ends it and loses what it could not write";
    project
        .down()
        .fails(1, &["could not write its append-only files, so it was not stopped", "No space left on device", hint]);
    // Also if a client has turned them on, and the server tries again and again.
    world.set(&server, "appendonly", "yes");
    world.db(["stop", server["name"].as_str().unwrap()]).fails(1, &["was not stopped", hint]);
    project.down().fails(1, &[hint]);
    assert_eq!(world.rows(Redis, &project.server().unwrap()), "1001");
    filler.set_len(0).unwrap();
    project.down().succeeds();
    let server = project.up();
    assert_eq!(world.rows(Redis, &server), "1001");

    world.set(&server, "appendonly", "no");
    world.query(Redis, &server, Redis.add());
    fill(world.path(), 8 << 20);
    project.down().fails(1, &[hint]);
    project.down().arg("--force").succeeds();
    assert_eq!(project.server(), None);
    world.nothing_runs();
}

/// Space would not help.
#[test]
fn a_server_with_a_clients_password_goes_on_until_it_is_forced_to_end() {
    let Some(project) = Project::of(ordinary(), Redis) else { return };
    let world = &project.world;
    let server = project.up();
    let name = server["name"].as_str().unwrap();
    world.query(Redis, &server, Redis.add());
    world.set(&server, "requirepass", "x");
    let why = [
        "the server refused a command: NOAUTH Authentication required.",
        "hint: a client changed its password or users: undo that; `calve down --force` ends a service as it is",
    ];
    project.down().fails(1, &why);
    world.db(["stop", name]).fails(1, &why);
    assert_eq!(project.server().unwrap()["pid"], server["pid"]);
    project.down().arg("--force").succeeds();
    let server = project.up();
    assert_eq!(world.rows(Redis, &server), "1001");
    project.down().succeeds();
    world.nothing_runs();
}

/// A signal does not tell it what it may lose.
#[test]
fn a_server_whose_supervisor_does_not_answer_goes_on_until_it_is_forced_to_end() {
    let Some(project) = Project::of(ordinary(), Redis) else { return };
    let world = &project.world;
    let server = project.up();
    let name = server["name"].as_str().unwrap();
    fs_err::remove_file(world.noted_sockets()[0].join("control")).unwrap();
    let why = format!(
        "the supervisor of the server `{name}` does not answer, so it was not stopped\n\
         hint: end it with `calve down --force`, which loses what it cannot write\n"
    );
    project.down().fails(1, &[&why]);
    world.db(["stop", name]).fails(1, &[&why]);
    let record = world.home().join("db/servers").join(name).join("server.json");
    let whole = fs_err::read(&record).unwrap();
    fs_err::write(&record, "{").unwrap();
    project.down().fails(1, &[&why]);
    fs_err::write(&record, whole).unwrap();
    assert_eq!(world.rows(Redis, &server), "1000");
    project.down().arg("--force").succeeds();
    world.nothing_runs();
}

/// PostgreSQL would crash and lose what is in no log, and MariaDB would wait for room.
#[test]
fn a_server_without_room_to_end_goes_on_until_it_is_forced_to_end() {
    for (engine, system) in [(Postgres, FileSystem::Ext4), (Postgres, FileSystem::Xfs), (Mariadb, FileSystem::Ext4)] {
        let Some(project) = Project::at(system, ordinary(), engine) else { return };
        let world = &project.world;
        let server = project.up();
        let kind = if engine == Postgres { "UNLOGGED" } else { "" };
        world.query(engine, &server, &format!("CREATE {kind} TABLE u (a int)"));
        world.query(engine, &server, "INSERT INTO u VALUES (1), (2)");
        let count = "SELECT count(*) FROM u";
        let filler = fill_all(world);
        for _ in 0..2 {
            project.down().fails(1, &[" has, so it was not stopped", "calve down --force"]);
            assert_eq!(world.query(engine, &project.server().unwrap(), count), "2", "{engine:?} {system:?}");
        }
        filler.set_len(0).unwrap();
        project.down().succeeds();
        assert_eq!(world.query(engine, &project.up(), count), "2", "{engine:?} {system:?}");
        let _filler = fill_all(world);
        project.down().arg("--force").succeeds();
        assert_eq!(project.server(), None);
        world.nothing_runs();
    }
}

#[test]
fn a_server_that_crashes_at_its_end_is_no_success() {
    let Some(project) = Project::of(ordinary(), Postgres) else { return };
    let server = project.up();
    // What it replaces at each checkpoint.
    let data = Path::new(server["data_directory"].as_str().unwrap());
    fs_err::create_dir(data.join("pg_logical/replorigin_checkpoint.tmp")).unwrap();
    project.down().fails(1, &["PANIC"]);
    eventually(|| project.server().map_or(Ok(()), |server| Err(format!("{server}"))));
}

#[test]
fn data_of_a_running_server_is_cloned_without_copying_where_blocks_are_shared() {
    for engine in Engine::families() {
        let Some(project) = Project::at(FileSystem::Xfs, User::This, engine) else { return };
        let world = &project.world;
        let server = project.up();
        assert_eq!(server["strategy"], "reflink", "{engine:?}");
        world.query(engine, &server, engine.add());
        if engine == Postgres {
            world.query(engine, &server, "CREATE TABLE more AS SELECT generate_series(1, 50000)");
        }
        world.calve("worktree").args(["add", "-q", "one"]).within(&project.path).succeeds();
        if engine == Postgres {
            let log = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn) < 1000000 FROM pg_control_checkpoint()";
            assert_eq!(world.query(engine, &server, log), "t", "a clone would recover all that");
            let known =
                "SELECT count(*) FROM pg_settings WHERE name = 'recovery_init_sync_method' AND setting <> 'syncfs'";
            assert_eq!(world.query(engine, &server, known), "0", "one call for all files");
        }
        let one = world.path().join("proj.one");
        world.calve("up").arg("-q").within(&one).succeeds();
        let servers = world.db(["list", "--json"]).succeeds().json();
        for server in servers["servers"].as_array().unwrap() {
            assert_eq!(server["strategy"], "reflink", "{engine:?}");
            assert_eq!(world.rows(engine, server), "1001", "{engine:?}");
        }
        world.calve("down").within(&one).succeeds();
    }
}

/// Waits until a process has such a file open: a lock that it waits for, or the socket of a supervisor, which it asks at once then.
fn has_open(process: u32, name: &str) {
    eventually(|| {
        let open = fs_err::read_dir(format!("/proc/{process}/fd")).unwrap();
        let mut links = open.filter_map(|file| fs_err::read_link(file.unwrap().path()).ok());
        if links.any(|link| link.to_string_lossy().contains(name)) { Ok(()) } else { Err(format!("no {name}")) }
    });
}

/// Whatever they wait for, and whatever they have begun.
#[test]
fn up_and_down_end_at_once_when_they_are_interrupted() {
    let Some(world) = World::new() else { return };
    let project = Project::new(world, Postgres);
    let world = &project.world;
    let interrupted = |name: &str, when: &dyn Fn(u32), word: Signal| {
        let mut child = world.calve(name).arg("-q").within(&project.path).spawn();
        when(child.id());
        let _ = kill_process(Pid::from_child(&child), word);
        ends(&mut child)
    };
    let is_gone = || if project.server().is_none() { Ok(()) } else { Err("it runs".to_owned()) };
    let (mut rows, mut random) = (1000, SplitMix64::new(3));
    let mut within = |most| {
        let after = Duration::from_millis(random.below(most));
        move |_| std::thread::sleep(after)
    };
    for word in [Signal::INT, Signal::TERM] {
        let server = project.up();
        world.query(Postgres, &server, Postgres.add());
        rows += 1;
        // For another command to be done.
        let turn = Path::new(server["data_directory"].as_str().unwrap()).with_file_name("turn");
        let turn = fs_err::File::open(turn).unwrap();
        rustix::fs::flock(&turn, rustix::fs::FlockOperation::LockExclusive).unwrap();
        for name in ["up", "down"] {
            assert_eq!(interrupted(name, &|child| has_open(child, "/turn"), word), Some(130), "{name}");
        }
        drop(turn);
        assert_eq!(world.rows(Postgres, &server), rows.to_string());
        // For the supervisor's answer. The server ends in order as soon as it can.
        let supervisor = world.supervisors()[0];
        signal(supervisor, Signal::STOP);
        for name in ["up", "down"] {
            assert_eq!(interrupted(name, &|child| has_open(child, "socket:"), word), Some(130), "{name}");
        }
        signal(supervisor, Signal::CONT);
        eventually(is_gone);
        // At any moment.
        for _ in 0..3 {
            if interrupted("up", &within(400), word) != Some(0) {
                assert_eq!(project.server(), None);
                world.nothing_runs();
                assert!(!world.db(["list"]).succeeds().stdout().contains("supervisor"));
            }
            assert_eq!(world.rows(Postgres, &project.up()), rows.to_string());
            interrupted("down", &within(100), word);
            assert_eq!(world.rows(Postgres, &project.up()), rows.to_string());
            // The next one is to find no server.
            project.down().succeeds();
        }
    }
}

/// Data is cloned while the files are.
#[test]
fn a_worktree_that_is_not_made_leaves_no_data() {
    let Some(project) = Project::of(User::This, Postgres) else { return };
    let world = &project.world;
    let kept = || names(&world.home().join("db/services"));
    let hook = project.path.join(".git/hooks/reference-transaction");
    fs_err::create_dir_all(hook.parent().unwrap()).unwrap();
    for _ in 0..2 {
        // Of the template first, then of a server that runs. git makes no branch.
        fs_err::write(&hook, "#!/bin/sh\n[ \"$1\" != prepared ]\n").unwrap();
        rustix::fs::chmod(&hook, 0o755.into()).unwrap();
        world.calve("worktree").args(["add", "-q", "one"]).within(&project.path).ends().code(1);
        fs_err::remove_file(&hook).unwrap();
        project.up();
        eventually(|| if kept().len() == 1 { Ok(()) } else { Err(format!("{:?}", kept())) });
    }
    world.calve("worktree").args(["add", "-q", "one"]).within(&project.path).succeeds();
    assert_eq!(kept().len(), 2, "{:?}", kept());
}

/// A second one on the same data would destroy it.
#[test]
fn a_server_is_not_started_before_the_last_process_of_the_one_before_has_ended() {
    let Some(world) = World::with(ordinary(), None) else { return };
    let project = Project::new(world.without_namespaces(), Postgres);
    let world = &project.world;
    let server = project.up();
    // A session's process, which the kernel does not end with the supervisor, and which does not notice that the first one has.
    let mut client = world.client(Postgres, &server, "SELECT pg_sleep(60)");
    let mut client = client.spawn().unwrap();
    let session = loop {
        let found =
            world.query(Postgres, &server, "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'");
        if let Ok(pid) = found.trim().parse::<u64>() {
            break pid;
        }
    };
    signal(session, Signal::STOP);
    world.supervisors().into_iter().for_each(kill);
    let up = world.calve("up").arg("-q").within(&project.path).spawn();
    assert!(up.wait_with_output().unwrap().status.success());
    let _ = client.wait();
    // No living process has it as a child, and can collect it.
    let text = fs_err::read_to_string(format!("/proc/{session}/stat")).unwrap_or_default();
    assert!(text.is_empty() || text.contains(") Z "), "the old server's session still runs: {text}");
    assert_eq!(world.rows(Postgres, &project.server().unwrap()), "1000");
}

#[test]
fn data_is_not_replaced_by_that_of_another_engine() {
    let Some(project) = Project::of(User::This, Postgres) else { return };
    let world = &project.world;
    let server = project.up();
    world.query(Postgres, &server, "INSERT INTO t VALUES (0)");
    world.db(["template", "remove", "t"]).succeeds();
    world.db(["template", "create", "t", "--engine", "redis"]).succeeds();
    let reset = world.calve("reset").args(["--yes", "t"]).within(&project.path);
    reset.fails(
        1,
        &[
            "of the engine redis",
            "of postgres; it stays as it is",
            "make that template again with the service's engine, or give the service another name",
        ],
    );
    assert_eq!(world.rows(Postgres, &server), "1001");
    assert_eq!(project.server().unwrap()["url"], server["url"]);
}
