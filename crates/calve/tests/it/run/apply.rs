//! `calve run --apply`: what the command changed is made in the tree, all of it or nothing.

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use calve_testkit::{
    Aspect, FileSystem, SplitMix64, Volume, assert_same_except, fingerprint, require_program, require_root, rounds,
};

use super::{CHANGES, left, place, places, run};
use crate::program::{Calve, Reachable};
use crate::spot::{Spot, eventually, leftovers, names};

/// Changes of every kind.
const ALL: &str = "chmod 700 sub; mkfifo p; ln -sfn b l; mkdir -p n/e; echo 1 > n/e/1; chmod 555 n n/e; rm k; mkdir k; echo > k/q; \
                   rm -r w; echo file > w; chmod 600 kept; mkdir -p again/x; rm -r again; echo > 'new\nline'; \
                   mkdir d/new; echo > d/new/x";

/// The tree, and a copy of it in which `script` was run.
fn expected(spot: &Spot, script: &str) -> Calve {
    // Another name of a changed file keeps the old contents.
    fs_err::remove_file(spot.join("tree/a2")).unwrap();
    spot.tree("tree").file("k", b"k").file("w/x/y", b"y").file("kept", b"kept");
    for (program, args, directory) in
        [("cp", ["-a", "tree", "by hand"], spot.to_path_buf()), ("sh", ["-e", "-c", script], spot.join("by hand"))]
    {
        assert!(
            Command::new(program).args(args).current_dir(directory).status().is_ok_and(|status| status.success())
                || program == "cp"
        );
    }
    run(spot, &["--apply"], script)
}

#[test]
fn what_the_command_changed_is_made_in_the_tree() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let script = format!("{{ {CHANGES}; }}; {ALL}");
        let ran = expected(&spot, &script).succeeds();
        ran.says(&["applied: 3 files changed, 9 new, 5 deleted; 7 directories"]);
        // Times are those of the command, which ran twice.
        assert_same_except(spot.join("by hand"), spot.join("tree"), &[Aspect::Times]);
        assert_eq!(left(&spot), [""; 0]);
        let patch = run(&spot, &["--apply", "--diff"], "echo 1 > line").succeeds().stdout;
        assert!(patch.contains("+++ b/line\n@@ -0,0 +1 @@\n+1\n"), "{patch}");
        let again = run(&spot, &["--apply", "--json"], "true").succeeds().json();
        assert_eq!((&again["applied"], &again["entries"]), (&true.into(), &serde_json::json!([])));
    }
}

/// For the overlay, renamed and linked entries have been there before.
#[test]
fn what_was_renamed_or_linked_is_made_in_the_tree() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let script = "mv b z; mv d/old up; mkdir n; mv e/deep n; ln a a3; ln n/deep sub/deep; ln -s a l2; mv l n/l; ln w/x/y w/y; mv w/x/y w/x/z";
        let ran = expected(&spot, script).succeeds();
        ran.says(&["applied: 0 files changed, 9 new, 5 deleted; 1 directory"]);
        assert_same_except(spot.join("by hand"), spot.join("tree"), &[Aspect::Times]);
        assert_eq!(left(&spot), [""; 0]);
    }
}

/// Attributes alone, and new times: `make` goes by times, and capabilities are attributes.
#[test]
fn attributes_and_times_are_applied() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        spot.tree("tree").xattr("d", "user.old", b"1");
        fs_err::remove_file(spot.join("tree/a2")).unwrap();
        let script = "setfattr -n user.x -v 2 a; setfattr -n user.new -v 1 e; setfattr -x user.old d; setfattr -n user.top -v 1 .; chmod 711 .; \
                      touch -d @5 e/deep; touch b; touch -d @7 b";
        run(&spot, &["--apply"], script).succeeds().says(&["applied: 1 file changed, 0 new, 0 deleted; 3 directories"]);
        let mut look = Command::new("sh");
        look.args(["-c", "getfattr -hRd . | grep =; stat -c %Y e/deep b"]);
        let seen = look.current_dir(spot.join("tree")).output().unwrap();
        let seen = String::from_utf8(seen.stdout).unwrap();
        let mut lines: Vec<_> = seen.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["5", "7", "user.new=\"1\"", "user.top=\"1\"", "user.x=\"2\""]);
        assert_eq!(fs_err::metadata(spot.join("tree")).unwrap().mode() & 0o777, 0o711);
        run(&spot, &["--apply"], "touch -d @9 b").succeeds().says(&["applied: only times changed\n"]);
        assert_eq!(fs_err::metadata(spot.join("tree/b")).unwrap().mtime(), 9);
        assert_eq!(left(&spot), [""; 0]);
    }
}

