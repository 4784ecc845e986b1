//! States of a server to go back to.

use std::time::Duration;

use calve_testkit::{FileSystem, few_rounds, matrix};
use rustix::process::Signal;
use serde_json::Value;

use crate::patience::Patience;
use crate::world::{Mariadb, Postgres, Redis, User, World, eventually, fill, kill, names, ordinary, signal, users};

/// All that a table holds, in one word.
const CHECKSUM: &str = "SELECT md5(string_agg(a::text, ',' ORDER BY a)) FROM t";

pub(crate) fn mark(world: &World, name: &str) -> Value {
    world.db(["mark", "a", name, "--json"]).succeeds().json()
}

pub(crate) fn reset(world: &World, to: Option<&str>) -> Value {
    let to = to.map(|to| ["--to", to]).into_iter().flatten();
    world.db(["reset", "a", "--json"]).args(to).succeeds().json()["servers"][0].clone()
}

fn story(world: &World) {
    world.template(Postgres);
    let server = world.start("a");
    let ask = |sql: &str| world.query(Postgres, &server, sql);
    ask("DELETE FROM t WHERE a > 10");
    let made = mark(world, "ten");
    assert_eq!((&made["name"], &made["server"], &made["method"]), (&"ten".into(), &"a".into(), &"stopped".into()));
    let ten = ask(CHECKSUM);
    // Tables are part of it, and rows that came last.
    ask("CREATE TABLE u (b int)");
    ask("INSERT INTO t VALUES (5000)");
    // Tables without a log, too.
    ask("CREATE UNLOGGED TABLE v AS SELECT a FROM t");
    mark(world, "eleven");
    ask("DROP TABLE v");
    let eleven = ask(CHECKSUM);
    assert_ne!(ten, eleven);

    for (to, sum, tables) in
        [("ten", &ten, "0"), ("eleven", &eleven, "1"), ("eleven", &eleven, "1"), ("ten", &ten, "0")]
    {
        ask("INSERT INTO t VALUES (-1)");
        let back = reset(world, Some(to));
        assert_eq!((&back["url"], &back["name"]), (&server["url"], &server["name"]));
        assert_eq!(&ask(CHECKSUM), sum);
        assert_eq!(ask("SELECT count(*) FROM information_schema.tables WHERE table_name = 'u'"), tables);
        if to == "eleven" {
            assert_eq!(ask("SELECT count(*) FROM v"), "11");
        }
    }
    // The template is still where a reset goes.
    reset(world, None);
    assert_eq!(world.rows(Postgres, &server), "1000");

    let list = world.db(["marks", "a", "--json"]).succeeds().json();
    let marks: Vec<&Value> = list["marks"].as_array().unwrap().iter().map(|mark| &mark["name"]).collect();
    assert_eq!(marks, ["ten", "eleven"]);
    world.db(["template", "create", "n", "-q", "--from-mark", "a:eleven"]).succeeds();
    let new = world.db(["start", "n", "--json"]).succeeds().json();
    assert_eq!(world.query(Postgres, &new, CHECKSUM), eleven);
    world.db(["unmark", "a", "ten", "-q"]).succeeds();
    world.db(["reset", "a", "--to", "ten"]).fails(1, &["no mark `ten`"]);
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_all();
}

#[test]
fn a_reset_goes_back_to_a_mark() {
    for user in matrix(users()) {
        let Some(world) = World::with(user, None) else { return };
        story(&world);
    }
}

