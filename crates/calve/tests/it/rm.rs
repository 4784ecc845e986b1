//! `calve rm`: out of sight at once, deleted in the background, and nothing removed that should stay.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use calve_testkit::{
    BindMount, FileSystem, Injection, Tree, Volume, calve_binary, everything, fingerprint, git, node_modules_like,
    require_program, require_root, run_injected, wide,
};
use rustix::process::Signal;
use serde_json::json;

use crate::process::{reapers, send};
use crate::program::{Reachable, cp, keys, rm};
use crate::spot::{Spot, eventually, eventually_nothing_left, leftovers, names, nothing_left};

#[test]
fn it_returns_before_the_files_are_deleted_and_a_reaper_deletes_them() {
    for file_system in FileSystem::ALL {
        let Some(spot) = Spot::on(file_system) else { return };
        everything(spot.join("tree"));
        let ran = rm().args(["--json", "tree"]).within(&spot).succeeds();
        assert!(!spot.join("tree").exists());
        let report = ran.json();
        assert_eq!(keys(&report), ["removed", "schema"]);
        assert_eq!(report["schema"], "calve.remove/1");
        let removed = &report["removed"][0];
        assert_eq!(keys(removed), ["deleted_entries", "elapsed_ms", "path", "trash", "warnings"]);
        assert_eq!((&removed["path"], &removed["deleted_entries"]), (&json!("tree"), &json!(0)));
        assert!(removed["trash"].as_str().unwrap().contains(".calve-trash-"), "{removed}");
        ran.says(&["removed `tree` in ", "deleted in the background"]);
        eventually_nothing_left(&spot);
        spot.holds(&[]);
    }
}

#[test]
fn it_prints_one_line_and_nothing_on_stdout() {
    let spot = Spot::anywhere();
    spot.tree("a").file("b", b"1");
    spot.tree("").file("file", b"2");
    let ran = rm().args(["a"]).within(&spot).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
    let ran = rm().args(["--wait", "file"]).within(&spot).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1));
    ran.says(&["1 entry deleted"]);
    spot.tree("a").file("b", b"1");
    let ran = rm().args(["-q", "a"]).within(&spot).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    eventually_nothing_left(&spot);
}

#[test]
fn a_dry_run_fails_where_the_run_would() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("a").file("b", b"1");
    spot.tree("").symlink("link", "a").dir("closed").dir("sticky").file("closed/a", b"1").file("sticky/a", b"1");
    for paths in [["a", "a/b"], ["a", "link/b"], ["a", "a"]] {
        rm().arg("-n").args(paths).within(&spot).fails(1).says(&["would remove `a`", "does not exist"]);
    }
    rm().args(["-n", "-f", "a", "a/b"]).within(&spot).succeeds();
    rm().args(["-n", "link", "a/b", "a"]).within(&spot).succeeds();
    for (name, mode) in [("closed", 0o755), ("sticky", 0o1777)] {
        rustix::fs::chmod(spot.join(name), mode.into()).unwrap();
    }
    if !require_root("running as another user") {
        return;
    }
    let reachable = Reachable::new();
    for path in ["closed/a", "sticky/a"] {
        for options in [&["-n"][..], &[]] {
            rm().args(options).arg(path).within(&spot).by_somebody_else(&reachable).fails(1);
        }
    }
}

