//! Directories that are deleted and made again, and changes of the root itself.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use calve_testkit::{SplitMix64, git, require_root, rounds};

use super::{listed, listed_in, place, places, run};
use crate::program::{Calve, Reachable};
use crate::spot::Spot;

/// Lists everything but times: four times all entries, because a process for each of them would take most of the time.
const SEEN: &str = "export LC_ALL=C; find . -print0 | sort -z | xargs -0 stat -c '%n %f %u %g'; echo '# attributes'; \
                    find . -print0 | sort -z | xargs -0 getfattr -dh -m '^user|posix_acl'; echo '# links'; \
                    find . -type l -printf '%p %l\\n' | sort; echo '# contents'; \
                    find . -type f -print0 | sort -z | xargs -0 -r md5sum; true";

fn seen(spot: &Spot, name: &str) -> String {
    let output = Command::new("sh").args(["-c", SEEN]).current_dir(spot.join(name)).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the kind and everything else of each entry of [`SEEN`].
fn entries(seen: &str) -> BTreeMap<String, (char, String)> {
    let mut entries: BTreeMap<String, (char, String)> = BTreeMap::new();
    let below = |name: &str| name.strip_prefix("./").unwrap_or(name).to_owned();
    let (stats, rest) = seen.split_once("# attributes\n").unwrap();
    let (attributes, rest) = rest.split_once("# links\n").unwrap();
    let (links, contents) = rest.split_once("# contents\n").unwrap();
    for line in stats.lines() {
        let (name, rest) = line.split_once(' ').unwrap();
        let kind = match u32::from_str_radix(&rest[..4], 16).unwrap() & 0o170_000 {
            0o040_000 => 'd',
            0o120_000 => 's',
            _ => 'f',
        };
        entries.insert(below(name), (kind, line.to_owned()));
    }
    let mut add = |name: &str, text: &str| entries.get_mut(&below(name)).unwrap().1 += &format!("\n{text}");
    for block in attributes.split("\n\n").filter(|block| !block.is_empty()) {
        let (name, values) = block.strip_prefix("# file: ").unwrap().split_once('\n').unwrap();
        add(name, values);
    }
    links.lines().map(|line| line.split_once(' ').unwrap()).for_each(|(name, target)| add(name, target));
    contents.lines().map(|line| line.split_once("  ").unwrap()).for_each(|(sum, name)| add(name, sum));
    entries
}

/// Returns what differs, as [`listed`] tells it.
fn differences(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (entries(before), entries(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let kind = |entry: Option<&(char, String)>| entry.map_or('-', |(kind, _)| *kind);
    let different = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let listed = different.map(|name| format!("{} {name} {}", kind(before.get(name)), kind(after.get(name))));
    listed.collect()
}

/// Returns what a diff shows of each file and symlink of [`SEEN`]: its kind, its executable bit and its contents.
fn told_by_diff(seen: &str) -> BTreeMap<String, (char, bool, String)> {
    let told = |(name, (kind, text)): (String, (char, String))| {
        let (entry, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let mode = u32::from_str_radix(entry.split(' ').nth(1).unwrap(), 16).unwrap();
        let is_attribute = |line: &str| ["# file", "user.", "system."].iter().any(|begin| line.starts_with(begin));
        let contents =
            rest.lines().filter(|line| !line.is_empty() && !is_attribute(line)).collect::<Vec<_>>().join("\n");
        (name, (kind, kind == 'f' && mode & 0o100 != 0, contents))
    };
    entries(seen).into_iter().filter(|(_, (kind, _))| *kind != 'd').map(told).collect()
}

/// Copies the tree to `patched`, and applies a diff there with git.
fn patch(spot: &Spot, diff: &str) {
    let patched = spot.join("patched");
    let _ = fs_err::remove_dir_all(&patched);
    assert!(Command::new("cp").arg("-a").args([&spot.join("tree"), &patched]).status().unwrap().success());
    if diff.is_empty() {
        return;
    }
    // git knows no empty directories.
    let emptied = Command::new("find")
        .args([".", "-mindepth", "1", "-type", "d", "-empty", "-delete"])
        .current_dir(&patched)
        .status();
    assert!(emptied.unwrap().success());
    fs_err::write(spot.join("diff"), diff).unwrap();
    let mut apply = Command::new("git");
    apply
        .args(["apply", "--whitespace=nowarn", "../diff"])
        .env("GIT_CEILING_DIRECTORIES", &**spot)
        .current_dir(&patched);
    let output = apply.output().unwrap();
    assert!(output.status.success(), "{}{diff}", String::from_utf8_lossy(&output.stderr));
}

/// Checks that the listing, the diff, the kept copy and the applied tree all match what the command saw.
#[track_caller]
fn assert_as_seen(spot: &Spot, script: &str) {
    assert_as_seen_by(spot, script, |calve| calve);
}

#[track_caller]
fn assert_as_seen_by(spot: &Spot, script: &str, user: impl Fn(Calve) -> Calve) {
    let _ = fs_err::remove_dir_all(spot.join("kept"));
    let before = seen(spot, "tree");
    let document = user(run(spot, &["--json"], script)).succeeds().json();
    let diff = user(run(spot, &["--diff"], script)).succeeds().stdout;
    let script = format!("{script}; {SEEN}");
    let inside = user(run(spot, &["--keep", "../kept"], &script)).succeeds().stdout;
    let mut listed = listed_in(&document);
    listed.sort_by(|a, b| a[2..].cmp(&b[2..]));
    let mut expected = differences(&before, &inside);
    expected.sort_by(|a, b| a[2..].cmp(&b[2..]));
    assert_eq!(listed, expected, "listed, of {script}");
    assert_eq!(inside, seen(spot, "kept"), "kept, of {script}");
    patch(spot, &diff);
    assert_eq!(told_by_diff(&inside), told_by_diff(&seen(spot, "patched")), "diffed, of {script}: {diff}");
    let inside = user(run(spot, &["--apply"], &script)).succeeds().stdout;
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
        let act = match pick(13) {
            0 | 1 => format!("mkdir -p {one}; echo {number} > {one}/f{number}"),
            2 => format!("rm -rf {one}"),
            3 => format!("rm -rf {one}; mkdir -p {one}/{other}"),
            4 => format!("mv -T {one} {other}"),
            5 => format!("rm -rf {one}; echo {number} > {one}"),
            6 => format!("chown {} .", ["7:8", "0:0", "0:9", "7:0"][pick(4)]),
            7 => format!("chmod {} .", ["1755", "2750", "0711", "3775", "4711", "6770"][pick(6)]),
            8 => format!("setfacl {} .", ["-m u:7:rx", "-b", "-d -m u:8:rwx", "-k"][pick(4)]),
            // `git apply` makes nothing in place of a link that leads to itself.
            9 => format!("ln -sfnT gone/{other} {one}"),
            10 => format!("find {one} -maxdepth 1 -type f -exec chmod u{}x {{}} +", ["+", "-"][pick(2)]),
            11 => format!("printf %s {number} >> {one}/f{}", pick(25)),
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
    for spot in places().filter_map(place) {
        // Each script goes on from what the last one has left.
        for seed in 0..rounds(50) as u64 {
            assert_as_seen(&spot, &random_script(seed));
        }
    }
}

/// A user's overlay marks what it hides in another way than root's.
#[test]
fn random_scripts_of_a_user_leave_what_they_saw() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for spot in places().filter_map(place) {
        spot.give_away("");
        for seed in 0..rounds(30) as u64 {
            let script = random_script(1_000_000 + seed);
            assert_as_seen_by(&spot, &script, |calve| calve.by_somebody_else(&reachable));
        }
    }
}

#[test]
fn the_owner_of_the_root_is_the_one_that_the_command_gave_it() {
    if !require_root("other owners") {
        return;
    }
    for script in ["chown 7:8 .", "chgrp 9 .; chmod 2770 .", "chown 7 .; rm -rf d; mkdir -p d/new"] {
        for spot in places() {
            let Some(spot) = place(spot) else { return };
            assert_as_seen(&spot, script);
        }
    }
}