#[test]
fn with_a_standby_too() {
    for (file_system, user) in [(FileSystem::Btrfs, User::This), (FileSystem::Xfs, ordinary())] {
        let Some(world) = World::on(file_system, user) else { return };
        story(&world);
        // With a pool, the server for the next reset is there already.
        world.db(["pool", "t", "--size", "1", "-q"]).succeeds();
        let server = world.start("a");
        world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
        mark(&world, "ten");
        let ten = world.query(Postgres, &server, CHECKSUM);
        let mut taken = 0;
        for _ in 0..6 {
            world.query(Postgres, &server, "INSERT INTO t VALUES (-1)");
            let session = sleeping(&world, &server);
            let back = reset(&world, Some("ten"));
            assert_eq!((&back["url"], &back["name"]), (&server["url"], &server["name"]));
            assert!(!session.wait_with_output().unwrap().status.success());
            assert_eq!(world.query(Postgres, &server, CHECKSUM), ten);
            taken += u32::from(back["standby"] == true);
            if taken > 0 && few_rounds() {
                break;
            }
        }
        assert!(taken > 0, "no reset took a standby");
        // It is of the mark, and not of the template.
        reset(&world, None);
        assert_eq!(world.rows(Postgres, &server), "1000");
        assert_eq!(world.db(["logs", "a"]).succeeds().stderr(), "");
        world.db(["pool", "t", "--size", "0", "-q"]).succeeds();
        world.stop_last("a");
    }
}

/// A session that is in the middle of a statement.
fn sleeping(world: &World, server: &Value) -> std::process::Child {
    let running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sl%'";
    let mut client = world.client(Postgres, server, "SELECT pg_sleep(1000)");
    let child = client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    eventually(|| match world.query(Postgres, server, running).as_str() {
        "1" => Ok(()),
        found => Err(format!("{found} sleep")),
    });
    child
}

/// Resets by the server that was prepared for it.
fn reset_by_a_standby(world: &World, to: Option<&str>) {
    let servers = world.home().join("db/servers");
    let records = || names(&servers).into_iter().map(|name| servers.join(name).join("server.json"));
    let read = |path| serde_json::from_slice::<Value>(&fs_err::read(path).ok()?).ok();
    eventually(|| {
        let record = records().filter_map(read).find(|record| record["name"] == "a");
        match record.is_some_and(|record| record["prepared"] == true) {
            true => Ok(()),
            false => Err("no server is prepared".to_owned()),
        }
    });
    assert_eq!(reset(world, to)["standby"], true);
}

/// Its files stay where they were prepared, in a directory of those that hold all others.
#[test]
fn a_server_that_was_prepared_is_marked_and_reset_by_the_next_one() {
    for (file_system, user) in matrix([(FileSystem::Xfs, ordinary()), (FileSystem::Ext4, User::This)]) {
        let Some(world) = World::at(file_system, user, Postgres) else { return };
        world.db(["pool", "t", "--size", "1", "-q"]).succeeds();
        let server = world.start("a");
        reset(&world, None);
        for round in ["first", "second"] {
            reset_by_a_standby(&world, None);
            world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
            mark(&world, round);
            world.query(Postgres, &server, "DELETE FROM t");
            reset_by_a_standby(&world, Some(round));
            assert_eq!(world.rows(Postgres, &server), "10");
            reset(&world, None);
            assert_eq!(world.rows(Postgres, &server), "1000");
        }
        world.db(["pool", "t", "--size", "0", "-q"]).succeeds();
        world.stop_last("a");
    }
}

#[test]
fn what_was_not_committed_is_in_no_mark() {
    for engine in [Postgres, Mariadb] {
        let Some((world, server)) = World::with_server(engine) else { return };
        let sleep = if engine == Postgres { "pg_sleep(1000)" } else { "SLEEP(1000)" };
        let sql = format!("BEGIN; INSERT INTO t VALUES (-1); DELETE FROM t WHERE a > 500; SELECT {sleep}; SELECT 1");
        let mut client = world.client(engine, &server, &sql);
        let session = client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let running = match engine {
            Postgres => {
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'BEGIN; INS%' AND wait_event = 'PgSleep'"
            }
            _ => "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SL%'",
        };
        eventually(|| match world.query(engine, &server, running).as_str() {
            "1" => Ok(()),
            found => Err(format!("{found} sleep")),
        });
        mark(&world, "m");
        // The session gets the message at once.
        assert!(!session.wait_with_output().unwrap().status.success());
        assert_eq!(world.rows(engine, &server), "1000");
        world.query(engine, &server, "DELETE FROM t");
        reset(&world, Some("m"));
        assert_eq!(world.rows(engine, &server), "1000");
        world.stop_last("a");
    }
}