#[test]
fn a_dry_run_removes_nothing_and_a_missing_path_is_an_error_unless_forced() {
    let spot = Spot::anywhere();
    spot.tree("a").file("b", b"1");
    let before = fingerprint(&spot);
    rm().args(["-n", "a"]).within(&spot).succeeds().says(&["would remove `a`"]);
    rm().args(["-n", "missing"]).within(&spot).fails(1);
    rm().args(["-n", "-f", "missing"]).within(&spot).succeeds();
    rm().args(["-n", "."])
        .within(&spot)
        .fails(1)
        .says(&["name the directory itself, from outside of it: `/`, `.` and `..` cannot be replaced or removed"]);
    let report = rm().args(["-n", "--json", "a"]).within(&spot).succeeds().json();
    assert_eq!(report["schema"], "calve.remove/1");
    before.assert_unchanged(&spot);
    rm().arg("missing").within(&spot).fails(1).says(&["`missing` does not exist"]).hints();
    rm().arg("missing/below").within(&spot).fails(1).says(&["`missing/below` does not exist"]);
    for missing in ["missing", "missing/below", "missing/"] {
        let ran = rm().args(["-f", missing]).within(&spot).succeeds();
        assert_eq!(ran.stderr, "");
    }
    rm().within(&spot).fails(2);
    rm().arg("").within(&spot).fails(2);
}

#[test]
fn what_must_not_be_removed_is_refused() {
    let spot = Spot::anywhere();
    spot.tree("home").file("precious", b"1").dir("work/deep");
    spot.tree("").symlink("link", "home/work");
    let home = spot.join("home");
    let before = fingerprint(&spot);
    let refused = |arguments: &[&str], within: &Path, why: &str| {
        let ran = rm().args(arguments).within(within).env("HOME", &home).fails(1);
        ran.says(&["refusing to remove", why]);
        before.assert_unchanged(&spot);
    };
    for arguments in [&["/"][..], &["-rf", "/"], &["--wait", "/"], &["//"], &["/."], &["/.."], &["/../"]] {
        refused(arguments, &spot, "");
    }
    for dots in [".", "..", "./", "../", "home/..", "home/.", "home/work/../../home/.", "./."] {
        refused(&[dots], &home, "name the directory itself");
    }
    refused(&["home"], &spot, "protected");
    refused(&["-rf", "home/"], &spot, "protected");
    refused(&["home/work/../../home"], &spot, "protected");
    refused(&["../home"], &home, "");
    // The name of a directory, if only a link.
    for name in [home.join("work"), spot.join("link"), spot.join("link/")] {
        let ran = rm().arg("link").within(&spot).env("HOME", &name);
        match name == home.join("work") {
            true => _ = ran.arg("-n").succeeds(),
            false => _ = ran.fails(1).says(&["refusing to remove `link`", "protected"]),
        }
        before.assert_unchanged(&spot);
    }
    // The current directory, and those above it, however they are spelled.
    refused(&["../../work"], &spot.join("home/work/deep"), "current directory");
    refused(&[&spot.join("home/work").to_string_lossy()], &spot.join("home/work"), "current directory");
    assert!(home.join("precious").exists());
}

