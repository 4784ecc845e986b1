//! `calve run`: what the command sees, what stays of it, and what does not.

mod apply;
mod closed;
mod remade;
mod surroundings;
mod terminal;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use calve_testkit::{FileSystem, assert_same, fingerprint, git, is_root, matrix, require_program, require_root, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Calve, Reachable, calve};
use crate::spot::{Spot, eventually, names};

const CHANGES: &str = "echo new > new; echo more >> a; rm b; rm -r d; mkdir d; echo again > d/again; mv e f || exit 9";

/// A place with a tree and a home for the changes; `None` is a skip.
#[track_caller]
fn place(spot: Spot) -> Option<Spot> {
    if !is_root() && !Command::new("unshare").args(["-Ur", "true"]).status().is_ok_and(|status| status.success()) {
        skip("this user may have no namespaces");
        return None;
    }
    let tree = spot.tree("tree").file("a", b"a").file("b", b"b").file("d/old", b"old").file("e/deep", b"deep");
    tree.hard_link("a2", "a").symlink("l", "a").xattr("a", "user.x", b"1").dir("sub");
    fs_err::create_dir(spot.join("home")).unwrap();
    Some(spot)
}

fn run(spot: &Spot, options: &[&str], script: &str) -> Calve {
    let command = calve(["run"]).args(options).args(["--", "sh", "-c", script]);
    command.within(spot.join("tree")).env("CALVE_HOME", spot.join("home"))
}

fn left(spot: &Spot) -> Vec<String> {
    names(spot.join("home/runs"))
}

#[test]
fn what_the_command_writes_is_dropped() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let before = fingerprint(spot.join("tree"));
        let script = format!("{CHANGES}; cat a new d/*; ls d; cat f/deep; test ! -e b && pwd && id -u");
        let ran = run(&spot, &[], &script).succeeds();
        let user = rustix::process::geteuid().as_raw();
        let expected = format!("amore\nnew\nagain\nagain\ndeep{}\n{user}\n", spot.join("tree").display());
        assert_eq!(ran.stdout, expected);
        before.assert_unchanged(spot.join("tree"));
        assert_eq!(left(&spot), [""; 0]);
    }
}

fn listed(spot: &Spot, script: &str) -> Vec<String> {
    listed_in(&run(spot, &["--json"], script).succeeds().json())
}

/// Returns what the document lists: "before path after", each kind by its first letter.
fn listed_in(document: &Value) -> Vec<String> {
    let kind = |kind: &Value| kind.as_str().map_or("-", |kind| &kind[..1]).to_owned();
    let entries = document["entries"].as_array().unwrap().iter();
    entries
        .map(|at| format!("{} {} {}", kind(&at["before"]), at["path"].as_str().unwrap(), kind(&at["after"])))
        .collect()
}

/// The directory for temporary files, and file systems of its own; with few rounds only the one that knows subvolumes.
fn places() -> impl Iterator<Item = Spot> {
    let all = matrix([FileSystem::Btrfs, FileSystem::Ext4, FileSystem::Xfs, FileSystem::Tmpfs]);
    all.filter_map(|file_system| is_root().then(|| Spot::on(file_system))?).chain([Spot::anywhere()])
}

#[test]
fn what_the_command_changed_is_listed() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let ran = run(&spot, &[], CHANGES).succeeds();
        ran.says(&["1 file changed, 3 new, 3 deleted; 2 directories"]);
        let all =
            ["f a f", "f b -", "- d/again f", "f d/old -", "d e -", "f e/deep -", "- f d", "- f/deep f", "- new f"];
        assert_eq!(listed(&spot, CHANGES), all);
        // The other kind of entry, in either direction.
        assert_eq!(
            listed(&spot, "rm -r d a; echo > d; mkdir a; echo > a/in"),
            ["f a d", "- a/in f", "d d f", "f d/old -"]
        );
        assert_eq!(
            listed(&spot, "ln -sfn b l; chmod 700 sub; chmod 600 a2; mkfifo p"),
            ["f a2 f", "s l s", "- p o", "d sub d"]
        );
        assert_eq!(listed(&spot, "rm -r d e; mkdir -p d/old e; echo -n deep > e/deep"), ["f d/old d"]);
    }
}