/// They load a dump, and no files that a client has turned on, or on and off.
#[test]
fn what_is_in_append_only_files_is_in_templates_and_marks() {
    let Some(world) = World::new() else { return };
    let script = format!(
        "redis() {{ redis-cli -e -s \"$REDIS_SOCKET\" \"$@\"; }}; redis CONFIG SET appendonly yes; redis EVAL \"{}\" 0",
        Redis.fill()
    );
    let words = ["template", "create", "t", "-q", "--engine", "redis", "--", "sh", "-ec", &script];
    world.db(words).succeeds();
    assert_eq!(names(&world.home().join("db/templates/t/data")), ["dump.rdb"]);
    let server = world.start("a");
    assert_eq!(world.rows(Redis, &server), "1000");
    world.set(&server, "appendonly", "yes");
    world.query(Redis, &server, Redis.add());
    mark(&world, "m");
    assert_eq!(world.rows(Redis, &server), "1001");
    world.query(Redis, &server, Redis.shrink());
    reset(&world, Some("m"));
    assert_eq!(world.rows(Redis, &server), "1001");
    world.db(["template", "create", "n", "-q", "--from-mark", "a:m"]).succeeds();
    assert_eq!(names(&world.home().join("db/templates/n/data")), ["dump.rdb"]);
    world.stop_last("a");
}

#[test]
fn marks_that_make_no_sense() {
    let Some(world) = World::having(Postgres) else { return };
    world.db(["mark", "a", "m"]).fails(1, &["no server `a`"]);
    world.db(["marks", "a"]).fails(1, &["no server `a`"]);
    let server = world.start("a");
    mark(&world, "m");
    world.query(Postgres, &server, "DELETE FROM t");
    world
        .db(["mark", "a", "m"])
        .fails(1, &["already has a mark `m`", "hint: choose another name, or remove it: calve db unmark a m\n"]);
    for bad in ["../m", ".m", "m/n", ""] {
        world.db(["mark", "a", bad]).fails(2, &["is not a valid name"]);
        world.db(["reset", "a", "--to", bad]).ends().code(2);
    }
    world.db(["reset", "a", "--to", "n"]).fails(1, &["no mark `n`", "hint: see `calve db marks a`\n"]);
    world.db(["unmark", "a", "n"]).fails(1, &["no mark `n`"]);
    world.db(["template", "create", "n", "--from-mark", "a"]).ends().code(2);
    world.db(["template", "create", "n", "--from-mark", "a:n"]).fails(1, &["no mark `n`"]);
    // None of that did anything to it.
    assert_eq!(world.rows(Postgres, &server), "0");
    reset(&world, Some("m"));
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_last("a");
}

#[test]
fn a_mark_on_a_full_disk() {
    for engine in [Postgres, Redis] {
        // Here a mark is a copy.
        let Some(world) = World::at(FileSystem::Ext4, User::This, engine) else { return };
        let server = world.start("a");
        world.query(engine, &server, engine.shrink());
        if !engine.is_sql() {
            world.fill_up(&server);
        }
        let filler = fill(world.path(), 16 << 20);
        world.db(["mark", "a", "m"]).fails(1, &["free some space"]);
        // It goes on, with what it had.
        assert_eq!(world.rows(engine, &server), "10");
        let marks = world.db(["marks", "a", "--json"]).succeeds().json();
        assert_eq!(marks["marks"], serde_json::json!([]));
        filler.set_len(0).unwrap();
        mark(&world, "m");
        reset(&world, Some("m"));
        assert_eq!(world.rows(engine, &server), "10");
        world.stop_last("a");
    }
}

