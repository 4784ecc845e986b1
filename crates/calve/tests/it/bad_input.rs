//! What cannot be cloned, or not there: each ends with an error that helps, and with nothing made or changed.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use calve_testkit::{
    FileSystem, FuseOptions, FuseVolume, Injection, Volume, assert_same, fingerprint, node_modules_like,
    require_program, require_root, rounds, run_injected, wide,
};
use rustix::process::Signal;
use serde_json::json;

use crate::process::send;
use crate::program::{Reachable, calve, cp, rm};
use crate::spot::{Spot, eventually_nothing_left, leftovers, names, nothing_left};

#[test]
fn the_destination_exists() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    spot.tree("").file("file", b"2").symlink("dangling", "nowhere").fifo("fifo").dir("dir");
    for existing in ["file", "dangling", "fifo", "dir"] {
        let before = fingerprint(&spot);
        cp().args(["-T", "src", existing]).within(&spot).fails(1).says(&[
            "name another destination; `--replace` swaps the clone in and deletes what is there now",
            existing,
            "already exists",
        ]);
        before.assert_unchanged(&spot);
    }
    // Nothing is written through a link.
    cp().args(["file", "dangling"]).within(&spot).fails(1).says(&["already exists"]);
    assert!(!spot.join("nowhere").exists());
}

#[test]
fn one_is_inside_the_other() {
    let spot = Spot::anywhere();
    spot.tree("src").file("d/a", b"1");
    spot.tree("").symlink("elsewhere", "src/d");
    let before = fingerprint(spot.join("src"));
    for dst in ["src/new", "src/d/new", "src/d/../d/new", "elsewhere/new", "src", "src/"] {
        cp().args(["src", dst]).within(&spot).fails(1).hints();
        before.assert_unchanged(spot.join("src"));
    }
    cp().args([".", "d/new"])
        .within(spot.join("src"))
        .fails(1)
        .says(&["clone to a place outside the source, for example beside it", "inside the source"]);
    cp().args(["--replace", "-T", "src", "src/d"]).within(&spot).fails(1).says(&["inside the source"]);
    before.assert_unchanged(spot.join("src"));
    // The other way round.
    spot.tree("dst").file("src/a", b"1").file("b", b"2");
    let before = fingerprint(spot.join("dst"));
    for src in ["dst/src", "dst/src/a"] {
        cp().args(["-T", src, "dst"]).within(&spot).fails(1).says(&["move the source out of the destination first"]);
        cp().args(["--replace", "-T", src, "dst"]).within(&spot).fails(1).says(&["dst"]).hints();
        before.assert_unchanged(spot.join("dst"));
        nothing_left(&spot);
    }
}

#[test]
fn a_symlink_that_leads_nowhere_or_to_itself_is_cloned_as_it_is() {
    let spot = Spot::anywhere();
    spot.tree("").symlink("link", "nowhere").dir("by cp");
    let receipt = cp().args(["--json", "link", "new"]).within(&spot).succeeds().json();
    assert_eq!(fs_err::read_link(spot.join("new")).unwrap(), Path::new("nowhere"));
    assert_eq!(receipt["entries"]["symlinks"], 1);
    // With a slash it has to be a directory.
    cp().args(["link/", "newer"]).within(&spot).fails(1).says(&["`link/`"]).hints();
    spot.holds(&["by cp", "link", "new"]);
    // One that leads to itself.
    spot.tree("").symlink("loop", "loop");
    cp().args(["loop", "of it"]).within(&spot).succeeds();
    assert_eq!(fs_err::read_link(spot.join("of it")).unwrap(), Path::new("loop"));
    cp().args(["loop/", "newer"])
        .within(&spot)
        .fails(1)
        .says(&["the path goes through an unexpected symlink, or a loop of symlinks; check the path", "`loop/`"]);
    cp().args(["loop/x", "newer"]).within(&spot).fails(1);
    spot.holds(&["by cp", "link", "loop", "new", "of it"]);
}