/// Also those of directories in which nothing, or only the contents of a file, has changed.
#[test]
fn directories_get_the_times_that_a_kept_copy_has() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        fs_err::remove_file(spot.join("tree/a2")).unwrap();
        let seen = |at: &str| {
            let mut look = Command::new("find");
            look.args([".", "-printf", "%p %y %m %T@\n"]).current_dir(spot.join(at));
            let text = String::from_utf8(look.output().unwrap().stdout).unwrap();
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        for (script, told) in [
            ("touch -d @5 sub; touch -d @8 .", "only times changed"),
            ("chmod 711 d; echo 1 > e/deep; mkdir n; touch -d @6 n e/deep; touch -d @4 .", "1 file changed"),
            ("rm e/deep; touch -d @3 e", "0 files changed, 0 new, 1 deleted"),
        ] {
            run(&spot, &["--keep", "../kept"], script).succeeds().says(&[told]);
            run(&spot, &["--apply"], script).succeeds().says(&[&format!("applied: {told}")]);
            assert_eq!(seen("tree"), seen("kept"), "{script}");
            fs_err::remove_dir_all(spot.join("kept")).unwrap();
        }
        assert_eq!(left(&spot), [""; 0]);
    }
}

#[test]
fn a_directory_that_changed_meanwhile_keeps_its_time() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
    let script = "echo 1 > e/deep; touch -d @3 e; echo > ../ready; read line < ../end";
    let running = run(&spot, &["--apply"], script).start();
    eventually("the command runs", || spot.join("ready").exists());
    fs_err::write(spot.join("tree/e/new"), "2").unwrap();
    fs_err::write(spot.join("end"), "\n").unwrap();
    running.wait().ended(0);
    assert_eq!(fs_err::read(spot.join("tree/e/deep")).unwrap(), b"1\n");
    assert_ne!(fs_err::metadata(spot.join("tree/e")).unwrap().mtime(), 3);
}

#[test]
fn where_nothing_can_be_written_a_command_may_change_nothing() {
    if !require_root("mounting") {
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let Some(elsewhere) = place(Spot::anywhere()) else { return };
    fs_err::create_dir(volume.path().join("tree")).unwrap();
    volume.remount_read_only();
    let apply = |script: &str| run(&elsewhere, &["--apply"], script).within(volume.path().join("tree"));
    apply("true").succeeds().says(&["applied: nothing changed\n"]);
    apply("exit 5").run().ended(5);
    apply("echo > new").fails(1).says(&["Read-only file system"]);
}

#[test]
fn a_diff_that_cannot_be_printed_does_not_cost_the_changes() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let full = run(&spot, &["--apply", "--diff"], "echo 1 > a").in_shell("", "> /dev/full");
    full.fails(1).says(&["write the report to stdout"]).hints();
    assert_eq!(fs_err::read(spot.join("tree/a")).unwrap(), b"1\n");
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn of_a_command_that_failed_nothing_is_applied() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let before = fingerprint(spot.join("tree"));
    for options in [&["--apply"][..], &["--apply", "-q"], &["--apply", "--diff"], &["--apply", "--json"]] {
        let ran = run(&spot, options, "echo > new; exit 7").ends(7);
        ran.says(&["warning: the command failed, so nothing is applied: 0 files changed, 1 new, 0 deleted\n"]);
    }
    before.assert_unchanged(spot.join("tree"));
    spot.holds(&["home", "tree"]);
}