#[test]
fn mounts_are_refused() {
    if !require_root("mounting") {
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let spot = Spot::anywhere();
    let outside = spot.tree("outside").file("precious", b"1");
    spot.tree("tree/deep/mount").dir("");
    let hint = format!("hint: unmount it first: umount {}\n", volume.path().display());
    rm().arg(volume.path()).fails(1).says(&["refusing", "mount point", &hint]);
    // A bind mount has the device number of the tree around it.
    let bind = BindMount::new(outside.path(), spot.join("tree/deep/mount"));
    for arguments in [&["tree"][..], &["-rf", "tree"], &["--wait", "tree"], &["tree/deep"]] {
        rm().args(arguments).within(&spot).fails(1).says(&["refusing", "deep/mount", "unmount it first"]);
    }
    rm().arg("tree/deep/mount").within(&spot).fails(1).says(&["mount point"]);
    cp().args(["--replace", "-T", "outside", "tree"]).within(&spot).fails(1).says(&["mount"]);
    assert_eq!(names(spot.join("tree/deep/mount")), ["precious"]);
    drop(bind);
    // A file can be a mount point, too.
    spot.tree("").file("a", b"1").file("tree/file", b"2");
    let bind = BindMount::new(spot.join("a"), spot.join("tree/file"));
    rm().args(["--wait", "tree"]).within(&spot).fails(1).says(&["refusing", "tree/file"]);
    assert!(!rm().args(["tree/file"]).within(&spot).run().status.success());
    drop(bind);
    rm().args(["--wait", "tree"]).within(&spot).succeeds();
    assert_eq!(names(spot.join("outside")), ["precious"]);
    spot.holds(&["a", "outside"]);
}

#[test]
fn the_habits_of_rm_are_accepted() {
    for options in [&["-rf"][..], &["-r"], &["-R"], &["-fr"], &["-r", "-f"], &["--recursive", "--force"], &[]] {
        let spot = Spot::anywhere();
        spot.tree("a").file("b", b"1");
        rm().args(options).arg("a").within(&spot).succeeds();
        eventually_nothing_left(&spot);
        spot.holds(&[]);
    }
}

/// Each level was opened again from the root, which took minutes for 8,000 of them.
#[test]
fn the_calls_of_a_removal_grow_with_the_depth_and_not_with_its_square() {
    const LEVELS: usize = 600;
    let spot = Spot::anywhere();
    calve_testkit::deep(spot.join("tree"), LEVELS as u64);
    let mut command = Command::new(calve_binary());
    command.args(["rm", "--wait", "tree"]).current_dir(spot.join(""));
    let never = Injection { syscalls: "openat,openat2", fault: "error=EIO", nth: 65_535 };
    let Some(outcome) = run_injected(&command, never) else { return };
    assert!(outcome.status.success(), "{}", outcome.stderr);
    spot.holds(&[]);
    let calls = outcome.trace.lines().count();
    assert!((LEVELS..6 * LEVELS).contains(&calls), "{calls} calls for {LEVELS} levels");
}

#[test]
fn links_and_files_are_removed_and_not_followed() {
    let spot = Spot::anywhere();
    // Names that look like options, or are no text.
    spot.tree("-rf").file("a", b"1");
    rm().args(["--wait", "--", "-rf"]).within(&spot).succeeds();
    let name = std::ffi::OsStr::from_bytes(b"a\xff\n\x1b[31m");
    Tree::new(spot.join(name)).file("b", b"2");
    let ran = rm().arg("--json").arg(name).within(&spot).succeeds();
    assert_eq!(ran.json()["removed"][0]["path"], json!({ "bytes_base64": "Yf8KG1szMW0=" }));
    assert!(!ran.stderr.contains('\x1b'), "{:?}", ran.stderr);
    eventually_nothing_left(&spot);
    spot.holds(&[]);
    spot.tree("dir").file("kept", b"1");
    spot.tree("")
        .symlink("link", "dir")
        .symlink("dangling", "nowhere")
        .file("file", b"2")
        .fifo("fifo")
        .socket("socket");
    for name in ["link", "dangling", "file", "fifo", "socket"] {
        rm().arg(name).within(&spot).succeeds();
    }
    spot.holds(&["dir"]);
    assert_eq!(names(spot.join("dir")), ["kept"]);
    spot.tree("").symlink("link", "dir").file("file", b"2");
    // As rm says.
    for options in [&[][..], &["-n"], &["-r", "-f"], &["--wait"]] {
        let ran = rm().args(options).arg("link/").within(&spot).fails(1);
        ran.says(&[
            "`link/` is a symlink; with the trailing slash",
            "hint: leave out the slash to remove the symlink itself",
        ]);
        rm().args(options)
            .arg("file/")
            .within(&spot)
            .fails(1)
            .says(&["a part of the path is a file or a dangling symlink, not a directory; check the path"]);
    }
    spot.holds(&["dir", "file", "link"]);
    assert_eq!(names(spot.join("dir")), ["kept"]);
}

#[test]
fn of_many_operands_those_that_can_be_removed_are() {
    let spot = Spot::anywhere();
    spot.tree("a").file("x", b"1");
    spot.tree("b").file("x", b"2");
    spot.tree("").file("c", b"3");
    let ran = rm().args(["--json", "a", "missing", "c", ".", "b"]).within(&spot).ends(1);
    let report = ran.json();
    let removed: Vec<_> = report["removed"].as_array().unwrap().iter().map(|one| one["path"].clone()).collect();
    assert_eq!(removed, ["a", "c", "b"]);
    ran.says(&["`missing` does not exist", "refusing to remove `.`"]);
    eventually_nothing_left(&spot);
    spot.holds(&[]);
    // The same one, twice.
    spot.tree("a/b").file("x", b"1");
    rm().args(["a/b", "a", "a"]).within(&spot).run().ended(1);
    eventually_nothing_left(&spot);
    spot.holds(&[]);
}

#[test]
fn a_parent_that_cannot_be_written_to_or_is_sticky_stops_nothing_it_need_not() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("parent/tree")
        .file("d/a", b"1")
        .owner("", 12345, 12345)
        .owner("d", 12345, 12345)
        .owner("d/a", 12345, 12345);
    spot.tree("").mode("parent", 0o755);
    let ran = rm().arg("parent/tree").within(&spot).by_somebody_else(&reachable).run();
    // The contents can go, the directory itself is in a parent that is not his.
    ran.ended(1);
    ran.says(&["error: ", "parent/tree", "Permission denied", "hint: you need write permission on the directory that it is in: fix its mode (chmod u+w), or run as its owner\n"]);
    nothing_left(spot.join("parent"));
    // What he could never delete is not moved out of sight either.
    spot.tree("").file("root's/a", b"1").mode("root's", 0o755);
    for tree in ["root's", "root's/a"] {
        let ran = rm().arg(tree).within(&spot).by_somebody_else(&reachable).fails(1);
        assert!(!ran.says(&["Permission denied"]).hints().stderr.contains("--exclude"));
        assert!(spot.join("root's/a").exists());
    }
    nothing_left(&spot);
    // A sticky directory protects entries of other users.
    spot.tree("").dir("tmp").mode("tmp", 0o1777);
    spot.tree("tmp/root's").file("a", b"1");
    let before = fingerprint(spot.join("tmp/root's"));
    let ran = rm().arg("tmp/root's").within(&spot).by_somebody_else(&reachable).fails(1);
    ran.says(&["tmp/root's", "hint: another user owns it: delete it as that user, or as root\n"]);
    before.assert_unchanged(spot.join("tmp/root's"));
    nothing_left(spot.join("tmp"));
}

