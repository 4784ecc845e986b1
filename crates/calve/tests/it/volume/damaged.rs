//! Images and records changed by others, disks that fill up, loop devices made by hand.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

#[test]
fn an_image_that_is_not_the_volumes_own_is_never_mounted() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    let image = host.image("work");
    let other = host.path().join("other");
    let cases: [(&str, &dyn Fn()); 6] = [
        ("image_missing", &|| fs_err::remove_file(&image).unwrap()),
        ("image_not_a_file", &|| {
            fs_err::remove_file(&image).unwrap();
            std::os::unix::fs::symlink(&other, &image).unwrap();
        }),
        ("no_file_system", &|| fs_err::write(&image, "").unwrap()),
        ("truncated", &|| {
            fs_err::OpenOptions::new().write(true).open(&image).unwrap().set_len(100 * MIB).unwrap();
        }),
        ("another_file_system", &|| {
            system(&["mkfs.btrfs", "-q", "-f", image.to_str().unwrap()]);
        }),
        ("record_damaged", &|| fs_err::write(image.with_file_name("volume.json"), "{}").unwrap()),
    ];
    for (code, damage) in cases {
        host.calve(["create", "work", "--size", "256M"]).succeeds();
        damage();
        let ran = host.calve(["attach", "work"]).fails(1);
        ran.says(&["`calve volume doctor work` shows all that is wrong with it"]);
        assert_eq!(host.devices("work"), [""; 0], "{code}");
        assert_eq!(host.findings("work"), [(code.to_owned(), false)]);
        host.calve(["doctor", "work"]).fails(1).hints();
        host.calve(["list"]).succeeds();
        host.calve(["list", "--json"]).succeeds().json();
        host.calve(["remove", "work", "--yes"]).succeeds();
        assert_eq!(names(host.path().join("home/volumes")), [".lock"]);
    }
}

#[test]
fn root_attaches_nothing_that_another_user_could_choose() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    let (his, target) = (host.path().join("his"), host.path().join("target"));
    for directory in [&his, &target] {
        fs_err::create_dir(directory).unwrap();
    }
    let give = |path: &Path| {
        let (user, group) = (rustix::fs::Uid::from_raw(UnprivilegedUser::UID), rustix::fs::Gid::from_raw(12345));
        rustix::fs::chown(path, Some(user), Some(group)).unwrap();
    };
    give(&his);
    let refuses = |home: &Path, named: &Path| {
        for command in [&["attach", "work"][..], &["attach", "work", "--print"], &["doctor", "work"]] {
            let ran = host.calve(command.iter().copied()).env("CALVE_HOME", home).fails(1);
            let says = format!("`{}` belongs to another user, or others can write to it", named.display());
            assert!(!ran.says(&[&says, "hint: have its owner run this, without `sudo`: it asks before it runs `mount` as root; or set CALVE_HOME to a directory of your own"]).stdout.contains("mount"));
        }
        assert_eq!(names(&target), [""; 0]);
    };
    // His record says where.
    let create = ["create", "work", "--size", "256M", "--sparse"];
    host.calve(create).env("CALVE_HOME", &his).by_somebody_else(&Reachable::new()).succeeds();
    let record = his.join("volumes/work/volume.json");
    let text = fs_err::read_to_string(&record).unwrap();
    let elsewhere = text.replace("\"tree\"", &format!("\"{}\"", target.display()));
    assert_ne!(text, elsewhere);
    fs_err::write(&record, elsewhere).unwrap();
    refuses(&his, &his);
    // A home of root's that leads to his, and root's own with one part that is his or that others may change.
    let home = host.path().join("home");
    std::os::unix::fs::symlink(his.join("volumes"), home.join("volumes")).unwrap();
    refuses(&home, &home.join("volumes"));
    fs_err::remove_file(home.join("volumes")).unwrap();
    host.calve(create).succeeds();
    for part in ["volumes/work/image", "volumes/work/volume.json", "volumes/work", "volumes"] {
        let part = home.join(part);
        let mode = fs_err::metadata(&part).unwrap().mode() & 0o7777;
        rustix::fs::chmod(&part, (mode | 0o020).into()).unwrap();
        refuses(&home, &part);
        rustix::fs::chmod(&part, mode.into()).unwrap();
        give(&part);
        refuses(&home, &part);
        rustix::fs::chown(&part, Some(rustix::fs::Uid::ROOT), None).unwrap();
    }
    host.attach("work");
    host.detach("work");
}

#[test]
fn what_was_not_made_with_the_volume_is_not_deleted() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    for place in ["mine", "tree/mine"] {
        let mine = host.image("work").with_file_name(place);
        fs_err::write(&mine, "mine").unwrap();
        let ran = host.calve(["remove", "work", "--yes"]).fails(1);
        ran.says(&["mine", "move that elsewhere first; only what was made with the volume is deleted"]);
        assert_eq!(fs_err::read_to_string(&mine).unwrap(), "mine");
        assert!(host.image("work").exists());
        fs_err::remove_file(&mine).unwrap();
    }
    host.calve(["remove", "work", "--yes"]).succeeds();
}

/// Frees a loop device that the test has made.
struct ByHand(String);

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn a_loop_device_made_by_hand_is_told() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let device = || ByHand(system(&["losetup", "-f", "--show", host.image("work").to_str().unwrap()]));
    let by_hand = device();
    let ran = host.calve(["attach", "work"]).fails(1);
    ran.says(&[&by_hand.0, "not mounted where it should be"]);
    assert_eq!(host.findings("work"), [("attached_elsewhere".into(), false)]);
    host.calve(["remove", "work", "--yes"]).fails(1).says(&["is attached"]);
    drop(by_hand);
    let top = host.attach("work");
    fs_err::write(top.join("file"), "text").unwrap();
    let by_hand = device();
    assert_eq!(host.findings("work"), [("attached_twice".into(), false)]);
    drop(by_hand);
    // The kernel frees it when its last user has closed it.
    eventually("the device made by hand is free", || host.devices("work").len() == 1);
    assert_eq!(host.findings("work"), []);
    host.detach("work");
}