#[test]
fn what_changed_meanwhile_is_not_replaced() {
    // What the command does, and what another process does after it.
    let cases = [
        ("echo 1 > a", "echo 2 > a"),
        ("echo 1 > a", "chmod 600 a"),
        ("echo 1 > new", "echo 2 > new"),
        ("echo 1 > new", "mkdir new"),
        ("rm b", "echo 2 > b"),
        ("rm -r e", "echo 2 > e/new"),
        ("rm -r e", "echo 2 >> e/deep"),
        ("rm b; mkdir b; echo > b/c", "echo 2 > b"),
        ("echo 1 > b", "rm b"),
        ("echo 1 > e/deep", "rm -r e"),
        ("echo 1 > e/deep", "mv e away; ln -s away e"),
        ("chmod 700 sub", "chmod 711 sub"),
        ("chmod 700 .", "touch ."),
    ];
    // Small inodes keep whole seconds.
    let coarse = || Volume::builder(FileSystem::Ext4).mkfs_args(["-I", "128"]).mount().map(Spot::at);
    let mut random = SplitMix64::new(std::process::id().into());
    let some: Vec<_> = (0..rounds(4)).map(|_| (*random.pick(&cases), true)).collect();
    for ((command, other), is_coarse) in cases.into_iter().map(|case| (case, false)).chain(some) {
        let spot = if is_coarse { coarse() } else { Some(Spot::anywhere()) };
        let Some(spot) = spot.and_then(place) else { return };
        if is_coarse {
            run(&spot, &["--apply"], "echo 1 > b").succeeds();
        }
        assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
        let script = format!("{command}; echo 1 > also; echo > ../ready; read line < ../end");
        let running = run(&spot, &["--apply", "--json"], &script).start();
        eventually("the command runs", || spot.join("ready").exists());
        assert!(Command::new("sh").args(["-c", other]).current_dir(spot.join("tree")).status().unwrap().success());
        let before = fingerprint(spot.join("tree"));
        fs_err::write(spot.join("end"), "\n").unwrap();
        let ran = running.ends(3);
        assert!(!ran.stderr.contains("/`"), "{}", ran.stderr);
        let ran = ran.says(&["was changed while the command ran; nothing was applied", "tree.run"]);
        assert_eq!(ran.hints().json()["remedy"], "merge_changes", "{command}, {other}");
        before.assert_unchanged(spot.join("tree"));
        assert_eq!(fs_err::read(spot.join("tree.run/also")).unwrap(), b"1\n");
        spot.holds(&["end", "home", "ready", "tree", "tree.run"]);
    }
}

/// A rename leaves the times of all that is in the directory.
#[test]
fn what_a_directory_brought_that_was_moved_in_meanwhile_is_not_replaced() {
    let cases = [
        ("tree/e", "echo 1 > e/deep"),
        ("tree/e", "rm e/deep"),
        ("tree/e", "chmod 600 e/deep"),
        ("tree/e", "echo 1 > e/inner/deep; echo 2 > b"),
        ("tree/e/inner", "rm e/inner/deep"),
        ("tree/e", "chmod 700 e/inner"),
        ("tree", "echo 1 > e/deep"),
        ("tree", "rm a"),
    ];
    let elsewhere = places().map(|spot| (spot, cases[0]));
    for (spot, (at, command)) in elsewhere.chain(cases.map(|case| (Spot::anywhere(), case))) {
        let Some(spot) = place(spot) else { return };
        spot.tree("tree").file("e/inner/deep", b"deep");
        for name in ["deep", "inner/deep", "e/deep", "a"] {
            spot.tree("prepared").file(name, b"precious");
        }
        assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
        let script = format!("{command}; echo > ../ready; read line < ../end");
        let running = run(&spot, &["--apply"], &script).start();
        eventually("the command runs", || spot.join("ready").exists());
        fs_err::rename(spot.join(at), spot.join("away")).unwrap();
        fs_err::rename(spot.join("prepared"), spot.join(at)).unwrap();
        let before = fingerprint(spot.join("tree"));
        fs_err::write(spot.join("end"), "\n").unwrap();
        let ran = running.ends(3);
        ran.says(&["was changed while the command ran; nothing was applied", "tree.run"]);
        before.assert_unchanged(spot.join("tree"));
    }
}

/// New entries beside them are no reason to refuse.
#[test]
fn directories_that_others_use_meanwhile_take_changes() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    spot.tree("tree").file("e/inner/deep", b"deep");
    let script = "echo 1 > e/inner/deep; touch ../ready; until test -e ../end; do sleep .01; done";
    for busy in ["tree", "tree/e", "tree/e/inner"] {
        let running = run(&spot, &["--apply"], script).start();
        eventually("the command runs", || spot.join("ready").exists());
        fs_err::write(spot.join(busy).join("new"), "2").unwrap();
        fs_err::write(spot.join("end"), "").unwrap();
        running.wait().ended(0);
        assert_eq!(fs_err::read(spot.join("tree/e/inner/deep")).unwrap(), b"1\n", "{busy}");
        for name in ["ready", "end"] {
            fs_err::remove_file(spot.join(name)).unwrap();
        }
    }
}

