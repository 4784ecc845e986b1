//! Death of any command, or of the machine, at any moment: the next one works, and nothing in the volume is lost.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use calve_testkit::{SplitMix64, few_rounds, unmount_whole};

use super::*;
use crate::kill::Killer;

#[test]
fn a_command_killed_at_any_moment_is_put_right_by_the_next_one() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    node_modules_like(top.join("tree"), 100);
    let same = host.path().join("same");
    system(&["cp", "-a", top.join("tree").to_str().unwrap(), same.to_str().unwrap()]);
    let mut killer = Killer::new(7);
    let mut size = 256;
    for round in 0..rounds(25) {
        match round % 5 {
            0 => killer.let_run(host.calve(["detach", "work"])),
            1 => {
                host.calve(["detach", "work"]).succeeds();
                killer.let_run(host.calve(["attach", "work"]))
            }
            2 => {
                size += 4;
                killer.let_run(host.calve(["grow", "work", "--size", &format!("{size}M")]))
            }
            3 => {
                let _ = host.calve(["remove", "other", "--yes"]).run();
                killer.let_run(host.calve(["create", "other", "--size", "256M"]))
            }
            _ => {
                let _ = host.calve(["create", "other", "--size", "256M"]).run();
                killer.let_run(host.calve(["remove", "other", "--yes"]))
            }
        };
        assert_eq!(host.attach("work"), top);
        assert_same(&same, top.join("tree"));
        assert!(host.findings("work").iter().all(|(_, repaired)| *repaired), "round {round}");
        assert_eq!(host.devices("work").len(), 1, "round {round}");
        assert!(
            names(host.path().join("home/volumes"))
                .iter()
                .all(|name| [".lock", "other", "work"].contains(&name.as_str()))
        );
    }
    assert!(few_rounds() || killer.killed() > 3, "only {} were killed", killer.killed());
    host.detach("work");
    system(&["btrfs", "check", host.image("work").to_str().unwrap()]);
    let _ = host.calve(["remove", "other", "--yes"]).run();
    host.calve(["remove", "work", "--yes"]).succeeds();
    assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
}

/// A host whose disk is a file that can be cloned in one step, while the host goes on.
fn host_on_a_file() -> Option<Host> {
    let volume = possible(FileSystem::Xfs, 2048 * MIB)?;
    let host = Host { top: volume.path().join("host"), volume };
    fs_err::create_dir(host.path()).unwrap();
    let disk = host.volume.path().join("disk");
    fs_err::File::create(&disk).unwrap().set_len(512 * MIB).unwrap();
    system(&["mkfs.ext4", "-qF", disk.to_str().unwrap()]);
    mount(&host, "disk");
    fs_err::create_dir(host.path().join("home")).unwrap();
    Some(host)
}

fn mount(host: &Host, disk: &str) {
    let disk = host.volume.path().join(disk);
    system(&["mount", "-o", "loop", disk.to_str().unwrap(), host.path().to_str().unwrap()]);
}

/// Writes files until it is to stop. Of three, two are synced, and then listed with their contents.
fn write(top: &Path, synced: &Mutex<Vec<(String, Vec<u8>)>>, stop: &AtomicBool) {
    let mut random = SplitMix64::new(3);
    for number in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
        let name = format!("f{number}");
        let contents = name.repeat(1 + usize::try_from(random.below(20_000)).unwrap()).into_bytes();
        let mut file = fs_err::File::create(top.join(&name)).unwrap();
        file.write_all(&contents).unwrap();
        if number % 3 != 0 {
            file.sync_all().unwrap();
            synced.lock().unwrap().push((name, contents));
        }
    }
}

/// The disk as it is at some moment, as after a power failure. The loss of the cache of a disk itself is not tested.
#[test]
fn what_was_synced_is_there_after_a_power_failure() {
    let Some(host) = host_on_a_file() else { return };
    host.calve(["create", "work", "--size", "400M"]).succeeds();
    let top = host.attach("work");
    let (synced, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let mut random = SplitMix64::new(11);
    let failures: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| write(&top, &synced, &stop));
        eventually("something is synced", || !synced.lock().unwrap().is_empty());
        let moments = 0..rounds(3);
        let failures = moments.map(|number| {
            thread::sleep(Duration::from_millis(20 + random.below(200)));
            let (until, disk) = (synced.lock().unwrap().len(), format!("disk{number}"));
            let (from, to) = (host.volume.path().join("disk"), host.volume.path().join(&disk));
            system(&["cp", "--reflink=always", from.to_str().unwrap(), to.to_str().unwrap()]);
            (until, disk)
        });
        let failures = failures.collect();
        stop.store(true, Ordering::Relaxed);
        failures
    });
    host.detach("work");
    unmount_whole(host.path()).unwrap();
    let synced = synced.into_inner().unwrap();
    for (until, disk) in failures {
        mount(&host, &disk);
        assert_eq!(host.attach("work"), top);
        for (name, contents) in &synced[..until] {
            assert!(fs_err::read(top.join(name)).is_ok_and(|found| found == *contents), "{disk}: {name}");
        }
        assert_eq!(host.findings("work"), []);
        host.detach("work");
        system(&["btrfs", "check", host.image("work").to_str().unwrap()]);
        unmount_whole(host.path()).unwrap();
    }
}
