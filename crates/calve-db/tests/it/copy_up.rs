//! What an overlay copies, on real servers.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calve_testkit::FileSystem;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Engine, Mariadb, Postgres, User, World, eventually, names, until, users};

/// More than what counts as large, in one table.
fn fill(engine: Engine) -> &'static str {
    match engine {
        Postgres => {
            "CREATE TABLE big WITH (autovacuum_enabled = off) AS SELECT n, repeat(md5(n::text), 30) AS text FROM generate_series(1, 20000) AS n"
        }
        _ => {
            "CREATE TABLE big (n INT PRIMARY KEY, text TEXT) ENGINE=InnoDB AS SELECT seq AS n, REPEAT(MD5(seq), 30) AS text \
             FROM seq_1_to_20000"
        }
    }
}

/// A world on ext4 with a template `b` that has a large table, and the table's file.
fn with_large_table(engine: Engine, user: User) -> Option<(World, String)> {
    let world = World::on(FileSystem::Ext4, user)?;
    world.template(engine);
    world.db(["template", "create", "b", "-q", "--base", "t", "--"]).args(engine.client(fill(engine))).succeeds();
    let question = engine.client("SELECT pg_relation_filepath('big')");
    let table = match engine {
        Postgres => world.db(["run", "b", "-q", "--"]).args(question).succeeds().stdout().trim().to_owned(),
        _ => "test/big.ibd".to_owned(),
    };
    Some((world, table))
}

const COUNT: &str = "SELECT count(*) FROM big";

fn is_table(file: &Value, table: &str) -> bool {
    file["path"] == table
}

