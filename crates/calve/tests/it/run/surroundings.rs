//! `calve run` where a command or a directory is not as usual.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use calve_testkit::{FileSystem, FuseVolume, UnprivilegedUser, Volume, is_root, require_program, require_root};
use rustix::fs::{FileType, Mode};

use super::{left, place, places, run};
use crate::program::{PROGRAM, Reachable, calve};
use crate::spot::{Spot, eventually, names};

#[test]
fn a_command_that_cannot_be_executed_is_told_apart_from_none() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    for (program, code) in [("./a", 126), ("./sub", 126), ("./a/b", 126), ("./none", 127)] {
        let ran = calve(["run", "--json", "--", program]).within(spot.join("tree"));
        let ran = ran.env("CALVE_HOME", spot.join("home")).fails(code).says(&[program]).hints();
        assert_eq!(ran.json()["remedy"], "check_command");
    }
    // A program in a closed directory of PATH is missing, as for shells; and a file that is not executable hides no later one.
    let closed = spot.join("closed");
    fs_err::create_dir(&closed).unwrap();
    fs_err::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
    let path = format!("{}:{}", closed.display(), spot.join("tree").display());
    for (program, code, why) in [("no-such-program", 127, "No such file"), ("a", 126, "Permission denied")] {
        let ran = calve(["run", "--", program]).within(spot.join("tree")).env("PATH", &path);
        ran.env("CALVE_HOME", spot.join("home")).fails(code).says(&[program, why]).hints();
    }
    run(&spot, &[], "kill -TERM $$").run().ended(143);
    assert_eq!(left(&spot), [""; 0]);
    // A working directory that was deleted.
    let ran = run(&spot, &[], "true").in_shell("mkdir x && cd x && rmdir ../x;", "").fails(1);
    ran.says(&["cannot determine the current directory", "hint: change to a directory that exists"]);
}

#[test]
fn two_runs_do_not_see_each_other_and_one_may_run_in_another() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
    let first = run(&spot, &[], "echo 1 > a; echo > ../ready; read line < ../end; cat a").start();
    eventually("the command runs", || spot.join("ready").exists());
    assert_eq!(run(&spot, &[], "cat a; echo 2 > a").succeeds().stdout, "a");
    fs_err::write(spot.join("end"), "\n").unwrap();
    assert_eq!(first.wait().stdout, "1\n");
    // An overlay over an overlay.
    let inner = format!("echo 1 > a; {PROGRAM} run -- sh -c 'cat a; echo 2 > a; cat a'; cat a");
    assert_eq!(run(&spot, &[], &inner).succeeds().stdout, "1\n2\n1\n");
    assert_eq!(fs_err::read(spot.join("tree/a")).unwrap(), b"a");
    assert_eq!(left(&spot), [""; 0]);
    // Both have one inode, until the inner one changes them.
    run(&spot, &["--apply"], &format!("{PROGRAM} run --apply -- sh -c 'echo 2 > a; rm a2'")).succeeds();
    assert_eq!(fs_err::read(spot.join("tree/a")).unwrap(), b"2\n");
    assert!(!spot.join("tree/a2").exists());
}

#[test]
fn what_a_daemon_writes_is_deleted_after_its_end() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
    let daemon = "(read line < ../end; cat new > ../saw) > /dev/null 2>&1 &";
    let ran = run(&spot, &[], &format!("echo x > new; setsid sh -c '{daemon}'")).succeeds();
    ran.says(&["still run", "1 new"]);
    assert_eq!(left(&spot).len(), 2, "a directory and its lock");
    fs_err::write(spot.join("end"), "\n").unwrap();
    eventually("the daemon sees its copy", || fs_err::read(spot.join("saw")).is_ok_and(|saw| saw == b"x\n"));
    super::swept(&spot);
}

