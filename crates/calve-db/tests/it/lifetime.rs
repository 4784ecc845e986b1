//! When servers end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

use calve_testkit::write_program;
use rustix::process::{Pid, Signal, kill_process};

use crate::patience::Patience;
use crate::world::{Engine, Mariadb, Postgres, World, eventually, until};

#[test]
fn a_server_ends_when_its_time_is_over() {
    let Some(world) = World::having(Postgres) else { return };
    let started = Instant::now();
    let server = world.db(["start", "t", "--name", "a", "--ttl", "2s", "--json"]).succeeds().json();
    assert_eq!(server["expires_unix_s"].as_u64().unwrap(), server["started_unix_s"].as_u64().unwrap() + 2);
    let rows = world.client(Postgres, &server, "SELECT count(*) FROM t").output().unwrap();
    // Not before.
    assert!(rows.status.success() || started.elapsed() >= Duration::from_secs(2), "{rows:?}");
    eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    assert!(started.elapsed() >= Duration::from_secs(2));
    world.nothing_left();
}

#[test]
fn a_server_ends_with_the_first_of_its_owners() {
    let Some(world) = World::having(Postgres) else { return };
    for standbys in ["0", "1"] {
        for (count, first) in [(1, 0), (2, 0), (2, 1)] {
            world.db(["pool", "t", "-q", "--size", standbys]).succeeds();
            let mut owners: Vec<_> = (0..count).map(|_| Command::new("sleep").arg("1000").spawn().unwrap()).collect();
            let words = owners.iter().flat_map(|owner| ["--owner-pid".to_owned(), owner.id().to_string()]);
            let server = world.db(["start", "t", "--name", "a", "--json"]).args(words).succeeds().json();
            assert_eq!((&server["owner_pid"], &server["standby"] == true), (&owners[0].id().into(), standbys == "1"));
            assert_eq!(world.rows(Postgres, &server), "1000");
            world.db(["pool", "t", "-q", "--size", "0"]).succeeds();
            let mut ended = owners.remove(first);
            ended.kill().unwrap();
            ended.wait().unwrap();
            world.nothing_runs();
            world.nothing_left();
            for mut owner in owners {
                owner.kill().unwrap();
                owner.wait().unwrap();
            }
        }
    }
}

#[test]
fn a_command_has_its_server_as_long_as_it_runs() {
    for engine in Engine::families() {
        let Some(world) = World::having(engine) else { return };
        let script = "echo \"${DATABASE_URL:-$REDIS_URL}\"; exit 7";
        let ran = world.db(["run", "t", "--", "sh", "-c", script]).ends().code(7);
        let scheme = match engine {
            Postgres => "postgresql://",
            Mariadb => "mysql://",
            _ => "unix://",
        };
        assert!(ran.stdout().starts_with(scheme), "{}", ran.stdout());
        world.nothing_left();
        // Ended by a signal: as shells tell it.
        world.db(["run", "t", "--", "sh", "-c", "kill -9 $$"]).ends().code(128 + 9);
        world.db(["run", "t", "--", "/nonexistent/program"]).fails(127, &["/nonexistent/program"]);
        world.nothing_left();
    }
}

#[test]
fn a_server_is_kept_when_the_command_fails_if_that_is_wanted() {
    let Some(world) = World::having(Postgres) else { return };
    let ran = world.db(["run", "t", "--keep-on-failure", "--", "sh", "-c", "exit 3"]).ends().code(3);
    assert!(ran.stderr().contains("postgresql://"), "{}", ran.stderr());
    let list = world.db(["list", "--json"]).succeeds().json();
    assert_eq!(world.rows(Postgres, &list["servers"][0]), "1000");
    world.db(["stop", "--all"]).succeeds();
    world.db(["run", "t", "--keep-on-failure", "--", "true"]).succeeds();
    world.nothing_left();
}

#[test]
fn a_command_that_outlives_its_server_keeps_its_exit_code() {
    let Some(world) = World::having(Postgres) else { return };
    let calve = World::program();
    let until_gone = "while [ -e \"$PGHOST\" ]; do sleep 0.05; done; exit 7";
    let kill = |field: &str| {
        let pid = format!("s/^ *\"{field}\": \\([0-9]*\\),*$/\\1/p");
        format!("kill -9 $({} db list --json | sed -n '{pid}'); {until_gone}", calve.display())
    };
    for (option, script, reason) in [
        ("--ttl=1s", until_gone, "ended when its time to live expired"),
        ("--keep-on-failure", &format!("{} db stop -q --all; exit 7", calve.display()), "was stopped meanwhile"),
        ("--quiet", &kill("pid"), "ended by itself (signal 9)"),
    ] {
        let ran = world.db(["run", "t", option, "--", "sh", "-c", script]).ends().code(7);
        let said = ran.stderr();
        assert!(said.starts_with("warning: the server `t-") && said.ends_with(&format!(" {reason}\n")), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let ran = world.db(["run", "t", "--", "sh", "-c", "kill -9 $(pgrep -f -P $PPID '__supervise$')"]).succeeds();
    assert!(ran.stderr().contains("warning: the supervisor of the server `t-"), "{}", ran.stderr());
    world.db(["gc"]).succeeds();
    world.nothing_left();
}

#[test]
fn what_a_server_is_doing_does_not_keep_it() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let busy = "SELECT count(*) FROM generate_series(1, 100000000000)";
    let mut client = world.client(Postgres, &server, busy);
    let mut client = client.stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    world.stop_last("a");
    client.wait().unwrap();
}

#[test]
fn reset_during_a_transaction() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let pauses = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let sql = "BEGIN; LOCK TABLE t; DELETE FROM t; SELECT pg_sleep(1000)";
    let mut client = world.client(Postgres, &server, sql);
    let client = client.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    eventually(|| match world.query(Postgres, &server, pauses).as_str() {
        "1" => Ok(()),
        other => Err(other.to_owned()),
    });
    world.db(["reset", "a"]).succeeds();
    let patience = Patience::new(Duration::from_secs(5));
    let ended = client.wait_with_output().unwrap();
    assert!(!patience.is_over(), "its session went on");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("server closed the connection"), "{said}");
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_last("a");
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing() {
    let Some(world) = World::having(Postgres) else { return };
    // A server that never answers.
    let program = world.path().join("server");
    let script = "case $1 in --version) echo 'postgres (PostgreSQL) 15.1';; *) exec sleep 1000;; esac";
    write_program(&program, format!("#!/bin/sh\n{script}\n"));
    let path = world.home().join("db/templates/t/template.json");
    let mut template: serde_json::Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    template["program"] = program.to_string_lossy().into_owned().into();
    fs_err::write(&path, template.to_string()).unwrap();
    for words in [&["start", "t"][..], &["run", "t", "--", "false"], &["template", "create", "p", "--base", "t"]] {
        let start = world.db(words).spawn();
        let waits = || world.processes().iter().any(|process| process.contains("sleep 1000"));
        eventually(|| if waits() { Ok(()) } else { Err("no server".into()) });
        kill_process(Pid::from_child(&start), Signal::INT).unwrap();
        let output = start.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{words:?}: {output:?}");
        assert_eq!(output.stdout, b"");
        world.nothing_left();
    }
}