#[test]
fn what_a_killed_supervisor_leaves_of_marks_is_swept() {
    for user in matrix([User::This, User::Unprivileged]) {
        let Some(world) = World::at(FileSystem::Btrfs, user, Postgres) else { return };
        world.db(["pool", "t", "--size", "1", "-q"]).succeeds();
        world.start("a");
        mark(&world, "m");
        reset(&world, Some("m"));
        world.db(["pool", "t", "--size", "0", "-q"]).succeeds();
        world.supervisors().into_iter().for_each(kill);
        world.nothing_runs();
        world.db(["gc", "-q"]).succeeds();
        assert_eq!(names(&world.home().join("db/servers")), [".lock"]);
        world.nothing_left();
    }
}

/// Waits for the end of a command, which is not a matter of minutes.
pub(crate) fn ends(child: &mut std::process::Child) -> Option<i32> {
    let patience = Patience::new(Duration::from_secs(20));
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(!patience.is_over(), "it waits for the server");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn no_command_has_to_wait_for_a_server_that_does_not_end() {
    let Some(world) = World::having(Postgres) else { return };
    for word in [Signal::INT, Signal::TERM] {
        let server = world.start("a");
        let pid = server["pid"].as_u64().unwrap();
        signal(pid, Signal::STOP);
        // The second finds the supervisor busy with the first.
        for words in [&["mark", "a", "m"][..], &["mark", "a", "n"], &["reset", "a"], &["unmark", "a", "m"]] {
            let mut child = world.db(words).spawn();
            std::thread::sleep(Duration::from_millis(300));
            signal(child.id().into(), word);
            assert_eq!(ends(&mut child), Some(130), "{words:?}");
        }
        assert_eq!(ends(&mut world.db(["stop", "a"]).spawn()), Some(0));
        world.nothing_runs();
    }
    // Those that wait when it is stopped are told.
    let server = world.start("a");
    signal(server["pid"].as_u64().unwrap(), Signal::STOP);
    let waiting = [&["mark", "a", "m"][..], &["reset", "a"]].map(|words| {
        let child = world.db(words).spawn();
        std::thread::sleep(Duration::from_millis(300));
        child
    });
    world.stop("a");
    for child in waiting {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("the server `a` was stopped meanwhile\nhint: see `calve db list`"), "{said}");
    }
    // No command waits for this mark any more, and the server goes on.
    let server = world.start("a");
    let pid = server["pid"].as_u64().unwrap();
    signal(pid, Signal::STOP);
    let mut child = world.db(["mark", "a", "m"]).spawn();
    std::thread::sleep(Duration::from_millis(300));
    signal(child.id().into(), Signal::TERM);
    assert_eq!(ends(&mut child), Some(130));
    signal(pid, Signal::CONT);
    // Its turn comes after the given up one.
    mark(&world, "n");
    let marks = world.db(["marks", "a", "--json"]).succeeds().json();
    assert_eq!(marks["marks"].as_array().unwrap().len(), 1, "{marks}");
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_last("a");
}