#[test]
fn changes_at_any_depth_are_found() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    // Longer than a path may be.
    let name = "d".repeat(200);
    let script = format!("for i in $(seq 30); do mkdir {name} && cd -P {name} || exit 9; done; echo > f");
    run(&spot, &[], &script).succeeds().says(&["0 files changed, 1 new, 0 deleted; 30 directories"]);
    let diff = run(&spot, &["--diff"], &script).succeeds().stdout;
    assert!(diff.contains(&format!("+++ b/{}f\n@@ -0,0 +1 @@\n+\n", format!("{name}/").repeat(30))));
    assert_eq!(left(&spot), [""; 0]);
}

#[test]
fn what_is_as_it_was_has_not_changed() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let script =
            "touch a d/old sub; cp b c; mv c b; rm l; ln -s a l; mkdir x; touch x/y; rm -r x; mv e/deep z; mv z e/deep";
        run(&spot, &[], script).succeeds().says(&["only times changed"]);
        assert_eq!(listed(&spot, script), [""; 0]);
    }
}

#[test]
fn the_diff_makes_the_same_tree() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        let tree = spot.join("tree");
        let lines: String = (1..100).map(|number| format!("line {number}\n")).collect();
        fs_err::write(tree.join("long"), lines).unwrap();
        fs_err::write(tree.join("mac"), "one\rtwo").unwrap();
        fs_err::write(tree.join("is a"), "\u{e9}\n\n").unwrap();
        let script = "echo said; echo '\"' > 'n\"\\\té w'; touch empty; rm b; rm -r e; chmod 755 d/old; ln -sfn new l; \
                      rm a2; ln -s a a2; sed -i '3s/$/ more/;80d' long; printf 'one\\rthree' > mac; echo x >> 'is a'; rm mac; mkdir mac; echo > mac/in";
        run(&spot, &["--keep", "../kept"], script).succeeds();
        let ran = run(&spot, &["--diff"], script).succeeds();
        fs_err::write(spot.join("patch"), &ran.stdout).unwrap();
        assert_eq!(ran.stderr, "said\n5 files changed, 3 new, 3 deleted; 1 directory\n");
        git(&tree, ["init", "-q"]);
        git(&tree, ["apply", "--whitespace=nowarn", "../patch"]);
        fs_err::remove_dir_all(tree.join(".git")).unwrap();
        let same =
            Command::new("diff").args(["-r", "--no-dereference", "tree", "kept"]).current_dir(&*spot).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&same.stdout), "", "{}", ran.stdout);
        assert_eq!(fs_err::metadata(tree.join("d/old")).unwrap().mode() & 0o111, 0o111);
    }
}

#[test]
fn a_diff_names_what_is_no_text_and_patch_reads_symlinks_in_it() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let ran = run(&spot, &["--diff"], "printf 'x\\0' > a; mkfifo p; mkdir q; exit 5").ends(5);
    assert_eq!(ran.stdout, "diff --git a/a b/a\nold mode 100644\nnew mode 100644\nBinary files a/a and b/a differ\n");
    if !require_program("patch") {
        return;
    }
    let script = "ln -sfn b l; echo x > b; rm e/deep; ln -s ../a e/deep";
    let ran = run(&spot, &["--diff"], script).succeeds();
    fs_err::write(spot.join("patch"), &ran.stdout).unwrap();
    let patched =
        Command::new("patch").args(["-p1", "-i", "../patch"]).current_dir(spot.join("tree")).output().unwrap();
    assert!(patched.status.success(), "{patched:?}\n{}", ran.stdout);
    let target = |name: &str| fs_err::read_link(spot.join("tree").join(name)).unwrap();
    assert_eq!((target("l"), target("e/deep")), ("b".into(), "../a".into()));
}

#[test]
fn git_takes_all_of_a_diff_or_nothing() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    spot.tree("tree").file("z", b"a\0").file("d/z", b"a\0");
    git(spot.join("tree"), ["init", "-q"]);
    let before = fingerprint(spot.join("tree"));
    let patched = |script: &str| {
        fs_err::write(spot.join("patch"), run(&spot, &["--diff"], script).succeeds().stdout).unwrap();
        let mut apply = Command::new("git");
        apply.args(["apply", "../patch"]).current_dir(spot.join("tree")).output().unwrap().status.success()
    };
    for script in
        ["printf '\\0' > z", "printf '\\0' > b; chmod +x b", "rm z", "rm z; echo > z", "printf '\\0' > sub/new"]
    {
        assert!(!patched(&format!("echo more >> a; {script}")), "{script}");
        before.assert_unchanged(spot.join("tree"));
    }
    assert!(patched("echo > new; chmod +x z; chown 1 d/z 2> /dev/null || :"));
    assert_eq!(fs_err::metadata(spot.join("tree/z")).unwrap().mode() & 0o100, 0o100);
    assert!(spot.join("tree/new").exists());
}

