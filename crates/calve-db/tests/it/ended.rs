//! Servers and commands that end unasked, and the messages about it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use calve_testkit::{copy_program, matrix, require_root};
use fs_err as fs;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, test_kill_process};
use serde_json::Value;

use crate::world::{Engine, Postgres, User, World, data_of, eventually, kill, names};

#[test]
fn a_server_that_ended_by_itself_leaves_its_reason_and_its_log() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let ready = "ready to accept connections";
    // Also while it runs.
    let log = world.db(["logs", "a"]).succeeds().stdout();
    assert!(log.contains(ready), "{log}");
    kill(server["pid"].as_u64().unwrap());
    world.nothing_runs();
    eventually(|| {
        let list = world.db(["list"]).succeeds().stdout();
        if list.contains("a  ended by itself (signal 9)") { Ok(()) } else { Err(list) }
    });
    let list = world.db(["list", "--json"]).succeeds().json();
    assert_eq!(list["servers"].as_array().unwrap().len(), 0);
    assert_eq!((&list["ended"][0]["name"], &list["ended"][0]["reason"]), (&"a".into(), &"ended_by_itself".into()));
    let log = world.db(["logs", "a"]).succeeds();
    assert!(log.stdout().contains(ready), "{}", log.stdout());
    assert!(log.stderr().contains("signal 9"), "{}", log.stderr());
    let told = ["the server `a` ended by itself (signal 9)", "hint: read the last lines of its log: calve db logs a\n"];
    for command in ["url", "reset", "stop"] {
        world.db([command, "a"]).fails(1, &told);
    }
    // Nothing else reads it.
    let logs = world.home().join("db/logs");
    assert_eq!(fs::metadata(&logs).unwrap().permissions().mode() & 0o777, 0o700);
    for name in names(&logs) {
        assert_eq!(fs::metadata(logs.join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // No command tells of the servers of others: test files of `prove -j` start servers beside one another.
    for words in [
        &["start", "t", "--name", "b"][..],
        &["url", "b"],
        &["reset", "b"],
        &["run", "t", "--", "true"],
        &["stop", "b"],
    ] {
        let stderr = world.db(words).succeeds().stderr();
        assert!(!stderr.contains("`a`"), "{stderr}");
    }
    // A new server has the name for itself.
    world.start("a");
    assert_eq!(world.db(["list", "--json"]).succeeds().json()["ended"], Value::Array(Vec::new()));
    world.stop("a");
    world.db(["url", "a"]).fails(1, &["there is no server `a`"]);
    world.db(["logs", "a"]).fails(1, &["there is no server `a`"]);
    world.nothing_left();
}

/// A log has what clients send, and can be of any length.
#[test]
fn a_log_is_shown_in_part_and_without_control_characters() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let noise = "DO $$ BEGIN FOR i IN 1..20000 LOOP RAISE LOG 'line % %', i, E'\\x1b[31mred'; END LOOP; END $$";
    world.query(Postgres, &server, noise);
    let log = world.db(["logs", "a"]).succeeds().stdout();
    assert!(log.contains("line 20000 ") && !log.contains("LOG:  line 1 ") && !log.contains('\x1b'), "{log}");
    assert!(log.len() <= 100_000, "{}", log.len());
    kill(server["pid"].as_u64().unwrap());
    world.nothing_runs();
    eventually(|| match world.db(["logs", "a"]).ends().stdout() {
        kept if kept.contains("line 20000 ") && kept.len() <= 100_000 => Ok(()),
        other => Err(other),
    });
    world.nothing_left();
}

#[test]
fn what_is_known_of_ended_servers_is_forgotten_after_a_while() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    kill(server["pid"].as_u64().unwrap());
    world.nothing_runs();
    let ended = || world.db(["list", "--json"]).succeeds().json()["ended"].as_array().unwrap().clone();
    eventually(|| if ended().len() == 1 { Ok(()) } else { Err("nothing is known of it".into()) });
    let logs = world.home().join("db/logs");
    let path = logs.join(&names(&logs)[0]);
    let mut document: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    // More than are kept.
    for number in 0..100 {
        document["name"] = format!("b{number}").into();
        fs::write(logs.join(format!("b{number}.ended.json")), document.to_string()).unwrap();
    }
    world.db(["gc", "-q"]).succeeds();
    assert!((1..100).contains(&ended().len()), "{}", ended().len());
    // Longer ago than they are kept.
    for name in names(&logs) {
        document["name"] = name.trim_end_matches(".ended.json").into();
        document["ended_unix_s"] = 1.into();
        fs::write(logs.join(name), document.to_string()).unwrap();
    }
    world.db(["gc", "-q"]).succeeds();
    assert_eq!((ended().len(), names(&logs)), (0, Vec::new()));
}