#[test]
fn a_disk_that_is_full_is_the_commands_to_tell() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 16 << 20) else { return };
    let Some(spot) = place(Spot::anywhere()) else { return };
    let full = "head -c 30000000 /dev/zero > new; code=$?; cat a; exit $code";
    let ran = run(&spot, &[], full).env("CALVE_HOME", volume.path().join("home")).ends(1);
    assert_eq!(ran.stdout, "a");
    ran.says(&["No space left on device", "1 new"]);
    assert_eq!(names(volume.path().join("home/runs")), [""; 0]);
    spot.holds(&["home", "tree"]);
    assert!(!spot.join("tree/new").exists());
}

#[test]
fn a_disk_too_full_for_an_overlay_is_told() {
    if !require_program("strace") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsmount", "-e", "inject=fsmount:error=ENOSPC"];
    let ran = run(&spot, &["--json"], "touch ../ran").under(&strace).fails(1);
    ran.says(&["mount an overlay of", "No space left on device", "hint: free space or inodes there"]);
    assert_eq!(left(&spot), [""; 0]);
    spot.holds(&["home", "tree"]);
}

/// No copy of a socket can be connected to.
#[test]
fn sockets_are_left_out() {
    let script = "import os, socket\n\
                  def bind(path): socket.socket(socket.AF_UNIX).bind(path)\n\
                  os.mkdir('server')\n\
                  for path in 'b', 'there', 'gone': os.unlink(path)\n\
                  for path in 'new', 'server/x', 'b': bind(path)\n\
                  open('there', 'w').write('text')";
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        for name in ["there", "gone"] {
            let path = spot.join("tree").join(name);
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Socket, Mode::RWXU, 0).unwrap();
        }
        for (option, tree) in [("--keep=../kept", "kept"), ("--apply", "tree")] {
            let command = calve(["run", option, "--", "python3", "-c", script]).within(spot.join("tree"));
            let ran = command.env("CALVE_HOME", spot.join("home")).succeeds();
            ran.says(&["0 files changed, 1 new, 1 deleted; 1 directory"]);
            let made = spot.join(tree);
            let is_there = ["new", "b", "server/x", "gone"].map(|name| made.join(name).symlink_metadata().is_ok());
            assert_eq!(is_there, [false, false, false, tree == "tree"]);
            assert_eq!(fs_err::read_to_string(made.join("there")).unwrap(), "text");
            assert!(made.join("server").is_dir());
        }
        assert_eq!(left(&spot), [""; 0]);
    }
}

/// What the command changes is seen by watches inside, and other names of a file keep what they had.
#[test]
fn watches_see_what_the_command_does() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let script = "import ctypes, os\n\
                  c = ctypes.CDLL(None)\n\
                  fd = c.inotify_init()\n\
                  assert c.inotify_add_watch(fd, b'.', 0x100 | 0x2 | 0x200) > 0\n\
                  open('new', 'w').close(); os.unlink('b')\n\
                  with open('a', 'a') as file: file.write('2')\n\
                  seen = os.read(fd, 4096)\n\
                  print(*(name for name in ('new', 'b', 'a') if name.encode() + b'\\0' in seen), open('a2').read())";
    let command = calve(["run", "--", "python3", "-c", script]).within(spot.join("tree"));
    let ran = command.env("CALVE_HOME", spot.join("home")).succeeds();
    assert_eq!(ran.stdout, "new b a a\n");
    assert_eq!(left(&spot), [""; 0]);
    // Copying much before a change takes a while, and the program says so.
    let big = fs_err::File::create(spot.join("tree/big")).unwrap();
    big.set_len(300 << 20).unwrap();
    run(&spot, &[], "echo >> big; echo >> a").succeeds().says(&[
        "before the command could change it",
        "up to 314.6 MB",
        "2 files changed",
    ]);
    assert!(!run(&spot, &[], "echo >> a").succeeds().stderr.contains("copied"));
}

