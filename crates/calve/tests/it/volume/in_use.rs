//! A volume that is used by somebody: it stays attached, and who uses it is told.

use std::thread::sleep;
use std::time::Duration;

use super::*;

const HINT: &str = "leave its directories and end those processes (`calve down` or `calve db stop NAME` ends a server), then try again";

#[test]
fn what_is_let_go_in_a_moment_is_waited_for() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let inner = host.attach("work").join("inner");
    fs_err::File::create(&inner).unwrap().set_len(MIB).unwrap();
    // No process has it open, only the kernel.
    let device = system(&["losetup", "-f", "--show", inner.to_str().unwrap()]);
    let detaching = host.calve(["detach", "work"]).start();
    sleep(Duration::from_millis(300));
    system(&["losetup", "-d", &device]);
    detaching.wait().ended(0);
    assert_eq!(host.devices("work"), [""; 0]);
}

#[test]
fn a_volume_in_use_stays_attached() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    let mut user = Command::new("cat").current_dir(&top).stdin(Stdio::piped()).spawn().unwrap();
    let ran = host.calve(["detach", "work"]).within(&top).run();
    user.kill().unwrap();
    user.wait().unwrap();
    ran.ended(1);
    assert!(!ran.stderr.contains("calve ("), "{}", ran.stderr);
    ran.says(&[&format!("cat ({})", user.id()), HINT]);
    assert_eq!(host.devices("work").len(), 1);
    host.detach("work");
}

#[test]
fn a_mount_in_a_volume_is_named() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let inside = host.attach("work").join("in side");
    fs_err::create_dir(&inside).unwrap();
    let mount = BindMount::new(host.path().join("home"), &inside);
    let (at, hint) = (inside.display(), format!("hint: unmount it first: umount '{}'\n", inside.display()));
    let ran = host.calve(["detach", "work"]).fails(1);
    ran.says(&[&format!("the volume `work` is in use: `{at}` is mounted below it"), &hint]);
    drop(mount);
    host.detach("work");
}

/// A program with mounts of its own has this one, too, and keeps it if it is unmounted here.
#[test]
fn a_mount_in_another_namespace_is_told() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    let mut other = Command::new("unshare");
    other.args(["-m", "--propagation", "private", "cat"]);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // Its answer shows that it has them.
    other.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    other.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let run = |words: &[&'static str]| host.calve(words.iter().copied()).run();
    let (first, is_attached) = (run(&["detach", "work"]), host.listed("work")["attached"] == true);
    system(&["umount", top.to_str().unwrap()]);
    let ran = [first, run(&["detach", "work"]), run(&["remove", "work", "--yes"])];
    drop(other.stdin.take());
    other.wait().unwrap();
    assert!(is_attached);
    for ran in ran {
        ran.ended(1);
        ran.says(&[&format!("cat ({})", other.id()), HINT]);
    }
    host.detach("work");
}