/// And all that it has started, as it does with the server.
#[test]
fn a_command_ends_with_the_program_that_runs_it() {
    let Some(world) = World::having(Postgres) else { return };
    // A shell that waits for a child, which has one too.
    let script = "sh -c 'sleep 1000 & echo $$ $!; wait' & echo $$; wait";
    for words in [&["run", "t"][..], &["template", "create", "p", "--base", "t"]] {
        let mut run = world.db(words).args(["--", "sh", "-c", script]).spawn();
        let lines: Box<dyn std::io::Read> = match words[0] {
            "run" => Box::new(run.stdout.take().unwrap()),
            _ => Box::new(run.stderr.take().unwrap()),
        };
        let lines = BufReader::new(lines).lines().map(Result::unwrap).take(2);
        let pids: Vec<i32> =
            lines.flat_map(|line| line.split(' ').map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect();
        assert_eq!(pids.len(), 3);
        run.kill().unwrap();
        run.wait().unwrap();
        eventually(|| {
            let lives = |pid: &&i32| {
                let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                // An orphan in a container without an init stays as a zombie.
                test_kill_process(Pid::from_raw(**pid).unwrap()).is_ok() && !state.contains(") Z ")
            };
            let left: Vec<&i32> = pids.iter().filter(lives).collect();
            if left.is_empty() { Ok(()) } else { Err(format!("still there: {left:?}")) }
        });
        world.nothing_left();
    }
}

#[test]
fn a_colon_in_the_path_of_all_files() {
    for engine in matrix(Engine::families()) {
        let Some(world) = World::new() else { return };
        let home = world.path().join("a:b");
        fs::create_dir(&home).unwrap();
        let create = ["template", "create", "p", "--engine", engine.name(), "-q", "--"];
        world.db(create).args(engine.client(engine.fill())).env("CALVE_HOME", &home).succeeds();
        let count = world.db(["run", "p", "--"]).args(engine.client(engine.count())).env("CALVE_HOME", &home);
        assert_eq!(count.succeeds().stdout().trim(), "1000");
    }
}

/// The advice fits the failure.
#[test]
fn a_port_that_only_root_may_have() {
    let Some(world) = World::of(crate::world::ordinary(), Postgres) else { return };
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if allowed.trim().parse::<u32>().unwrap() > 1 {
        let ran = world
            .db(["start", "t", "--tcp=1"])
            .fails(1, &["port 1 ", "hint: choose a port from 1024 on, or name none to get a free one\n"]);
        assert!(!ran.stderr().contains("CALVE_HOME"), "{}", ran.stderr());
    }
}

#[test]
fn a_data_directory_that_cannot_be_read() {
    if !require_root("another user's directory") {
        return;
    }
    let Some(world) = World::with(User::Unprivileged, None) else { return };
    let from = world.path().join("from");
    data_of(Postgres, &from);
    let ran = world.db(["template", "create", "p", "--engine", "postgres", "--from"]).arg(&from);
    let stderr = ran
        .fails(1, &["from`", "hint: run this as the owner of that directory, or name a copy that you may read\n"])
        .stderr();
    assert!(!stderr.contains("CALVE_HOME"), "{stderr}");
}

/// Hidden directories are passed over.
#[test]
fn no_message_names_the_directory_of_a_build() {
    let Some(world) = World::new() else { return };
    // The server of the template is killed by what fills it.
    let crash = "for process in /proc/[0-9]*; do if tr '\\0' ' ' < $process/cmdline | grep -q \"directories=$PGHOST\"; \
        then psql -qc 'SELECT 1'; kill -9 ${process#/proc/}; exit; fi; done";
    let words = ["template", "create", "p", "--engine", "postgres", "--", "sh", "-c", crash];
    let ran = world.db(words).ends();
    assert!(!ran.stderr().contains(".building-"), "{}", ran.stderr());
    let _ = ran.code(1);
    // A program that the server's account cannot run.
    let bin = world.path().join("bin");
    fs::create_dir(&bin).unwrap();
    copy_program("/bin/false", bin.join("initdb"));
    calve_testkit::write_program(bin.join("postgres"), "#!/bin/sh\necho 'postgres (PostgreSQL) 15.1'\n");
    let ran =
        world.db(["template", "create", "q", "--engine", "postgres", "--server-bin"]).arg(&bin).fails(1, &["initdb"]);
    assert!(!ran.stderr().contains(".building-"), "{}", ran.stderr());
    // What a killed command leaves of a build is called by the template's name.
    let words = ["template", "create", "r", "--engine", "postgres", "--", "sh", "-c", "kill -9 $PPID; sleep 1000"];
    let _ = world.db(words).ends();
    let ran = world.db(["gc"]).succeeds();
    assert!(!ran.stderr().contains(".building-"), "{}", ran.stderr());
    world.nothing_left();
}

#[test]
fn a_stop_of_a_damaged_record_ends_no_command_that_removes_a_container() {
    let Some(world) = World::having(Postgres) else { return };
    let slot = world.home().join("db/servers/a");
    fs::create_dir_all(&slot).unwrap();
    fs::write(slot.join("server.json"), "").unwrap();
    fs::write(slot.join("container.json"), "{}").unwrap();
    let mut sweeping = Command::new("sleep").arg("1000").spawn().unwrap();
    let started = crate::killed::started(&sweeping.id().to_string()).unwrap();
    fs::write(slot.join("lock"), format!("{} {started}\n", sweeping.id())).unwrap();
    let lock = fs::File::open(slot.join("lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    world.db(["stop", "a"]).fails(1, &["server.json` is damaged"]);
    assert!(sweeping.try_wait().unwrap().is_none());
    sweeping.kill().unwrap();
    sweeping.wait().unwrap();
}