#[test]
fn a_kept_copy_is_complete_and_independent() {
    for spot in places() {
        let Some(spot) = place(spot) else { return };
        run(&spot, &["--keep", "../kept"], "true").succeeds();
        assert_same(spot.join("tree"), spot.join("kept"));
        fs_err::remove_dir_all(spot.join("kept")).unwrap();
        let before = fingerprint(spot.join("tree"));
        run(&spot, &["--keep", "../kept"], &format!("{CHANGES}; exit 7")).run().ended(7);
        before.assert_unchanged(spot.join("tree"));
        assert_eq!(left(&spot), [""; 0]);
        let by_hand = Command::new("cp").args(["-a", "tree", "by_hand"]).current_dir(&*spot).status().unwrap();
        assert!(by_hand.success());
        let changed = Command::new("sh").args(["-c", CHANGES]).current_dir(spot.join("by_hand")).status().unwrap();
        assert!(changed.success());
        for name in ["new", "d/again", "f/deep", "l", "a"] {
            assert_eq!(
                fs_err::read(spot.join("kept").join(name)).unwrap(),
                fs_err::read(spot.join("by_hand").join(name)).unwrap()
            );
        }
        assert_eq!(names(spot.join("kept")), names(spot.join("by_hand")));
        assert_eq!(names(spot.join("kept/d")), ["again"]);
    }
}

#[test]
fn a_kept_copy_has_the_commands_times_and_attributes() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let script = "touch -d @5 e/deep; mkdir -p n/m; echo > n/m/x; touch -d @6 n/m n; rm b; touch -d @7 sub; chmod 700 .; touch -d @8 .";
    spot.tree("tree").xattr("d", "user.old", b"1");
    let attributes = "setfattr -n user.new -v 1 e; setfattr -n user.new -v 2 .; setfattr -x user.old d";
    let seen = "getfattr -Rd . | sort; find . -printf '%p %y %m %s %T@ %l\\n' | sort | grep -v '^\\. '";
    let ran = run(&spot, &["--keep", "../kept"], &format!("{attributes}; {script}; {seen}; stat -c %a .")).succeeds();
    assert!(ran.stdout.contains("user.new") && !ran.stdout.contains("user.old"), "{}", ran.stdout);
    let kept =
        Command::new("sh").args(["-c", &format!("{seen}; stat -c %a .")]).current_dir(spot.join("kept")).output();
    assert_eq!(ran.stdout, String::from_utf8(kept.unwrap().stdout).unwrap());
    // A warning names the entries that it lacks.
    let _socket = UnixListener::bind(spot.join("tree/sub/s")).unwrap();
    let ran = run(&spot, &["--json", "--keep", "../lacking"], "echo > sub/new").succeeds();
    let ran = ran.says(&["warning: left out `sub/s` (socket)"]);
    assert_eq!(ran.json()["clone"]["skipped"][0]["path"], "sub/s", "{}", ran.stdout);
    assert_eq!(names(spot.join("lacking/sub")), ["new"]);
}

/// The overlay of another user has these for itself.
#[test]
fn roots_attributes_may_be_named_like_those_of_overlays() {
    if !require_root("an overlay of root's") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    spot.tree("tree").xattr("a", "user.overlay.old", b"1").xattr("d", "user.overlay.opaque", b"y");
    let script = "echo 2 >> a; echo 2 > d/new; setfattr -n user.overlay.new -v 3 e e/deep";
    assert_eq!(listed(&spot, script), ["f a f", "- d/new f", "d e d", "f e/deep f"]);
    let seen = "getfattr -Rd . | sort";
    let ran = run(&spot, &["--keep", "../kept"], &format!("{script}; {seen}")).succeeds();
    run(&spot, &["--apply"], script).succeeds();
    for tree in ["kept", "tree"] {
        let left = Command::new("sh").args(["-c", seen]).current_dir(spot.join(tree)).output().unwrap();
        assert_eq!(ran.stdout, String::from_utf8(left.stdout).unwrap(), "{tree}");
    }
    assert!(["old", "opaque", "new"].iter().all(|name| ran.stdout.contains(&format!("user.overlay.{name}"))));
}

