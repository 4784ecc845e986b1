//! Commands beside one another, each stopped for a while at the worst moment (strace's injection).

use std::path::Path;
use std::time::Duration;

use calve_testkit::require_program;
use fs_err as fs;
use rustix::fs::FlockOperation;

use crate::world::{Engine, Postgres, World, eventually, kill, names};

fn is_free(lock: &Path) -> bool {
    let lock = fs::File::open(lock).unwrap();
    rustix::fs::flock(lock.file(), FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[test]
fn a_server_may_end_while_another_command_looks_for_what_was_left() {
    if !require_program("strace") {
        return;
    }
    let Some((world, server)) = World::with_server(Postgres) else { return };
    let servers = world.home().join("db/servers");
    let lock = servers.join("a/lock").to_string_lossy().into_owned();
    // It has read that there is a server `a`, and goes on two seconds later.
    let slowly = ["strace", "-o", "/dev/null", "-P", &lock, "-e", "inject=openat:delay_enter=2000000:when=1"];
    let list = world.db_by(&slowly, ["list"]).spawn();
    eventually(|| if is_free(&servers.join(".lock")) { Err("it has not begun".into()) } else { Ok(()) });
    kill(server["pid"].as_u64().unwrap());
    let output = list.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    world.nothing_left();
}

#[test]
fn a_name_may_be_looked_at_while_it_is_taken() {
    if !require_program("strace") {
        return;
    }
    let Some(world) = World::having(Postgres) else { return };
    let lock = world.home().join("db/servers/a/lock");
    let slowly = ["strace", "-o", "/dev/null", "-P", &lock.to_string_lossy(), "-e", "inject=flock:delay_enter=1000000"];
    let start = world.db_by(&slowly, ["start", "t", "--name", "a"]).spawn();
    eventually(|| if lock.exists() { Ok(()) } else { Err("it has not begun".into()) });
    // As `list` does, for a moment.
    let looked = fs::File::open(&lock).unwrap();
    rustix::fs::flock(looked.file(), FlockOperation::NonBlockingLockShared).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    drop(looked);
    let output = start.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    world.stop("a");
}

/// Who sweeps waits for the end of a process that signed a lock and has died.
#[test]
fn the_lock_of_a_template_that_is_written_to_the_disk_is_that_of_its_builder() {
    if !require_program("strace") {
        return;
    }
    let Some(world) = World::having(Postgres) else { return };
    let slowly = ["strace", "-o", "/dev/null", "-e", "trace=syncfs", "-e", "inject=syncfs:delay_enter=1000000"];
    let build = world.db_by(&slowly, ["template", "create", "p", "--base", "t"]).spawn();
    let servers = world.home().join("db/servers");
    let mut signed = String::new();
    eventually(|| {
        let places = names(&servers).into_iter().map(|name| servers.join(name));
        // Written when its server has ended.
        let complete = places.filter(|place| place.join("template.json").exists());
        signed = complete.filter_map(|place| fs::read_to_string(place.join("lock")).ok()).collect();
        if signed.is_empty() { Err("it is not complete".into()) } else { Ok(()) }
    });
    let builder = signed.split(' ').next().unwrap();
    let command = fs::read_to_string(format!("/proc/{builder}/cmdline")).unwrap();
    assert!(command.contains("create\0p\0"), "{command}");
    assert!(build.wait_with_output().unwrap().status.success());
}

#[test]
fn a_template_is_there_all_the_time_while_it_is_made_again() {
    if !require_program("strace") {
        return;
    }
    let Some(world) = World::new() else { return };
    let words = ["template", "create", "p", "--engine", "postgres", "--rebuild"];
    world.db(words).succeeds();
    let slowly = ["strace", "-o", "/dev/null", "-e", "trace=/rename", "-e", "inject=/rename:delay_exit=500000"];
    let mut build = world.db_by(&slowly, words).spawn();
    let document = world.home().join("db/templates/p/template.json");
    while build.try_wait().unwrap().is_none() {
        assert!(document.exists(), "{:?}", names(document.ancestors().nth(2).unwrap()));
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = build.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = world.db(["start", "p", "--json"]).succeeds().json();
    assert_eq!(world.query(Engine::Postgres, &server, "SELECT 1"), "1");
    world.db(["stop", "--all"]).succeeds();
}