#[test]
fn an_image_deleted_while_attached_can_still_be_read_and_detached() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.attach("work");
    fs_err::write(top.join("file"), "text").unwrap();
    fs_err::remove_file(host.image("work")).unwrap();
    assert_eq!(host.findings("work"), [("image_missing".into(), false)]);
    host.calve(["remove", "work", "--yes"]).fails(1).says(&["is attached"]);
    assert_eq!(fs_err::read_to_string(top.join("file")).unwrap(), "text");
    host.detach("work");
    host.calve(["remove", "work", "--yes"]).succeeds();
}

#[test]
fn something_else_at_the_mount_point_is_left_alone() {
    let Some(host) = Host::new(512 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let top = host.image("work").with_file_name("tree");
    fs_err::create_dir(host.path().join("else")).unwrap();
    let other = calve_testkit::BindMount::new(host.path().join("else"), &top);
    host.calve(["attach", "work"]).fails(1).says(&["mounted there"]);
    host.calve(["detach", "work"]).succeeds();
    host.calve(["remove", "work", "--yes"]).fails(1);
    assert!(host.image("work").exists());
    drop(other);
    assert_eq!(host.findings("work"), []);
    fs_err::write(top.join("file"), "").unwrap();
    host.calve(["attach", "work"]).fails(1).says(&["not empty", "hint: it has to be an empty directory of its own"]);
    assert_eq!(host.findings("work"), [("mount_point".into(), false)]);
    let told = host.calve(["doctor", "work"]).fails(1);
    told.says(&["it is not empty", "hint: make ", " an empty directory, then: calve volume attach work"]);
    fs_err::remove_dir_all(&top).unwrap();
    assert_eq!(host.findings("work"), [("mount_point".into(), false)]);
}

/// Fills the host's disk, and so takes its room.
#[test]
fn a_full_host_makes_a_sparse_one_read_only_and_loses_nothing_that_was_synced() {
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "600M", "--sparse"]).succeeds();
    let top = host.attach("work");
    node_modules_like(top.join("tree"), 200);
    system(&["cp", "-a", top.join("tree").to_str().unwrap(), host.path().join("same").to_str().unwrap()]);
    system(&["sync", "-f", top.to_str().unwrap()]);
    let free = rustix::fs::statvfs(host.path()).unwrap();
    let free = free.f_bavail * free.f_frsize;
    system(&["fallocate", "-l", &(free - 2 * MIB).to_string(), host.path().join("hog").to_str().unwrap()]);
    assert_eq!(host.findings("work"), [("host_short".into(), false)]);
    // As root takes the blocks that ext4 keeps for root, too.
    let _ = Command::new("dd")
        .args(["if=/dev/zero", "bs=64k"])
        .arg(format!("of={}", host.path().join("hog2").display()))
        .stderr(Stdio::null())
        .status();
    let large = vec![b'x'; usize::try_from(64 * MIB).unwrap()];
    let written = fs_err::write(top.join("large"), large);
    let synced = Command::new("sync").arg("-f").arg(&top).stderr(Stdio::null()).status().unwrap();
    assert!(written.is_err() || !synced.success(), "nothing was lacking");
    assert!(host.findings("work").contains(&("read_only".into(), false)));
    for hog in ["hog", "hog2"] {
        fs_err::remove_file(host.path().join(hog)).unwrap();
    }
    host.detach("work");
    assert_eq!(host.attach("work"), top);
    assert_same(host.path().join("same"), top.join("tree"));
    fs_err::write(top.join("more"), "more").unwrap();
    host.detach("work");
    system(&["btrfs", "check", host.image("work").to_str().unwrap()]);
}

/// Another program fills the disk after the free space was looked at.
#[test]
fn a_grow_that_fails_gives_back_what_it_took() {
    if !require_program("strace") {
        return;
    }
    let Some(host) = Host::new(1024 * MIB) else { return };
    host.calve(["create", "work", "--size", "256M"]).succeeds();
    let inject = "inject=fstatfs:signal=STOP:when=1";
    let log = host.path().join("log");
    let strace = ["strace", "-f", "-o", log.to_str().unwrap(), "-e", "trace=fstatfs", "-e", inject];
    let running = host.calve(["grow", "work", "--size", "600M"]).under(&strace).start();
    let stopped = || {
        let log = fs_err::read_to_string(&log).ok()?;
        log.lines().find(|line| line.contains("stopped by SIGSTOP"))?.split_whitespace().next()?.parse().ok()
    };
    eventually("it has looked at the free space", || stopped().is_some());
    let free = || {
        let found = rustix::fs::statvfs(host.path()).unwrap();
        found.f_bavail * found.f_frsize
    };
    system(&["fallocate", "-l", &(free() - 64 * MIB).to_string(), host.path().join("hog").to_str().unwrap()]);
    let before = free();
    kill_process(Pid::from_raw(stopped().unwrap()).unwrap(), Signal::CONT).unwrap();
    running.wait().ended(1);
    assert_eq!(fs_err::metadata(host.image("work")).unwrap().len(), 256 * MIB);
    assert!(free() + MIB > before, "{} of {before}", free());
    assert_eq!(host.findings("work"), []);
}