#[test]
fn on_a_full_disk_a_tree_is_deleted_where_it_is() {
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
        let mut builder = Volume::builder(file_system).size_bytes(16 << 20);
        if file_system == FileSystem::Tmpfs {
            // An empty directory takes none of its blocks.
            builder = builder.mount_option("nr_inodes=5000");
        }
        let Some(volume) = builder.mount() else { return };
        let spot = Spot::at(volume);
        node_modules_like(spot.join("tree"), 200);
        fill_up(&spot);
        let ran = rm().args(["--json", "tree"]).within(&spot).succeeds();
        let removed = &ran.json()["removed"][0];
        assert!(removed["trash"].is_null() && removed["deleted_entries"].as_u64() > Some(10), "{removed}");
        assert_eq!(removed["warnings"][0]["code"], "deleted_in_place");
        let reason =
            "it was deleted in the foreground, since it could not be moved to the trash: No space left on device";
        assert!(removed["warnings"][0]["message"].as_str().unwrap().starts_with(reason), "{removed}");
        ran.says(&["removed `tree`: ", &format!("warning: {reason}")]);
        assert!(!spot.join("tree").exists());
        nothing_left(&spot);
    }
}

#[test]
fn what_a_full_btrfs_cannot_even_delete_goes_when_a_file_was_emptied() {
    let Some(volume) = Volume::with_size(FileSystem::Btrfs, 16 << 20) else { return };
    let spot = Spot::at(volume);
    node_modules_like(spot.join("tree"), 200);
    fill_up(&spot);
    let ran = rm().args(["--wait", "tree"]).within(&spot).run();
    if ran.status.code() == Some(1) {
        ran.says(&[
            "No space left on device",
            "hint: deleting needs a little space too: empty a large file there (truncate -s 0 FILE; sync), then try again",
        ]);
        let emptied =
            Command::new("sh").args(["-c", "truncate -s 0 filler-1048576-0; sync"]).current_dir(&*spot).status();
        assert!(emptied.unwrap().success());
        rm().args(["--wait", "tree"]).within(&spot).succeeds();
    }
    assert!(!spot.join("tree").exists());
    nothing_left(&spot);
}

