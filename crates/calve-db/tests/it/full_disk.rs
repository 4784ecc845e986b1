//! Servers on a disk without any room.

use std::time::Duration;

use calve_testkit::FileSystem;
use rustix::process::Signal;

use crate::marks::{down, ends, mark, reset};
use crate::world::{Mariadb, Postgres, User, World, eventually, fill, kill, ordinary, signal};

/// Leaves no block at all, not even for a record.
pub(crate) fn fill_all(world: &World) -> fs_err::File {
    let filler = fill(world.path(), 16 << 20);
    for (name, bytes) in [("rest", "64k"), ("last", "512")] {
        let to = format!("of={}", world.home().join(name).display());
        let full = world.inside(&["dd", "if=/dev/zero", &format!("bs={bytes}"), &to, "conv=fsync"]).output().unwrap();
        assert!(!full.status.success(), "{full:?}");
    }
    filler
}

/// Returns whether a process that does not run has this request to end.
fn is_asked_to_end(pid: u64, by: Signal) -> bool {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(pending.trim(), 16).unwrap() & (1 << (by.as_raw() - 1)) != 0
}

/// MariaDB may wait for free space, before it ends, and so does the test's PostgreSQL. When it does depends on what it has
/// to write.
#[test]
fn a_mark_of_a_server_that_waits_on_a_disk_without_any_room() {
    for (engine, by) in [(Mariadb, Signal::TERM), (Postgres, Signal::INT)] {
        let Some(world) = World::at(FileSystem::Ext4, User::This, engine) else { return };
        let server = world.start("a");
        world.query(engine, &server, engine.shrink());
        let pid = server["pid"].as_u64().unwrap();
        signal(pid, Signal::STOP);
        let mut marking = world.db(["mark", "a", "m"]).spawn();
        // There was room when it was asked to end.
        while !is_asked_to_end(pid, by) {
            assert_eq!(marking.try_wait().unwrap(), None, "it was not asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        let filler = fill_all(&world);
        assert_eq!(ends(&mut marking), Some(1));
        filler.set_len(0).unwrap();
        // It goes on with what it had, or is down where not even a start has room, until it is marked.
        mark(&world, "m");
        assert_eq!(world.rows(engine, &server), "10");
        world.stop_last("a");
    }
}

/// A server that crashes starts again by itself, and that of a mark which fails is started again.
#[test]
fn what_is_committed_outlives_a_crash_of_the_server() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    for rows in 1001..1006 {
        // A session ends as a crash when one of its own processes is killed, just after the commit.
        world.query(Postgres, &server, Postgres.add());
        for child in children(server["pid"].as_u64().unwrap()) {
            // The first death ends the others.
            kill(child);
        }
        eventually(|| match world.client(Postgres, &server, Postgres.count()).output().unwrap() {
            output if output.status.success() && output.stdout == format!("{rows}\n").into_bytes() => Ok(()),
            output => Err(format!("{output:?}")),
        });
    }
    world.stop_last("a");
}

fn children(pid: u64) -> Vec<u64> {
    let listed = fs_err::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    listed.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

#[test]
fn a_server_that_went_down_on_a_full_disk_is_listed_as_down() {
    let Some(world) = World::at(FileSystem::Xfs, ordinary(), Postgres) else { return };
    let server = world.start("a");
    let filler = fill_all(&world);
    world.db(["reset", "a"]).fails(1, &["free some space"]);
    // Its record cannot be written, and has the process of before.
    assert_eq!(world.db(["list", "--json"]).succeeds().json()["servers"][0]["pid"], serde_json::Value::Null);
    filler.set_len(0).unwrap();
    eventually(|| match &down(&world)[..] {
        [name] if name == "a" => Ok(()),
        down => Err(format!("{down:?}")),
    });
    reset(&world, None);
    assert_eq!((down(&world), world.rows(Postgres, &server)), (vec![], "1000".to_owned()));
    world.stop_last("a");
}