/// Names of the servers that are down.
pub(crate) fn down(world: &World) -> Vec<String> {
    let list = world.db(["list", "--json"]).succeeds().json();
    let down = list["servers"].as_array().unwrap().iter().filter(|server| server["down"] == true);
    down.map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_server_that_cannot_be_started_again_keeps_its_marks() {
    for (file_system, user) in matrix([(FileSystem::Xfs, User::This), (FileSystem::Ext4, User::Unprivileged)]) {
        let Some(world) = World::at(file_system, user, Postgres) else { return };
        let server = world.start("a");
        world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
        mark(&world, "good");
        world.query(Postgres, &server, "ALTER SYSTEM SET shared_buffers = '640GB'");
        let hint = "hint: try again, go back to a mark, or stop it: calve db reset a\n";
        let why = ["the server `a` is down, because it could not be started again", "shared_buffers", hint];
        world.db(["mark", "a", "bad"]).fails(1, &why);
        assert_eq!(down(&world), ["a"]);
        // Every command that needs a server says why it has ended. The marked state is kept, whatever is wrong with it.
        world.db(["mark", "a", "another"]).fails(1, &why);
        world.db(["reset", "a", "--to", "bad"]).fails(1, &why);
        assert_eq!(down(&world), ["a"]);

        reset(&world, Some("good"));
        assert_eq!((down(&world), world.rows(Postgres, &server)), (vec![], "10".to_owned()));
        world.db(["reset", "a", "--to", "bad"]).fails(1, &why);
        world.db(["unmark", "a", "bad", "-q"]).succeeds();
        reset(&world, None);
        assert_eq!(world.rows(Postgres, &server), "1000");
        mark(&world, "later");

        world.query(Postgres, &server, "ALTER SYSTEM SET shared_buffers = '640GB'");
        world.db(["mark", "a", "bad"]).fails(1, &why);
        world.stop_last("a");
    }
}

#[test]
fn a_server_whose_port_is_taken_meanwhile_keeps_its_marks() {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    for engine in matrix([Postgres, Mariadb]) {
        let Some(world) = World::having(engine) else { return };
        let server = world.db(["start", "t", "--name", "a", "--tcp", "--json"]).succeeds().json();
        let port = u16::try_from(server["tcp_port"].as_u64().unwrap()).unwrap();
        mark(&world, "m");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Binds with SO_REUSEADDR, as most servers do, and keeps what it gets.
            let taker = scope.spawn(|| {
                let mut taken = None;
                while !is_over.load(Relaxed) {
                    taken = taken.or_else(|| TcpListener::bind(("127.0.0.1", port)).ok());
                    std::thread::sleep(Duration::from_micros(50));
                }
                taken.is_some()
            });
            let to = [&[][..], &["--to", "m"], &[], &["--to", "m"]];
            let codes = to.map(|to| world.db(["reset", "a", "-q"]).args(to).ends().exit_code());
            is_over.store(true, Relaxed);
            let is_taken = taker.join().unwrap();
            assert_eq!(codes[3] != Some(0), is_taken, "{codes:?}");
            assert_eq!(down(&world).len(), usize::from(is_taken));
        });
        assert_eq!(world.db(["marks", "a", "--json"]).succeeds().json()["marks"][0]["name"], "m");
        let back = reset(&world, Some("m"));
        assert_eq!((&back["tcp_port"], down(&world)), (&server["tcp_port"], vec![]));
        assert_eq!(world.rows(engine, &server), "1000");
        world.stop_last("a");
    }
}