/// Leaves no room for as much as an empty directory.
fn fill_up(spot: &Spot) {
    let full = |error: &std::io::Error| error.kind() == std::io::ErrorKind::StorageFull;
    for size in [1 << 20, 4096, 1] {
        for number in 0_u32.. {
            if let Err(error) = fs_err::write(spot.join(format!("filler-{size}-{number}")), vec![b'x'; size]) {
                assert!(full(&error), "{error}");
                break;
            }
        }
    }
    for number in 0_u32.. {
        if let Err(error) = fs_err::create_dir(spot.join(format!("filler-{number}"))) {
            assert!(full(&error), "{error}");
            return;
        }
    }
}

#[test]
fn what_is_immutable_is_told() {
    if !require_root("marking files as immutable") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    let mark = |how: &str, path: &str| {
        assert!(Command::new("chattr").args([how, path]).current_dir(&*spot).status().unwrap().success());
    };
    spot.tree("tree").file("d/a", b"1").dir("empty");
    mark("+i", "tree/empty");
    rm().arg("tree/empty").within(&spot).fails(1).says(&[
        "Operation not permitted",
        "hint: run as its owner; if you are, it may be marked as immutable (lsattr, chattr -i)\n",
    ]);
    mark("-i", "tree/empty");
    rm().args(["--wait", "tree/empty"]).within(&spot).succeeds();
    // Too far down to be found beforehand.
    mark("+i", "tree/d/a");
    let ran = rm().args(["--wait", "tree"]).within(&spot).fails(1);
    let trash = leftovers(&spot).into_iter().find(|name| !name.ends_with(".lock")).unwrap();
    ran.says(&[
        "`tree` was moved to the trash, but deleting it there failed",
        &format!("hint: it may be marked as immutable or append-only (lsattr); clear that: chattr -ia ./{trash}/d/a; "),
        &format!("then calve rm --wait ./{trash}\n"),
    ]);
    mark("-ia", &format!("./{trash}/d/a"));
    rm().args(["--wait", &format!("./{trash}")]).within(&spot).succeeds();
    nothing_left(&spot);
}

#[test]
fn git_status_stays_clean() {
    if !require_program("git") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    let repository = spot.join("repository");
    Tree::new(&repository).file(".gitignore", b"node_modules\n").file("a", b"1");
    git(&repository, ["init", "-q"]);
    git(&repository, ["add", "."]);
    git(&repository, ["commit", "-q", "-m", "first"]);
    let status = || git(&repository, ["status", "--porcelain", "--untracked-files=all"]);
    let mut looks = 0;
    for _ in 0..20 {
        node_modules_like(repository.join("node_modules"), 5000);
        // A repository in it, and a file of rules that would show everything again.
        Tree::new(repository.join("node_modules/inner")).file("x", b"1").file(".gitignore", b"!*\n");
        git(repository.join("node_modules/inner"), ["init", "-q"]);
        assert_eq!(status(), "");
        rm().arg("node_modules").within(&repository).succeeds();
        while !leftovers(&repository).is_empty() {
            assert_eq!(status(), "");
            looks += 1;
        }
        if looks > 0 {
            break;
        }
    }
    assert!(looks > 0, "the reaper was always done before git could look");
    assert_eq!(status(), "");
    // Also while no reaper deletes it.
    node_modules_like(repository.join("node_modules"), 100);
    Tree::new(repository.join("node_modules")).file(".gitignore", b"!*\n");
    calve_core::remove_tree(&repository.join("node_modules"), &calve_core::RemoveOptions::default()).unwrap();
    assert!(!leftovers(&repository).is_empty());
    assert_eq!(status(), "");
    git(&repository, ["init", "-q", "other"]);
    calve_core::remove_tree(&repository.join("other"), &calve_core::RemoveOptions::default()).unwrap();
    assert_eq!(status(), "");
}