/// The changes are on another file system, which has no such property.
#[test]
fn a_kept_directory_is_compressed_as_before() {
    let Some(spot) = Spot::on(FileSystem::Btrfs).and_then(place) else { return };
    let elsewhere = Spot::anywhere();
    let property = |words: &[&str]| {
        let ran = Command::new("btrfs").arg("property").args(words).current_dir(&*spot).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8(ran.stdout).unwrap()
    };
    property(&["set", "tree/sub", "compression", "zstd"]);
    let ran = run(&spot, &["--keep", "../kept"], "echo > sub/new").env("CALVE_HOME", &*elsewhere);
    ran.succeeds();
    assert_eq!(property(&["get", "kept/sub", "compression"]), "compression=zstd\n");
    assert!(spot.join("kept/sub/new").exists());
}

#[test]
fn what_cannot_be_told_is_not_kept_or_applied_in_silence() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    if is_root() {
        return;
    }
    // What it was before cannot be read.
    let closed = spot.join("tree/u");
    fs_err::create_dir(&closed).unwrap();
    fs_err::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
    for options in [&["--keep", "../kept"][..], &["--apply"]] {
        let ran = run(&spot, options, "chmod 700 u; echo > u/x");
        ran.fails(1).says(&["tree/u", "home/runs/tree.run"]).hints();
    }
    spot.holds(&["home", "tree"]);
}

#[test]
fn git_sees_no_changes_but_the_commands() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    fs_err::create_dir_all(spot.join("repository/below")).unwrap();
    fs_err::write(spot.join("repository/file"), "1").unwrap();
    git(spot.join("repository"), ["init", "-q"]);
    git(spot.join("repository"), ["add", "."]);
    git(spot.join("repository"), ["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "first"]);
    let script = "git status --porcelain; cd ..; echo x > x; git status --porcelain";
    let command = calve(["run", "--", "sh", "-c", script]).within(spot.join("repository/below"));
    let ran = command.env("CALVE_HOME", spot.join("home")).succeeds();
    assert_eq!(ran.stdout, "?? x\n");
    assert_eq!(git(spot.join("repository"), ["status", "--porcelain"]), "");
}

#[test]
fn its_exit_code_and_output_are_the_commands() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    run(&spot, &[], "exit 3").run().ended(3);
    run(&spot, &[], "kill -9 $$").run().ended(137);
    let missing = calve(["run", "--json", "--", "./no-such-command"]).within(spot.join("tree"));
    let missing = missing.env("CALVE_HOME", spot.join("home")).fails(127).says(&["no-such-command"]).hints();
    assert_eq!(missing.json()["remedy"], "check_command");
    assert_eq!(left(&spot), [""; 0]);
    // Its output is not in the document.
    let ran = run(&spot, &["--json", "--keep", "../kept"], "echo said; exit 4").ends(4);
    let document = ran.json();
    assert_eq!((&document["exit_code"], &document["entries"]), (&4.into(), &serde_json::json!([])));
    assert_eq!(document["kept"], spot.join("kept").to_str().unwrap());
    assert_eq!(ran.stderr, "said\nnothing changed\n");
    assert_eq!(run(&spot, &["-q"], "echo > new").succeeds().stderr, "");
}

#[test]
fn destinations_that_cannot_be_are_refused_before_the_command_runs() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    run(&spot, &["--keep", "inside"], "touch ../ran").fails(2).says(&["inside"]).hints();
    run(&spot, &["--keep", "../home"], "touch ../ran").fails(1).says(&["home"]).hints();
    run(&spot, &["--tree", "../missing"], "touch ../ran").fails(1).says(&["missing"]).hints();
    run(&spot, &["--tree", "a"], "touch ../ran").fails(1).hints();
    let (before, sub) = (names(spot.join("tree")), names(spot.join("tree/sub")));
    std::os::unix::fs::symlink("tree/sub", spot.join("link")).unwrap();
    for home in ["tree/sub", "tree/new/home", "link/new"] {
        let inside = run(&spot, &["--json"], "touch ../ran").env("CALVE_HOME", spot.join(home));
        let ran = inside.fails(3).says(&[&format!("{home}/runs")]).hints();
        assert_eq!(ran.json()["remedy"], "keep_changes_elsewhere");
        assert_eq!((names(spot.join("tree")), names(spot.join("tree/sub"))), (before.clone(), sub.clone()));
    }
    fs_err::remove_file(spot.join("link")).unwrap();
    spot.holds(&["home", "tree"]);
}