#[test]
fn a_socket() {
    let spot = Spot::anywhere();
    spot.tree("").socket("socket").file("src/a", b"1");
    let words = ["`socket`", "it is a socket", "hint: clone a directory, a regular file, a symlink or a FIFO\n"];
    cp().args(["socket", "new"]).within(&spot).fails(1).says(&words);
    // Inside a tree it is left out, and that is said.
    spot.tree("src").socket("s");
    let ran = cp().args(["--json", "src", "new"]).within(&spot).succeeds();
    assert_eq!(ran.json()["skipped"], json!([{ "path": "s", "reason": "socket" }]));
    assert_eq!(names(spot.join("new")), ["a"]);
    ran.says(&["warning: left out `s` (socket)"]);
}

#[test]
fn a_fifo_and_a_device() {
    let spot = Spot::anywhere();
    spot.tree("").fifo("fifo");
    // It has no writer: opening it would hang.
    let receipt = cp().args(["--json", "fifo", "new"]).within(&spot).succeeds().json();
    assert_eq!(receipt["entries"]["fifos"], 1);
    assert_same(&spot, &spot);
    if !require_root("a device node") {
        return;
    }
    // As cp does, the node and not its device.
    cp().args(["/dev/zero", "zero"]).within(&spot).succeeds();
    let stat = rustix::fs::stat(spot.join("zero")).unwrap();
    assert_eq!(stat.st_rdev, rustix::fs::stat("/dev/zero").unwrap().st_rdev);
}

#[test]
fn the_source_is_the_destination() {
    let spot = Spot::anywhere();
    spot.tree("").file("file", b"1").hard_link("same", "file").file("dir/a", b"2").symlink("link", "dir");
    let before = fingerprint(&spot);
    for (src, dst) in [("file", "file"), ("file", "./file"), ("dir", "link/../dir"), ("file", "same"), ("dir/", "dir")]
    {
        cp().args(["-T", src, dst]).within(&spot).fails(1).says(&["name another destination", "the same"]);
        cp().args(["--replace", "-T", src, dst]).within(&spot).fails(1).says(&["the same"]).hints();
        before.assert_unchanged(&spot);
    }
}

#[test]
fn the_parent_of_the_destination_is_read_only() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("src").file("a", b"1");
    spot.tree("").dir("locked").mode("locked", 0o555).dir("closed").mode("closed", 0o700);
    let run = |dst: &str| cp().args(["src", dst]).within(&spot).by_somebody_else(&reachable);
    run("locked/new").fails(1).says(&[
        "`locked`",
        "Permission denied",
        "hint: check the owner and mode of the path and of its directory (ls -ld), or run as its owner\n",
    ]);
    run("closed/new").fails(1).says(&["`closed", "Permission denied"]).hints();
    // Excluding is advised for paths inside the source only.
    spot.tree("").dir("alone").mode("alone", 0o700);
    let alone = cp().args(["alone", "new"]).within(&spot).by_somebody_else(&reachable).fails(1).hints();
    assert!(!alone.stderr.contains("--exclude"), "{}", alone.stderr);
    assert_eq!((names(spot.join("locked")), names(spot.join("closed"))), (vec![], vec![]));
}

#[test]
fn the_disk_is_too_small_and_that_is_known_before() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 20 << 20) else { return };
    let spot = Spot::anywhere();
    spot.tree("src").file("a", vec![1; 10 << 20]).file("b", vec![2; 10 << 20]).sparse("holes", 1 << 40, &[]);
    let ran = cp().arg(spot.join("src")).arg(volume.path().join("new")).fails(1).hints();
    ran.says(&[
        "new",
        " needs 2",
        "B, and only ",
        "B are free",
        "hint: free some space, or clone within one file system that shares data (`calve probe SRC DST` shows whether it does)\n",
    ]);
    assert_eq!(names(volume.path()), ["lost+found"]);
    // One file, too.
    spot.tree("").file("large", vec![1; 25 << 20]);
    cp().arg(spot.join("large")).arg(volume.path().join("new")).fails(1).says(&[" needs 2", "are free"]).hints();
    assert_eq!(names(volume.path()), ["lost+found"]);
    // Half of it fits; so does a hole.
    cp().args(["--exclude", "b"]).arg(spot.join("src")).arg(volume.path().join("new")).succeeds();
}