/// A process that the command has left writes to the copy while the diff is printed.
#[test]
fn only_what_was_listed_is_applied() {
    for later in ["echo 2 > other", "rm new", "touch -r a time; echo 2 > new; touch -r time new", "touch -d @5 b"] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        assert!(Command::new("mkfifo").arg(spot.join("go")).status().unwrap().success());
        // The diff is more than a pipe holds.
        let script = format!(
            "seq 100000 > large; echo 1 > new; \
             setsid sh -c '(read line < ../go; {later}; echo > ../done) > /dev/null 2>&1 &'"
        );
        let before = fingerprint(spot.join("tree"));
        let mut command = run(&spot, &["--apply", "--diff"], &script).command();
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        fs_err::write(spot.join("go"), "\n").unwrap();
        eventually("the copy changes", || spot.join("done").exists());
        let ended = running.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{later}: {said}");
        assert!(said.contains("has changed since the changes were listed; nothing was applied"), "{said}");
        let hint = "hint: end the processes that the command left running; then merge the kept copy by hand, or run the command again\n";
        assert!(said.contains(hint), "{said}");
        before.assert_unchanged(spot.join("tree"));
        assert!(spot.join("tree.run/large").exists(), "{said}");
    }
}

/// Root has given the directory an attribute that the user may not set on the copy.
#[test]
fn attributes_that_the_copy_cannot_have_stay() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Ext4).and_then(place) else { return };
    spot.tree("tree").xattr("", "security.x", b"1").xattr("", "user.old", b"1");
    spot.give_away("");
    let unchanged = run(&spot, &["--json"], "true").by_somebody_else(&reachable).succeeds().json();
    assert_eq!(unchanged["entries"], serde_json::json!([]));
    let script = "echo 1 > new; chmod 711 .; setfattr -x user.old .; setfattr -n user.new -v 2 .";
    run(&spot, &["--apply"], script).by_somebody_else(&reachable).succeeds().says(&["1 new", "1 directory"]);
    let listed = Command::new("getfattr").args(["-dm-", "tree"]).current_dir(&*spot).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let attributes: Vec<_> = listed.lines().filter(|line| line.contains('=') && !line.contains("selinux")).collect();
    assert_eq!(attributes, ["security.x=\"1\"", "user.new=\"2\""]);
    assert_eq!(fs_err::metadata(spot.join("tree")).unwrap().mode() & 0o777, 0o711);
    assert_eq!(left(&spot), [""; 0]);
}

/// The machine's clock stays as it is: a debug build pretends that it was set back once a file exists.
#[test]
fn a_clock_that_was_set_back_is_the_cause_whatever_the_command_did() {
    const { assert!(cfg!(debug_assertions), "no other build has this way in") };
    for script in [
        "echo 1 > a",
        "rm b",
        "rm -r e",
        "chmod 700 sub",
        "mv b z",
        "rm -r d; mkdir d; echo 1 > d/new",
        "ln -sfn b l",
        "chmod 711 .",
    ] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        let before = fingerprint(spot.join("tree"));
        let command = format!("{script}; echo > ../clock");
        let apply = || run(&spot, &["--apply"], &command).env("CALVE_TEST_CLOCK", spot.join("clock"));
        let ran = apply().ends(3);
        assert!(ran.stderr.contains("the clock was set back while the command ran"), "{script}: {}", ran.stderr);
        let ran = ran.hints().says(&["nothing was applied", "tree.run"]);
        assert!(!ran.stderr.contains("has changed since"), "{script}: {}", ran.stderr);
        assert_eq!(before.changes(&fingerprint(spot.join("tree"))), [""; 0], "{script}");
        // It had been set back before this one began.
        apply().succeeds();
        fs_err::remove_file(spot.join("clock")).unwrap();
        // A new path had no earlier state that could have changed.
        let fresh = run(&spot, &["--apply"], "mkdir -p n/e; echo 1 > new; echo > ../clock");
        fresh.env("CALVE_TEST_CLOCK", spot.join("clock")).succeeds();
    }
}