#[test]
fn a_directory_that_is_a_link_or_read_only() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    std::os::unix::fs::symlink("tree", spot.join("link")).unwrap();
    let ran = run(&spot, &["--tree", "../link"], "echo 2 > a; pwd; cat ../link/a").succeeds();
    assert_eq!(ran.stdout, format!("{}\n2\n", spot.join("tree").display()));
    if is_root() {
        let mounted = calve_testkit::BindMount::new(spot.join("tree"), spot.join("tree"));
        let remount = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(spot.join("tree")).status();
        assert!(remount.unwrap().success());
        assert_eq!(run(&spot, &[], "echo 2 > a; cat a").succeeds().stdout, "2\n");
        run(&spot, &["--apply"], "echo 2 > a").fails(1).says(&["Read-only", "tree.run"]).hints();
        assert_eq!(fs_err::read(spot.join("tree.run/a")).unwrap(), b"2\n");
        drop(mounted);
    }
    assert_eq!(fs_err::read(spot.join("tree/a")).unwrap(), b"a");
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn a_directory_on_fuse() {
    if !require_root("FUSE") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    let Some(fuse) = FuseVolume::new() else { return };
    fs_err::write(fuse.path().join("a"), "a").unwrap();
    let tree = fuse.path().to_str().unwrap().to_owned();
    let script = format!("echo 2 > {tree}/a; cat {tree}/a");
    let ran = run(&spot, &["--tree", &tree], &script).succeeds();
    assert_eq!(ran.stdout, "2\n");
    ran.says(&["1 file changed"]);
    assert_eq!(fs_err::read(fuse.path().join("a")).unwrap(), b"a");
    // It cannot exchange two entries.
    let apply = run(&spot, &["--tree", &tree, "--apply"], &format!("echo 3 > {tree}/a; echo 4 > {tree}/new"));
    apply.fails(1).says(&["Invalid argument", "nothing was applied", "is kept in"]).hints();
    assert_eq!(names(fuse.path()), ["a"]);
    let kept = fuse.path().with_extension("run");
    assert_eq!(["a", "new"].map(|name| fs_err::read_to_string(kept.join(name)).unwrap()), ["3\n", "4\n"]);
    fs_err::remove_dir_all(&kept).unwrap();
    assert_eq!(fs_err::read(fuse.path().join("a")).unwrap(), b"a");
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn a_directory_that_is_removed_meanwhile() {
    for apply in [false, true] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
        let options: &[&str] = if apply { &["--apply"] } else { &[] };
        // Opened first: no path leads out of a directory that is gone.
        let script = "exec 3<> ../end; echo 2 > a; echo > ../ready; read line <&3; cat a";
        let running = run(&spot, options, script).start();
        eventually("the command runs", || spot.join("ready").exists());
        fs_err::remove_dir_all(spot.join("tree")).unwrap();
        fs_err::write(spot.join("end"), "\n").unwrap();
        let ran = running.wait();
        assert_eq!(ran.stdout, "2\n");
        if apply {
            ran.ended(1);
            ran.says(&["No such file or directory", "are kept in", "home/runs/tree.run`"]);
            assert_eq!(left(&spot), ["tree.run"]);
            assert_eq!(fs_err::read(spot.join("home/runs/tree.run/a")).unwrap(), b"2\n");
        } else {
            ran.ended(0);
            assert_eq!(left(&spot), [""; 0]);
        }
        assert!(!spot.join("tree").exists());
    }
}

/// Where the command works, if that is in no overlay, is of no concern.
#[test]
fn a_working_directory_that_no_path_leads_to() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Ext4).and_then(place) else { return };
    fs_err::create_dir_all(spot.join("closed/here")).unwrap();
    spot.give_away("");
    let tree = spot.join("tree");
    let script = format!("echo 2 > {0}/a; cat {0}/a", tree.display());
    let mut command = UnprivilegedUser::command("sh");
    command.args(["-c", "chmod 0 ..; exec \"$@\"", "sh"]).arg(reachable.program());
    command.args(["run", "--tree"]).arg(&tree).args(["--", "sh", "-c", &script]);
    let ran = command.current_dir(spot.join("closed/here")).env("CALVE_HOME", spot.join("home")).output().unwrap();
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(0), &b"2\n"[..]), "{ran:?}");
}