#[test]
fn what_is_not_yet_on_the_disk_does_not_make_it_look_full() {
    // XFS reserves several blocks for each of these files until they are written back.
    let (Some(here), Some(there)) = (Spot::on(FileSystem::Tmpfs), Volume::with_size(FileSystem::Xfs, 300 << 20)) else {
        return;
    };
    wide(here.join("src"), 2000);
    for round in 0..15 {
        cp().arg(here.join("src")).arg(there.path().join(format!("{round}"))).succeeds();
    }
}

#[test]
fn there_are_no_more_inodes() {
    let builder = Volume::builder(FileSystem::Ext4).size_bytes(64 << 20).mkfs_args(["-N", "128"]);
    let Some(volume) = builder.mount() else { return };
    let spot = Spot::anywhere();
    wide(spot.join("src"), 1000);
    let ran = cp().arg(spot.join("src")).arg(volume.path().join("new")).fails(1).hints();
    ran.says(&["needs 1001 inodes, and only "]);
    assert_eq!(names(volume.path()), ["lost+found"]);
    // Hard links need none, but directories do, which shows only then.
    for number in 0..70 {
        fs_err::create_dir_all(volume.path().join(format!("few/{number}"))).unwrap();
    }
    let planned =
        cp().args(["-n", "--strategy", "hardlink"]).arg(volume.path().join("few")).arg(volume.path().join("new"));
    planned.succeeds().says(&["warning: hard links: source and clone are the same files"]);
    let linked = cp().args(["--strategy", "hardlink"]).arg(volume.path().join("few")).arg(volume.path().join("new"));
    linked.fails(1).says(&[
        "No space left on device",
        "hint: free space or inodes there (df, df -i); what was staged has been removed\n",
    ]);
    assert_eq!(names(volume.path()), ["few", "lost+found"]);
}

#[test]
fn files_vanish_and_change_their_kind_during_the_walk() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    let Some(other) = Spot::on(FileSystem::Xfs) else { return };
    let src = spot.join("src");
    wide(src.join("steady"), 2000);
    fs_err::create_dir(src.join("moving")).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut changed = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_u32;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                round += 1;
                let path = src.join("moving").join(format!("{}", round % 50));
                let _ = rustix::fs::unlink(&path);
                let _ = rustix::fs::rmdir(&path);
                let _ = match round % 7 {
                    0 => fs_err::os::unix::fs::symlink("/etc", &path),
                    1..3 => fs_err::create_dir(&path),
                    _ => fs_err::write(&path, b"x"),
                };
            }
        });
        for round in 0..rounds(80) {
            let dst = other.join(format!("{round}"));
            let ran = cp().arg("--json").arg(&src).arg(&dst).run();
            if ran.status.success() {
                let receipt = ran.json();
                changed += receipt["changed"].as_array().unwrap().len();
                assert_same(src.join("steady"), dst.join("steady"));
            } else {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
                panic!("{}", ran.stderr);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(changed > 0, "no change was noticed");
    nothing_left(&other);
}

#[test]
fn a_file_that_must_not_be_read_is_named() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("src").file("open/a", b"1").file("open/secret", b"2").mode("open/secret", 0o600);
    spot.tree("src").file("closed/b", b"3").mode("closed", 0o700);
    let run =
        |exclude: &str| cp().args(["--exclude", exclude, "src", "new"]).within(&spot).by_somebody_else(&reachable);
    let ran = run("closed").fails(1).hints();
    ran.says(&["`src/open/secret`", "Permission denied", "--exclude"]);
    run("secret").fails(1).says(&[
        "`src/closed`",
        "Permission denied",
        "hint: make it readable, and its parent directories searchable (chmod u+rX), or run as its owner, or leave it out with `--exclude`\n",
    ]);
    spot.holds(&["src"]);
    cp().args(["src/open/secret", "new"])
        .within(&spot)
        .by_somebody_else(&reachable)
        .fails(1)
        .says(&["secret`"])
        .hints();
    spot.holds(&["src"]);
}