/// `strace` that lets some of the moves fail.
fn failing(moves: &str) -> Vec<String> {
    let inject = format!("inject=renameat2:error=EIO:when={moves}");
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat2", "-e", &inject].map(str::to_owned).to_vec()
}

#[test]
fn if_one_change_cannot_be_made_none_is() {
    if !require_program("strace") {
        return;
    }
    // The first one would fail for the copy, too. There are four.
    for number in 2..=5 {
        let Some(spot) = place(Spot::anywhere()) else { return };
        assert!(Command::new("cp").args(["-a", "tree", "before"]).current_dir(&*spot).status().unwrap().success());
        let failing = failing(&number.to_string());
        let failing: Vec<_> = failing.iter().map(String::as_str).collect();
        let script = "echo 1 > a; chmod 700 sub; setfattr -n user.x -v 2 d; mkdir -p n/o; rm b; rm -r e";
        let ran = run(&spot, &["--apply"], script).under(&failing);
        if number > 4 {
            ran.succeeds();
            continue;
        }
        ran.fails(1).says(&["cannot apply the change of", "nothing was applied", "tree.run"]).hints();
        assert_same_except(spot.join("before"), spot.join("tree"), &[Aspect::Times]);
        assert_eq!(names(spot.join("tree.run")), ["a", "a2", "d", "l", "n", "sub"]);
    }
}

#[test]
fn what_cannot_be_taken_back_is_kept() {
    if !require_program("strace") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    // The second move fails, and so does the one that takes the first back.
    let failing = failing("2..3");
    let failing: Vec<_> = failing.iter().map(String::as_str).collect();
    let ran = run(&spot, &["--apply", "--json"], "echo 1 > a; echo 2 > b").under(&failing).fails(1);
    let ran = ran.says(&["some changes were applied and others were not", "tree/a", "calve-run-1"]);
    assert_eq!(ran.hints().json()["remedy"], "put_back");
    let read = |path: &str| fs_err::read_to_string(spot.join("tree").join(path)).unwrap();
    assert_eq!(["a", "b", "calve-run-1/new/a", "calve-run-1/new/b"].map(read), ["1\n", "b", "a", "2\n"]);
}

/// The contents of a home after the changes of `a` in a tree called `tree` were set aside.
fn assert_set_aside(spot: &Spot) {
    assert_eq!(left(spot), ["tree.run"]);
    assert_eq!(fs_err::read(spot.join("home/runs/tree.run/a")).unwrap(), b"2\n");
}

#[test]
fn what_neither_the_tree_nor_another_disk_takes_is_set_aside() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let trees = volume.path().join("trees");
    fs_err::create_dir_all(trees.join("tree")).unwrap();
    fs_err::write(trees.join("tree/a"), "1").unwrap();
    let mut full = fs_err::File::create(volume.path().join("full")).unwrap();
    for length in [1 << 20, 1] {
        while full.write(&vec![1; length]).is_ok() {}
    }
    drop(full);
    for (read_only, option) in [(false, "--keep"), (true, "--keep"), (true, "--apply")] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        if read_only {
            volume.remount_read_only();
        }
        let dst = volume.path().join("kept");
        let options = if option == "--keep" { vec![option, dst.to_str().unwrap()] } else { vec![option] };
        let ran = run(&spot, &options, "echo 2 > a").within(trees.join("tree")).fails(1);
        ran.says(&["the entries that the command changed in", "are kept in", "home/runs/tree.run`"]);
        assert_set_aside(&spot);
        assert_eq!(names(volume.path()), ["full", "lost+found", "trees"]);
        // The next run leaves it alone, and takes another name.
        run(&spot, &options, "echo 3 > a").within(trees.join("tree")).fails(1).says(&["tree.run-2"]);
    }
    assert_eq!(fs_err::read(trees.join("tree/a")).unwrap(), b"1");
}