#[test]
fn large_files_are_named_before_they_are_copied_and_after() {
    let Some((world, table)) = with_large_table(Postgres, User::This) else { return };
    let start = ["start", "b", "--json", "--strategy", "overlay", "--name"];
    let ran = world.db(start).arg("a").succeeds();
    let server = ran.json();
    let announced = server["copied_on_first_open"].as_array().unwrap();
    let sizes: Vec<u64> = announced.iter().map(|file| file["bytes"].as_u64().unwrap()).collect();
    assert!(!sizes.is_empty() && sizes.iter().all(|bytes| *bytes > 16 << 20), "{server:#}");
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{server:#}");
    assert!(announced.iter().any(|file| is_table(file, &table)), "{table}: {server:#}");
    assert!(ran.stderr().contains("copies a file as a whole"), "{}", ran.stderr());

    // A server that was not asked for the table has not copied it.
    let quiet = world.db(["stop", "a"]).succeeds().stderr();
    let server = world.db(start).arg("b").succeeds().json();
    assert_eq!(world.query(Postgres, &server, COUNT), "20000");
    // To put it back is to end a server, too.
    let told = world.db(["reset", "b"]).succeeds().stderr();
    assert!(told.contains("the overlay copied ") && says(&told, &table), "{table}: {told}");
    for quiet in [quiet, world.db(["stop", "b"]).succeeds().stderr()] {
        assert!(!says(&quiet, &table), "{table}: {quiet}");
    }
    // What the server made anew was not copied.
    assert!(!told.contains("postmaster.pid"), "{told}");
    world.nothing_left();
}

/// A line about the table with how long it took.
fn says(text: &str, table: &str) -> bool {
    text.lines().any(|line| line.starts_with("  after ") && line.contains(table) && line.contains(" MB in "))
}

#[test]
fn they_are_named_before_the_server_is_started() {
    let Some((world, _)) = with_large_table(Postgres, User::This) else { return };
    let path = world.home().join("db/templates/b/template.json");
    let mut template: Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    // It ends at once: whatever is said of files was said before.
    template["program"] = "/bin/false".into();
    fs_err::write(&path, template.to_string()).unwrap();
    for command in [&["start", "b"][..], &["run", "b", "--", "true"]] {
        let stderr = world.db(command).fails(1, &["ended before it was ready"]).stderr();
        let named = stderr.find("copies a file as a whole").unwrap_or_else(|| panic!("{stderr}"));
        assert!(named < stderr.find("ended before it was ready").unwrap(), "{stderr}");
        let quiet: Vec<&str> = [&command[..2], &["--quiet"], &command[2..]].concat();
        assert!(!world.db(quiet).ends().stderr().contains("copies a file as a whole"));
    }
    world.nothing_left();
}

#[test]
fn copies_are_told_as_they_happen() {
    for user in users() {
        let Some((world, table)) = with_large_table(Postgres, user) else { return };
        let count = format!("{COUNT}; {}", pause(Postgres));
        let script = format!("\"$@\" >/dev/null & {}; kill $!", until("go"));
        let run = world.db(["run", "b", "--trace", "--", "sh", "-ec", &script, "sh"]).args(Postgres.client(&count));
        let mut run = run.spawn();
        let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
        // The command goes on until it is permitted to end, so this is told meanwhile.
        let line = lines.find(|line| line.starts_with("trace: after ") && line.contains(&table)).unwrap();
        assert!(line.contains(" MB in ") && line.contains("O_RDWR") && line.contains(" by "), "{line}");
        fs_err::write(world.path().join("go"), "").unwrap();
        let rest: String = lines.map(|line| line + "\n").collect();
        assert!(says(&rest, &table), "{rest}");
        assert!(run.wait().unwrap().success());
        world.nothing_left();
    }
}

#[test]
fn a_server_can_be_traced_at_any_time() {
    let is_root = calve_testkit::is_root();
    for (user, tells_threads) in [(User::This, is_root), (User::Unprivileged, false)] {
        for engine in [Postgres, Mariadb] {
            let Some((world, table)) = with_large_table(engine, user) else { return };
            let ran = world.db(["start", "b", "--json", "--name", "a", "--trace"]).succeeds();
            assert!(ran.stderr().contains("calve db trace a"), "{}", ran.stderr());
            let server = ran.json();
            let mut follow = world.db(["trace", "a"]).spawn();
            let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
            let mut client = world.client(engine, &server, &format!("{COUNT}; {}", pause(engine)));
            let mut client = client.stdout(Stdio::null()).spawn().unwrap();
            assert!(lines.any(|line| line.starts_with("after ") && line.contains(&table)));
            client.kill().unwrap();
            client.wait().unwrap();
            let trace = world.db(["trace", "a", "--json"]).succeeds().json();
            assert_eq!(trace["schema"], "calve.db.trace/1");
            assert_eq!(trace["untold"].is_null(), tells_threads, "{trace:#}");
            let copied = trace["copied"].as_array().unwrap();
            let of_table =
                copied.iter().find(|file| is_table(file, &table)).unwrap_or_else(|| panic!("{table}: {trace:#}"));
            assert!(of_table["bytes"].as_u64().unwrap() > 16 << 20, "{of_table}");
            // The clock of files moves a few milliseconds at once.
            assert!(of_table["took_ms"].as_f64().unwrap() >= 0.0 && of_table["after_ms"].as_f64().unwrap() > 0.0);
            let cause = &of_table["cause"];
            assert!(cause["flags"].as_str().unwrap().starts_with("O_RDWR"), "{cause}");
            assert!(cause["name"].as_str().unwrap().starts_with(server_name(engine)), "{cause}");
            // PostgreSQL's processes have one thread; of MariaDB's many it is one that serves clients.
            let (process, thread) = (cause["process"].as_u64().unwrap(), cause["thread"].as_u64());
            match engine {
                Postgres => assert_eq!(thread, Some(process)),
                Mariadb if tells_threads => {
                    assert!(thread.is_some_and(|thread| thread != process), "{cause}")
                }
                _ => assert_eq!(thread, None),
            }
            if engine != Postgres {
                assert_eq!(cause["process"], server["pid"]);
            }
            // It ends with the server.
            world.stop("a");
            assert!(follow.wait().unwrap().success());
            world.db(["trace", "a"]).fails(1, &["there is no server `a`"]);
            world.nothing_left();
        }
    }
}

/// For as long as the session has the file open it can be seen how it opened it.
fn pause(engine: Engine) -> &'static str {
    match engine {
        Postgres => "SELECT pg_sleep(1000)",
        _ => "SELECT sleep(1000)",
    }
}