#[test]
fn interrupted_system_calls_are_repeated() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("src").file("large", vec![b'x'; 600_000]).file("small", b"y").file("d/other", vec![b'z'; 20_000]);
    spot.tree("src").sparse("sparse", 1 << 20, &[(1 << 19, b"z")]);
    let Some(other) = Spot::on(FileSystem::Ext4) else { return };
    let before = fingerprint(spot.join("src"));
    // Which calls can be interrupted: those that wait for a disk or a server.
    for (dst, syscalls) in [
        (spot.join("new"), &["ioctl", "openat"][..]),
        (other.join("new"), &["read", "write", "pread64", "pwrite64", "openat"]),
    ] {
        for syscall in syscalls {
            for nth in 1..=60 {
                let command = cp().args(["-q", "--threads", "1"]).arg(spot.join("src")).arg(&dst).command();
                let injection = Injection { syscalls: syscall, fault: "error=EINTR", nth };
                let Some(outcome) = run_injected(&command, injection) else { return };
                // The loader of the program does not repeat what it does.
                if outcome.status.code() == Some(127) {
                    continue;
                }
                assert!(outcome.status.success(), "{syscall} {nth}: {}\n{}", outcome.stderr, outcome.trace);
                assert_same(spot.join("src"), &dst);
                calve_testkit::remove_deep(&dst);
                if !outcome.injected {
                    break;
                }
            }
        }
    }
    before.assert_unchanged(spot.join("src"));
}

#[test]
fn a_stream_of_signals_disturbs_nothing() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    let Some(other) = Spot::on(FileSystem::Ext4) else { return };
    node_modules_like(spot.join("src"), 3000);
    for dst in [spot.join("new"), other.join("new")] {
        let mut running = cp().arg(spot.join("src")).arg(&dst).start();
        while !running.has_ended() {
            for signal in [Signal::CHILD, Signal::WINCH, Signal::CONT, Signal::URG] {
                send(running.id(), signal);
            }
            thread::sleep(Duration::from_micros(50));
        }
        running.wait().ended(0);
        assert_same(spot.join("src"), dst);
    }
    // Nor do stops (SIGTSTP).
    let mut running = cp().arg(spot.join("src")).arg(other.join("stopped")).start();
    while !running.has_ended() {
        send(running.id(), Signal::TSTP);
        thread::sleep(Duration::from_millis(2));
        send(running.id(), Signal::CONT);
        thread::sleep(Duration::from_millis(5));
    }
    running.wait().ended(0);
    assert_same(spot.join("src"), other.join("stopped"));
}

#[test]
fn a_file_system_that_cannot_read_one_file() {
    let Some(fuse) = FuseVolume::with_unreadable("broken") else { return };
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    calve_testkit::Tree::new(fuse.path().join("src")).file("d/broken", b"1").file("d/whole", b"2");
    let ran = cp().arg(fuse.path().join("src")).arg(spot.join("new")).fails(1);
    ran.says(&[
        "read `",
        "src/d/broken`: Input/output error",
        "hint: the device or file system reported a failure; look at the kernel's log (dmesg)\n",
    ]);
    spot.holds(&[]);
    cp().args(["--exclude", "broken"]).arg(fuse.path().join("src")).arg(spot.join("new")).succeeds();
    assert_eq!(names(spot.join("new/d")), ["whole"]);
}

#[test]
fn a_file_system_that_cannot_rename_without_replacing() {
    let Some(fuse) = FuseVolume::new() else { return };
    let root = fuse.path();
    calve_testkit::Tree::new(root.join("src")).file("a", b"1");
    calve_testkit::Tree::new(root).file("file", b"3").dir("empty").file("full/x", b"4");
    // Not even an empty directory is replaced, although rename would.
    for existing in ["empty", "full", "file"] {
        cp().args(["-T", "src", existing]).within(root).fails(1).says(&["already exists"]).hints();
        cp().args(["-T", "file", existing]).within(root).fails(1).hints();
    }
    // And what cannot be swapped in one step is not swapped at all.
    let ran = cp().args(["--replace", "-T", "src", "full"]).within(root).fails(1).hints();
    ran.says(&["`full`", "no atomic exchange", "hint: remove the old one first\n"]);
    assert_eq!(names(root.join("full")), ["x"]);
    eventually_nothing_left(root);
}