#[test]
fn a_command_is_told_when_its_server_s_owner_is_asked_to_end() {
    let Some(world) = World::having(Postgres) else { return };
    for signal in [Signal::TERM, Signal::HUP] {
        let script = format!("trap 'echo told; exit 7' TERM HUP; echo ready; {}", until("over"));
        let mut run = world.db(["run", "t", "--", "sh", "-c", &script]).spawn();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "ready");
        kill_process(Pid::from_child(&run), signal).unwrap();
        assert_eq!(lines.next().unwrap(), "told");
        assert_eq!(run.wait().unwrap().code(), Some(7));
        world.nothing_left();
    }
    // The terminal tells the command of a Ctrl-C, which may go on.
    let mut run = world.db(["run", "t", "--", "sh", "-c", &format!("echo ready; {}", until("over"))]).spawn();
    let mut line = String::new();
    BufReader::new(run.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    for _ in 0..3 {
        kill_process(Pid::from_child(&run), Signal::INT).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(run.try_wait().unwrap().is_none());
    fs_err::write(world.path().join("over"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(0));
    world.nothing_left();
}

#[test]
fn commands_are_quiet_when_that_is_asked_for() {
    let Some(world) = World::having(Postgres) else { return };
    for words in [
        &["template", "create", "p", "--base", "t"][..],
        &["start", "p", "--name", "a"],
        &["reset", "a"],
        &["run", "p", "--", "true"],
        &["stop", "a"],
        &["template", "remove", "p"],
        &["gc"],
    ] {
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let quiet = [&words[..at], &["--quiet"], &words[at..]].concat();
        let ran = world.db(quiet).succeeds();
        assert_eq!((ran.stderr(), ran.stdout().lines().count()), (String::new(), usize::from(words[0] == "start")));
        // Had the server the pipe that is read here, no start would end before the server does.
        assert!(words[0] != "start" || ran.stdout().starts_with("postgresql://"), "{}", ran.stdout());
    }
    world.nothing_left();
}

/// Neither one who says nothing nor one who is slow.
#[test]
fn nobody_keeps_a_supervisor_waiting() {
    let Some(world) = World::having(Postgres) else { return };
    world.start("a");
    let record = fs_err::read(world.home().join("db/servers/a/server.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let control = record["control"].as_str().unwrap();
    let _silent = UnixStream::connect(control).unwrap();
    let mut slow = UnixStream::connect(control).unwrap();
    slow.write_all(b"\"Sto").unwrap();
    world.db(["reset", "a"]).succeeds();
    std::thread::sleep(Duration::from_millis(1500));
    slow.write_all(b"p\"\n").unwrap();
    let mut answer = String::new();
    BufReader::new(slow).read_line(&mut answer).unwrap();
    assert!(answer.contains("Stopped"), "{answer}");
    world.nothing_left();
}

/// The supervisor of a server that runs while Calve is replaced is the old one, and nothing that the server has may be lost for that.
#[test]
fn a_supervisor_of_another_version_is_named() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let record = fs_err::read(world.home().join("db/servers/a/server.json")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let control = record["control"].as_str().unwrap();
    let aside = format!("{control}.aside");
    for answer in [r#"{"Ready":{"record":{}}}"#, r#""SomethingNew""#] {
        for question in [&["reset", "a"][..], &["mark", "a", "m"], &["unmark", "a", "m"]] {
            fs_err::rename(control, &aside).unwrap();
            let listener = UnixListener::bind(control).unwrap();
            let other = std::thread::spawn(move || {
                let (mut asking, _) = listener.accept().unwrap();
                BufReader::new(&asking).read_line(&mut String::new()).unwrap();
                asking.write_all(answer.as_bytes()).unwrap();
            });
            let said = [
                "the server `a` was started by another version of Calve",
                "hint: save what you need of it, then stop it: calve db stop a",
            ];
            world.db(question).fails(1, &said);
            other.join().unwrap();
            fs_err::rename(&aside, control).unwrap();
            assert_eq!(world.rows(Postgres, &server), "1000");
        }
    }
    world.stop_last("a");
}
