//! The unprivileged user is one.

use calve_testkit::{FileSystem, Tree, UnprivilegedUser, Volume, require_root};

#[test]
fn it_owns_what_it_makes_and_reads_nothing_private() {
    if !require_root("another user") {
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else {
        return;
    };
    Tree::new(volume.path()).file("private", b"secret").mode("private", 0o600);
    let run = |script: &str| {
        UnprivilegedUser::command("sh").args(["-c", script]).current_dir(volume.path()).output().unwrap()
    };
    assert!(!run("cat private").status.success());
    assert!(run("touch mine").status.success());
    let stat = rustix::fs::stat(volume.path().join("mine")).unwrap();
    assert_eq!((stat.st_uid, stat.st_gid), (UnprivilegedUser::UID, UnprivilegedUser::GID));
    let identity = String::from_utf8(run("id -G; grep CapEff /proc/self/status").stdout).unwrap();
    assert_eq!(identity, "12345\nCapEff:\t0000000000000000\n");
}