#[test]
fn without_namespaces_it_says_so() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let none = "echo 0 > /proc/sys/user/max_mnt_namespaces; exec \"$0\" \"$@\"";
    let ran = run(&spot, &["--json"], "touch ../ran").under(&["unshare", "-Ur", "sh", "-c", none]).fails(3);
    let ran = ran.says(&["namespaces"]).hints();
    assert_eq!(ran.json()["remedy"], "allow_namespaces");
    // Whether there is such a command is another question.
    if is_root() {
        let ran =
            calve(["run", "--", "no-such-command"]).within(spot.join("tree")).env("CALVE_HOME", spot.join("home"));
        let ran = ran.under(&["setpriv", "--bounding-set", "-sys_admin"]).fails(3);
        ran.says(&["namespaces", "Operation not permitted"]).hints();
    }
    assert_eq!(left(&spot), [""; 0]);
    spot.holds(&["home", "tree"]);
}

#[test]
fn whoever_interrupts_it_before_the_command_runs_interrupts_all_of_it() {
    if !require_program("strace") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    for signal in ["INT", "TERM", "HUP"] {
        // While it makes room for the changes.
        let inject = format!("inject=mkdirat:signal={signal}:when=1");
        let strace = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=mkdirat", "-e", &inject];
        run(&spot, &[], "touch ../ran").under(&strace).fails(130);
        assert_eq!(left(&spot), [""; 0]);
    }
    spot.holds(&["home", "tree"]);
}

#[test]
fn a_tree_with_mounts_in_it_is_refused() {
    if !require_root("mounts") {
        return;
    }
    let Some(spot) = place(Spot::anywhere()) else { return };
    let _mount = calve_testkit::BindMount::new(spot.join("home"), spot.join("tree/sub"));
    run(&spot, &[], "touch ../ran").fails(3).says(&["mounted", "sub"]).hints();
    assert!(!spot.join("ran").exists());
}

#[test]
fn somebody_without_privilege_can_use_it() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Ext4).and_then(place) else { return };
    let id = calve_testkit::UnprivilegedUser::UID;
    spot.give_away("");
    let before = fingerprint(spot.join("tree"));
    let ran = run(&spot, &[], &format!("{CHANGES}; id -u; ls d")).by_somebody_else(&reachable).succeeds();
    assert_eq!(ran.stdout, format!("{id}\nagain\n"));
    ran.says(&["1 file changed, 3 new, 3 deleted"]);
    let closed = "mkdir u; echo > u/x; chmod 0 u";
    run(&spot, &[], closed).by_somebody_else(&reachable).succeeds().says(&["1 new, 0 deleted; 1 directory"]);
    before.assert_unchanged(spot.join("tree"));
    // One of the tree is left as it is.
    spot.tree("tree").mode("sub", 0);
    let before = fingerprint(spot.join("tree"));
    let opened = "chmod 700 sub; echo > sub/x";
    let uncounted = run(&spot, &[], opened).by_somebody_else(&reachable).succeeds();
    uncounted.says(&["cannot tell what changed", "tree/sub"]);
    run(&spot, &["--json"], opened).by_somebody_else(&reachable).fails(1).says(&["tree/sub"]).hints();
    before.assert_unchanged(spot.join("tree"));
    assert_eq!(left(&spot), [""; 0]);
}

/// The lock is the command's too: nothing is deleted under a command whose `calve` was killed, and everything after it.
#[test]
fn what_a_killed_run_leaves_is_deleted_when_its_command_has_ended() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    assert!(Command::new("mkfifo").arg(spot.join("end")).status().unwrap().success());
    let running = run(&spot, &[], "echo x > new; echo > ../ready; read line < ../end; cat new > ../saw").start();
    eventually("the command runs", || spot.join("ready").exists());
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::KILL).unwrap();
    run(&spot, &[], "true").succeeds();
    assert_eq!(left(&spot).len(), 2, "a directory and its lock");
    fs_err::write(spot.join("end"), "\n").unwrap();
    assert!(running.wait().was_killed());
    assert_eq!(fs_err::read_to_string(spot.join("saw")).unwrap(), "x\n");
    swept(&spot);
}

fn swept(spot: &Spot) {
    let begun = Instant::now();
    while !left(spot).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", left(spot));
        run(spot, &[], "true").succeeds();
    }
    assert!(Path::new(&spot.join("tree/a")).exists());
}