#[test]
fn the_second_kept_copy_has_the_bytes_of_the_trees_name() {
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let tree = volume.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs_err::create_dir(&tree).unwrap();
    for _ in 0..2 {
        let Some(spot) = place(Spot::anywhere()) else { return };
        // The place that is asked for cannot be written to.
        run(&spot, &["--keep", "/proc/kept"], "echo 2 > a").within(&tree).fails(1);
    }
    for name in [&b"caf\xe9.run"[..], b"caf\xe9.run-2"] {
        assert_eq!(names(volume.path().join(OsStr::from_bytes(name))), ["a"]);
    }
}

#[test]
fn an_interrupt_after_the_command_does_not_cost_the_changes() {
    if !require_program("strace") {
        return;
    }
    for option in ["--apply", "--keep=../kept"] {
        let Some(spot) = place(Spot::anywhere()) else { return };
        let before = names(spot.join("tree"));
        let log = spot.join("log");
        let strace = |inject: &str| {
            let log = log.to_str().unwrap();
            ["strace", "-qq", "-o", log, "-e", "trace=mkdirat", "-e", inject].map(str::to_owned)
        };
        let under = |options: &[&str], strace: &[String]| {
            let strace: Vec<_> = strace.iter().map(String::as_str).collect();
            run(&spot, options, "echo 2 > a").under(&strace).run()
        };
        under(&["--discard"], &strace("signal=none")).ended(0);
        let until_the_end =
            fs_err::read_to_string(&log).unwrap().lines().filter(|line| line.contains("mkdirat(")).count();
        fs_err::remove_file(&log).unwrap();
        let ran = under(&[option], &strace(&format!("inject=mkdirat:signal=INT:when={}", until_the_end + 1)));
        ran.ended(130);
        ran.says(&["are kept in"]);
        fs_err::remove_file(&log).unwrap();
        assert_eq!((names(spot.join("tree")), fs_err::read(spot.join("tree/a")).unwrap()), (before, b"a".to_vec()));
        assert_set_aside(&spot);
        spot.holds(&["home", "tree"]);
    }
}

#[test]
fn somebody_without_privilege_can_apply() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Ext4).and_then(place) else { return };
    let apply = expected(&spot, ALL);
    spot.give_away("");
    apply.by_somebody_else(&reachable).succeeds();
    assert_same_except(spot.join("by hand"), spot.join("tree"), &[Aspect::Times]);
    // Closed directories come and go.
    run(&spot, &["--apply"], "chmod -R u+w n; rm -r n; mkdir -p o/p; chmod 555 o/p o")
        .by_somebody_else(&reachable)
        .succeeds();
    assert!(!spot.join("tree/n").exists() && spot.join("tree/o/p").is_dir());
}

/// What `calve rm` and `calve cp --replace` leave in the copy for the reaper is no change of the command's.
#[test]
fn commands_may_use_calve() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        fs_err::create_dir_all(spot.join("tree/deep/er")).unwrap();
        fs_err::write(spot.join("tree/deep/er/file"), "deep").unwrap();
        let path = format!("PATH={}:$PATH", calve_testkit::calve_binary().parent().unwrap().display());
        let script = format!(
            "export {path}; cp -r e made && calve rm -q made && cp -r d other && calve cp -q --replace -T e other && \
             mkdir .calve-staging-x && echo > .calve-staging-x/file && calve rm -q deep && echo z > z"
        );
        let done = run(&spot, &["--apply"], &script).succeeds();
        done.says(&["applied: 0 files changed, 2 new, 1 deleted; 3 directories"]);
        assert!(!spot.join("tree/deep").exists() && !spot.join("tree/made").exists());
        assert_eq!(fs_err::read_to_string(spot.join("tree/other/deep")).unwrap(), "deep");
        assert_eq!(leftovers(spot.join("tree")), [""; 0]);
        let kept = spot.join("kept");
        run(
            &spot,
            &["--keep", kept.to_str().unwrap()],
            &format!("export {path}; cp -r d made; calve rm -q made; echo y > y"),
        )
        .succeeds();
        assert!(kept.join("y").exists() && !kept.join("made").exists());
        assert_eq!(leftovers(&kept), [""; 0]);
        // Templates are for later, and their files would be in the copy.
        run(&spot, &["--apply"], "mkdir .calve-templates-7; echo > .calve-templates-7/t").fails(3);
        let refused = run(&spot, &[], &format!("{path} calve cp -q --replace -T e d")).fails(1);
        refused.says(&["cannot replace `d` in one step", "hint: remove the old one first\n"]);
    }
}