/// The directory of the mark that was not made is hidden, and gone.
#[test]
fn a_server_with_data_outside_cannot_be_marked_and_goes_on() {
    use std::os::unix::fs::PermissionsExt;
    for engine in [Postgres, Mariadb] {
        let Some((world, server)) = World::with_server(engine) else { return };
        let outside = tempfile::tempdir().unwrap();
        fs_err::set_permissions(outside.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let place = outside.path().join("far").display().to_string();
        let what = match engine {
            Postgres => {
                world.query(
                    engine,
                    &server,
                    &format!("COPY (SELECT 1) TO PROGRAM 'cat >/dev/null; mkdir -m 700 {place}'"),
                );
                world.query(engine, &server, &format!("CREATE TABLESPACE far LOCATION '{place}'"));
                "it has a tablespace outside: `pg_tblspc/"
            }
            _ => {
                world.query(
                    engine,
                    &server,
                    &format!("CREATE TABLE far (a INT) ENGINE=InnoDB DATA DIRECTORY='{place}'"),
                );
                "it has a table outside: `test/far.isl`"
            }
        };
        let hint = "hint: drop it first: a mark contains only the server's data directory\n";
        let why = ["error: the server `a` cannot be marked: ", what, &*place, hint];
        let said = world.db(["mark", "a", "m"]).fails(1, &why).stderr();
        assert!(!said.contains("marks/.new"), "{said}");
        assert_eq!(world.rows(engine, &server), "1000");
        world.query(engine, &server, if engine == Postgres { "DROP TABLESPACE far" } else { "DROP TABLE far" });
        mark(&world, "m");
        world.stop_last("a");
    }
}

#[test]
fn tablespaces_in_place_are_data_like_the_rest() {
    let Some(world) = World::new() else { return };
    let words = ["template", "create", "t", "-q", "--engine", "postgres", "--", "psql", "-q"];
    let in_place = ["-c", "SET allow_in_place_tablespaces = on", "-c", "CREATE TABLESPACE near LOCATION ''"];
    let table = ["-c", "CREATE TABLE t TABLESPACE near AS SELECT generate_series(1, 1000) AS a"];
    world.db(words).args(in_place).args(table).succeeds();
    let server = world.start("a");
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
    mark(&world, "ten");
    world.query(Postgres, &server, "DROP TABLE t");
    reset(&world, Some("ten"));
    assert_eq!(world.rows(Postgres, &server), "10");
    reset(&world, None);
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop("a");
    let data = world.home().join("db/templates/t/data");
    world.db(["template", "create", "n", "-q", "--engine", "postgres", "--from"]).args([data]).succeeds();
    world.db(["start", "n", "--name", "b", "-q"]).succeeds();
    world.stop("b");
    world.nothing_left();
}

/// Whatever the moment, a mark is made or not made, as the command says.
#[test]
fn a_mark_that_is_interrupted_is_not_made() {
    let Some((world, server)) = World::with_server(Redis) else { return };
    let mut random = calve_testkit::SplitMix64::new(u64::from(std::process::id()));
    for round in 0..calve_testkit::rounds(60).max(8) {
        let name = format!("m{round}");
        let mut child = world.db(["mark", "a", &name]).spawn();
        std::thread::sleep(Duration::from_millis(random.below(200)));
        signal(child.id().into(), if round % 2 == 0 { Signal::INT } else { Signal::TERM });
        let code = ends(&mut child);
        // Its turn comes when the mark is over.
        world.db(["unmark", "a", "none"]).fails(1, &["no mark `none`"]);
        let is_there = world.db(["marks", "a"]).succeeds().stdout().contains(&format!("{name} "));
        // Signals before it listens end it.
        assert!(matches!(code, Some(0 | 130) | None), "{code:?}");
        assert_eq!(is_there, code == Some(0), "{code:?}");
    }
    assert_eq!(world.rows(Redis, &server), "1000");
    world.stop_last("a");
}

/// A supervisor is busy, and its socket was removed.
#[test]
fn nobody_has_to_wait_for_a_supervisor_that_does_not_end() {
    let Some(world) = World::having(Postgres) else { return };
    for word in [Signal::INT, Signal::TERM] {
        world.start("a");
        let record = fs_err::read(world.home().join("db/servers/a/server.json")).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        let supervisor = world.supervisors()[0];
        signal(supervisor, Signal::STOP);
        fs_err::remove_file(record["control"].as_str().unwrap()).unwrap();
        let mut child = world.db(["stop", "a"]).spawn();
        std::thread::sleep(Duration::from_millis(300));
        signal(child.id().into(), word);
        // After ten seconds it would have ended with 1.
        assert_eq!(ends(&mut child), Some(130));
        signal(supervisor, Signal::CONT);
        world.nothing_runs();
    }
    let server = world.start("a");
    let supervisor = world.supervisors()[0];
    signal(supervisor, Signal::STOP);
    fs_err::remove_file(world.noted_sockets()[0].join("control")).unwrap();
    world.db(["stop", "a"]).fails(1, &["the server `a` is still ending\nhint: try again in a moment\n"]);
    assert_eq!(world.rows(Postgres, &server), "1000");
    signal(supervisor, Signal::CONT);
    world.nothing_runs();
    world.nothing_left();
}