/// As on Lustre without its option `flock`.
#[test]
fn a_file_system_that_locks_no_files() {
    let options = FuseOptions { refuses_flock: true, ..FuseOptions::default() };
    let Some(fuse) = FuseVolume::with_options(options) else { return };
    let root = fuse.path();
    let main = root.join("main");
    calve_testkit::Tree::new(&main).file("a", b"1").file(".gitignore", b"/deps\n").file("deps/b", b"2");
    calve_testkit::git(&main, ["init", "-qb", "main"]);
    calve_testkit::git(&main, ["add", "."]);
    calve_testkit::git(&main, ["commit", "-qm", "1"]);
    // Directories can be locked there, and the hidden names of clones and trash are.
    cp().args(["main", "copy"]).within(root).succeeds();
    rm().args(["--wait", "copy"]).within(root).succeeds();
    assert_eq!(names(root), ["main"]);
    let add = calve(["worktree", "add", "new"]).within(&main).fails(1);
    add.says(&[
        "main/.git/worktrees/main.new/calve` cannot be locked: Operation not supported",
        "hint: mount the file system with file locking (flock), or move the repository to another one\n",
    ]);
    assert_eq!(names(root), ["main"]);
    assert_eq!(names(main.join(".git/worktrees")), [""; 0]);
}

#[test]
fn a_worktree_is_not_removed_without_its_turn() {
    if !require_program("strace") {
        return;
    }
    let spot = Spot::anywhere();
    let main = spot.join("main");
    calve_testkit::Tree::new(&main).file("a", b"1");
    calve_testkit::git(&main, ["init", "-qb", "main"]);
    calve_testkit::git(&main, ["add", "."]);
    calve_testkit::git(&main, ["commit", "-qm", "1"]);
    calve_testkit::git(&main, ["worktree", "add", "-q", "../new"]);
    let entry = main.join(".git/worktrees/new");
    let remove = |fault: &str| {
        let inject = format!("inject=flock:{fault}");
        let traced =
            ["strace", "-f", "-qq", "-o", "/dev/null", "-P", entry.to_str().unwrap(), "-e", "trace=flock", "-e"];
        calve(["worktree", "remove", "new"]).within(&main).under(&[&traced[..], &[&inject]].concat())
    };
    remove("error=ENOLCK").fails(1).says(&["/.git/worktrees/new` cannot be locked: No locks available"]);
    assert_eq!(names(spot.join("new")), [".git", "a"]);
    remove("error=EINTR:when=1").succeeds();
    assert_eq!(names(&*spot), ["main"]);
}

#[test]
fn a_name_that_is_too_long_or_is_no_text() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    let long = "n".repeat(256);
    let ran = cp()
        .args(["src", &long])
        .within(&spot)
        .fails(1)
        .says(&["the name is too long for the destination's file system: rename it"]);
    ran.says(&["File name too long"]);
    cp().args([&long, "new"]).within(&spot).fails(1).says(&["File name too long"]);
    spot.holds(&["src"]);
    // The longest name that there is leaves room for the hidden one beside it.
    cp().args(["src", &"n".repeat(255)]).within(&spot).succeeds();
    // A newline, and bytes that are no UTF-8.
    spot.tree("a\nb").file("c", b"1");
    cp().args(["a\nb", "d\ne"]).within(&spot).succeeds();
    assert_same(spot.join("a\nb"), spot.join("d\ne"));
    let not_utf_8 = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    cp().arg("a\nb").arg(not_utf_8).within(&spot).succeeds();
    assert_same(spot.join("a\nb"), spot.join(not_utf_8));
}

#[test]
fn the_staged_tree_is_taken_away() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    wide(spot.join("src"), 10_000);
    let mut hit = 0;
    for _ in 0..10 {
        let running = cp().arg(spot.join("src")).arg(spot.join("new")).start();
        while leftovers(&spot).is_empty() && !spot.join("new").exists() {}
        for name in leftovers(&spot) {
            let _ = rustix::fs::rename(spot.join(&name), spot.join(format!("taken-{hit}")));
            hit += 1;
        }
        let ran = running.wait();
        if !ran.status.success() {
            ran.ended(1);
            assert!(!spot.join("new").exists());
            ran.says(&[
                "hint: run it again, and keep other programs from cleaning the destination's parent directory\n",
            ]);
        }
        for name in names(&spot) {
            if name != "src" {
                calve_testkit::remove_deep(spot.join(name));
            }
        }
    }
    assert!(hit > 0);
}