/// A trash in `spot` without a reaper, which was killed at work.
fn orphaned_trash(spot: &Spot) {
    for _ in 0..20 {
        wide(spot.join("tree"), 20_000);
        rm().args(["-q", "tree"]).within(spot).succeeds();
        let mut at_work = Vec::new();
        eventually("a reaper begins, or has done all", || {
            at_work = reapers(spot);
            !at_work.is_empty() || leftovers(spot).is_empty()
        });
        for id in at_work {
            send(id, Signal::KILL);
        }
        eventually("the reaper is gone", || reapers(spot).is_empty());
        if !leftovers(spot).is_empty() {
            return;
        }
    }
    panic!("the reaper was always done before it could be killed");
}

#[test]
fn a_reaper_that_was_killed_is_succeeded_by_the_next_commands() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    orphaned_trash(&spot);
    spot.tree("another").file("a", b"1");
    rm().arg("another").within(&spot).succeeds();
    eventually_nothing_left(&spot);

    orphaned_trash(&spot);
    spot.tree("src").file("a", b"1");
    cp().args(["src", "new"]).within(&spot).succeeds();
    eventually_nothing_left(&spot);
    spot.holds(&["new", "src"]);
}

/// The session of a process: field 6 of its stat, counted from behind its name. `None` when it has ended.
fn session(id: u32) -> Option<u32> {
    let stat = fs_err::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(2)?.parse().ok()
}

#[test]
fn the_reaper_lets_go_of_pipe_and_terminal() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    for _ in 0..20 {
        wide(spot.join("tree"), 20_000);
        // `cat` ends when the last holder of the pipe does.
        let mut shell = Command::new("sh")
            .args(["-c", "\"$0\" rm -q tree 2>&1 | cat", crate::program::PROGRAM])
            .current_dir(&*spot)
            .spawn()
            .unwrap();
        let mut at_work = Vec::new();
        eventually("a reaper begins, or has done all", || {
            at_work = reapers(&spot);
            !at_work.is_empty() || shell.try_wait().unwrap().is_some()
        });
        let Some(&reaper) = at_work.first() else { continue };
        // In a session of its own, so without a terminal. It begins one as soon as it runs.
        eventually("it has a session of its own, or has ended", || session(reaper).is_none_or(|own| own == reaper));
        // It is held, and the pipe is closed all the same.
        send(reaper, Signal::STOP);
        let output = fs_err::read_link(format!("/proc/{reaper}/fd/1"));
        let ended = session(reaper).is_none();
        let give_up = Instant::now() + Duration::from_secs(10);
        while shell.try_wait().unwrap().is_none() && Instant::now() < give_up {
            sleep(Duration::from_millis(1));
        }
        let closed = shell.try_wait().unwrap().is_some();
        send(reaper, Signal::CONT);
        shell.wait().unwrap();
        eventually_nothing_left(&spot);
        if ended {
            continue;
        }
        assert!(closed, "the pipe was open as long as the reaper lived");
        assert_eq!(output.unwrap(), Path::new("/dev/null"));
        return;
    }
    panic!("the reaper was always done before it could be held");
}