fn server_name(engine: Engine) -> &'static str {
    match engine {
        Postgres => "postgres: ",
        _ => "mariadbd",
    }
}

/// It is kept for those who ask, and no other command shows it.
#[test]
fn what_was_copied_is_told_when_nobody_waited_for_the_end() {
    let Some((world, table)) = with_large_table(Postgres, User::This) else { return };
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let owner_pid = owner.id().to_string();
    let kill = |pid: u64| {
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    };
    let mut end_of = |name: &str, server: &Value| match name {
        "owner" => {
            owner.kill().unwrap();
            owner.wait().unwrap();
        }
        "server" => kill(server["pid"].as_u64().unwrap()),
        "supervisor" => {
            let supervisors = world.processes().into_iter().filter(|process| process.contains("__supervise"));
            supervisors.for_each(|process| kill(process.split(' ').next().unwrap().parse().unwrap()));
        }
        _ => {}
    };
    let mut ttl = Duration::from_secs(2);
    for (name, why) in [
        ("ttl", "ended when its time was over"),
        ("owner", "ended with its owner"),
        ("server", "ended by itself (signal 9)"),
        ("supervisor", "ended because its supervisor was killed"),
    ] {
        let server = loop {
            let option = match name {
                "ttl" => ["--ttl".to_owned(), format!("{}s", ttl.as_secs())],
                "owner" => ["--owner-pid".to_owned(), owner_pid.clone()],
                _ => ["--ttl".to_owned(), "1h".to_owned()],
            };
            let started = Instant::now();
            let server = world.db(["start", "b", "--json", "--name", name]).args(option).succeeds().json();
            let counted = world.client(Postgres, &server, COUNT).output().unwrap();
            if counted.status.success() {
                break server;
            }
            // Its time was over before the table was read. Once more, with more of it.
            assert!(name == "ttl" && started.elapsed() >= ttl, "{name}: {counted:?}");
            ttl *= 4;
            world.nothing_left();
        };
        if name == "supervisor" {
            // What it has written down.
            eventually(|| {
                let trace = world.db(["trace", name, "--json"]).succeeds().json();
                let copied = trace["copied"].as_array().unwrap();
                if copied.iter().any(|file| is_table(file, &table)) { Ok(()) } else { Err(trace.to_string()) }
            });
        }
        end_of(name, &server);
        let mut told = String::new();
        eventually(|| {
            let list = world.db(["list"]).succeeds();
            assert_eq!(list.stderr(), "");
            told = list.stdout();
            if told.contains(why) { Ok(()) } else { Err("nothing is told".into()) }
        });
        assert!(told.contains(&format!(" {why}; its overlay had copied ")), "{name}: {told}");
        let told = world.db(["logs", name]).succeeds().stderr();
        assert!(told.contains(&format!("`{name}` {why}")) && says(&told, &table), "{told}");
    }
    world.nothing_left();
}

#[test]
fn nothing_is_copied_where_blocks_can_be_shared() {
    let Some(world) = World::on(FileSystem::Xfs, User::This) else { return };
    world.template(Postgres);
    for strategy in ["overlay", "reflink"] {
        let ran = world.db(["start", "t", "--json", "--name", "a", "--strategy", strategy]).succeeds();
        assert_eq!(ran.json()["copied_on_first_open"].as_array().unwrap().len(), 0, "{strategy}");
        assert_eq!(ran.stderr(), "", "{strategy}");
        let told = world.db(["stop", "a"]).succeeds().stderr();
        assert_eq!(told.contains("the overlay copied"), strategy == "overlay", "{told}");
        // Copies that cost nothing are watched when that is asked for.
        let ran = world.db(["run", "t", "--trace", "--strategy", strategy, "--", "true"]).succeeds();
        let expected = if strategy == "overlay" { "trace: after " } else { "nothing is copied as a whole" };
        assert!(ran.stderr().contains(expected), "{}", ran.stderr());
    }
    assert_eq!(names(&world.home().join("db/templates")).iter().filter(|name| *name == "t").count(), 1);
}
