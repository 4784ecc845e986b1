//! Directories that are deleted and made again, and changes of the root itself.

use std::process::Command;

use calve_testkit::{FileSystem, SplitMix64, git, require_root, rounds};

use super::{listed, place, places, run};
use crate::spot::Spot;

/// Lists everything but times, in the order of the names.
const SEEN: &str = "find . -print0 | LC_ALL=C sort -z | xargs -0 -n1 sh -c 'stat -c \"%n %f %u %g\" \"$0\"; getfattr -dh -m \"^user|posix_acl\" \"$0\"; \
                    test ! -f \"$0\" || cat \"$0\"'";

fn seen(spot: &Spot, name: &str) -> String {
    let output = Command::new("sh").args(["-c", SEEN]).current_dir(spot.join(name)).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The kept and the applied result are what the command saw.
#[track_caller]
fn assert_as_seen(spot: &Spot, script: &str) {
    let _ = fs_err::remove_dir_all(spot.join("kept"));
    let script = format!("{script}; {SEEN}");
    let inside = run(spot, &["--keep", "../kept"], &script).succeeds().stdout;
    assert_eq!(inside, seen(spot, "kept"), "kept, of {script}");
    let inside = run(spot, &["--apply"], &script).succeeds().stdout;
    assert_eq!(inside, seen(spot, "tree"), "applied, of {script}");
}

#[test]
fn what_was_deleted_with_a_directory_does_not_come_back() {
    for script in [
        "rm -rf q; mkdir -p q/w; echo new > q/w/new",
        "rm -rf q; mkdir -p q/w/v",
        "mkdir -p t/w/v; echo new > t/w/v/new; rm -rf q; mv t q",
        "rm -rf q; echo file > q; rm q; mkdir -p q/w/v",
    ] {
        for spot in places() {
            let Some(spot) = place(spot) else { return };
            spot.tree("tree").file("q/w/old", b"old").file("q/w/v/deep", b"deep");
            let listed = listed(&spot, script);
            assert!(listed.contains(&"f q/w/old -".into()) && listed.contains(&"f q/w/v/deep -".into()), "{listed:?}");
            assert_as_seen(&spot, script);
            assert!(!spot.join("tree/q/w/old").exists() && !spot.join("tree/q/w/v/deep").exists());
        }
    }
}

/// git removes directories of one branch and makes them again for another.
#[test]
fn a_switch_of_branches_leaves_no_file_of_the_other_branch() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let tree = spot.join("tree");
    git(&tree, ["init", "-qb", "main"]);
    spot.tree("tree").file("x/y/1", b"1");
    git(&tree, ["add", "."]);
    git(&tree, ["commit", "-qm", "1"]);
    git(&tree, ["rm", "-rq", "x"]);
    git(&tree, ["commit", "-qm", "2"]);
    spot.tree("tree").file("x/y/2", b"2");
    git(&tree, ["add", "."]);
    git(&tree, ["commit", "-qm", "3"]);
    git(&tree, ["switch", "-q", "--detach", "main~2"]);
    run(&spot, &["--apply"], "git switch -q --detach main~1; git switch -q main").succeeds();
    assert_eq!(git(&tree, ["status", "--porcelain"]), "");
    assert!(!tree.join("x/y/1").exists());
}

#[test]
fn a_kept_copy_has_everything_of_its_root() {
    // Without privileges, the command's namespace knows no user but its own.
    if !require_root("entries of other users in ACLs") {
        return;
    }
    for script in [
        "setfattr -n user.k -v 2 .; setfattr -x user.gone .; setfacl -m u:7:--- .",
        "setfacl -b .; setfattr -n user.new -v 3 .",
        "setfacl -k .; setfacl -d -m u:9:rwx .; chmod 3751 .",
        "chmod 1700 .; touch -d @8 .",
    ] {
        for spot in places() {
            let Some(spot) = place(spot) else { return };
            spot.tree("tree").xattr("", "user.k", b"1").xattr("", "user.gone", b"1");
            let set = ["-m", "u:7:r-x,d:u:8:rwx"];
            let status = Command::new("setfacl").args(set).arg(spot.join("tree")).status();
            assert!(status.unwrap().success());
            let inside = run(&spot, &["--keep", "../kept"], &format!("{script}; stat -c %Y .; {SEEN}")).succeeds();
            let (time, inside) = inside.stdout.split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
            assert_eq!(inside, seen(&spot, "kept"), "{script}");
            let kept = std::os::unix::fs::MetadataExt::mtime(&fs_err::metadata(spot.join("kept")).unwrap());
            assert_eq!(time, kept.to_string(), "{script}");
        }
    }
}

/// Returns commands that make, move and remove several levels at once, and change the root.
fn random_script(seed: u64) -> String {
    let mut random = SplitMix64::new(seed);
    let mut pick = |most: usize| usize::try_from(random.below(most as u64)).unwrap();
    let mut script = String::from("exec 3>&2 2>/dev/null");
    for number in 0..25 {
        let mut path = |levels: usize| -> String {
            (0..=pick(levels)).map(|_| ["a", "b", "c"][pick(3)]).collect::<Vec<_>>().join("/")
        };
        let (one, other) = (path(3), path(2));
        let act = match pick(9) {
            0 | 1 => format!("mkdir -p {one}; echo {number} > {one}/f{number}"),
            2 => format!("rm -rf {one}"),
            3 => format!("rm -rf {one}; mkdir -p {one}/{other}"),
            4 => format!("mv -T {one} {other}"),
            5 => format!("rm -rf {one}; echo {number} > {one}"),
            6 => format!("chmod {} .", ["1755", "2750", "0711", "3775"][pick(4)]),
            7 => format!("setfacl {} .", ["-m u:7:rx", "-b", "-d -m u:8:rwx", "-k"][pick(4)]),
            _ => format!("setfattr {} .", ["-n user.a -v 1", "-n user.a -v 2", "-x user.a"][pick(3)]),
        };
        script += &format!("; {act}");
    }
    script + "; exec 2>&3"
}

#[test]
fn random_scripts_leave_what_they_saw() {
    if !require_root("file systems of its own") {
        return;
    }
    for file_system in FileSystem::ALL {
        let Some(spot) = Spot::on(file_system).and_then(place) else { continue };
        // Each script goes on from what the last one has left.
        for seed in 0..rounds(100) as u64 {
            assert_as_seen(&spot, &random_script(seed));
        }
    }
}
