//! Directories and files that are closed to their own user, and subvolumes in the tree.

use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use calve_testkit::{Aspect, FileSystem, SplitMix64, UnprivilegedUser, assert_same_except, rounds};

use super::{listed_in, place, places, run};
use crate::program::Reachable;
use crate::spot::Spot;

fn sh(spot: &Spot, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(&**spot).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
}

/// Runs `script` as a user in a copy of the tree, and by `calve run`: the kept and the applied tree are as there.
fn assert_as_by_hand(spot: &Spot, reachable: &Reachable, made: &str, script: &str) {
    let id = UnprivilegedUser::UID;
    sh(
        spot,
        &format!("rm -rf tree hand kept; mkdir tree; cd tree; {made}; cd ..; chown -hR {id}:{id} .; cp -a tree hand"),
    );
    let mut by_hand = UnprivilegedUser::command("sh");
    assert!(by_hand.args(["-c", script]).current_dir(spot.join("hand")).status().unwrap().success(), "{script}");
    for (option, changed) in [("--keep=../kept", "kept"), ("--apply", "tree")] {
        let ran = run(spot, &[option], script).by_somebody_else(reachable).run();
        assert_eq!(ran.status.code(), Some(0), "{option}, {made}: {script}: {}", ran.stderr);
        assert_same_except(spot.join("hand"), spot.join(changed), &[Aspect::Times]);
    }
    let left = Command::new("find").args([".", "-name", ".calve*"]).current_dir(spot.join("tree")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "{made}: {script}");
}

#[test]
fn closed_directories_of_ones_own_are_no_obstacle() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for spot in places().filter_map(place) {
        for (made, script) in [
            (
                "mkdir ro; echo 1 >ro/f; echo 1 >ro/h; chmod 555 ro",
                "chmod u+w ro; echo 2 >ro/g; echo 2 >ro/f; rm ro/h; chmod u-w ro",
            ),
            (
                "mkdir -p ro/in; echo 1 >ro/in/f; chmod 555 ro/in ro",
                "chmod u+w ro ro/in; echo 2 >ro/in/g; mv ro/in/f ro/f",
            ),
            ("echo 1 >f; chmod 555 .", "chmod 755 .; echo 2 >f; echo 2 >g; chmod 555 ."),
            ("echo 1 >f; chmod 555 .", "chmod 755 .; echo 2 >f; mkdir d"),
            ("echo 1 >f", "echo 2 >f; mkdir d; chmod 555 ."),
            ("mkdir x; echo 1 >x/f", "echo 2 >x/f; echo 2 >x/g; chmod 000 x"),
            ("mkdir x", "mkdir -p x/y new/z; echo 2 >new/z/f; chmod 300 x; chmod 000 new/z; chmod 100 new"),
            ("echo 1 >f", "echo 2 >f; echo 2 >g; chmod 000 f g; mkdir d; echo 3 >d/f; chmod 200 d/f; chmod 400 d"),
            ("mkdir x; echo 1 >x/f", "rm -r x; mkdir x; echo 2 >x/g; setfacl -m m::r x; chmod u= x"),
            ("echo 1 >f", "echo 2 >f; setfattr -n user.a -v 1 .; chmod 000 ."),
        ] {
            assert_as_by_hand(&spot, &reachable, made, script);
        }
        for seed in 0..rounds(20) as u64 {
            let (made, script) = random(seed);
            assert_as_by_hand(&spot, &reachable, &made, &script);
        }
    }
}

/// Returns commands that make a tree in which some directories are read-only, and others that change it and close what they have left.
fn random(seed: u64) -> (String, String) {
    let mut random = SplitMix64::new(seed);
    let mut pick = |most: usize| usize::try_from(random.below(most as u64)).unwrap();
    let names = ["a", "b", "a/a", "a/b", "b/a", "b/a/a", "b/a/b"];
    let mut made = format!("mkdir -p {}", names.join(" "));
    for name in names {
        made += &format!("; echo 1 >{name}/f");
    }
    // The deepest first: nothing is reached through a closed directory.
    for name in names.iter().rev().chain(&["."]) {
        if pick(3) == 0 {
            made += &format!("; chmod 555 {name}");
        }
    }
    let mut script = "chmod -R u+rwX .".to_owned();
    for number in 0..8 {
        let (name, other) = (names[pick(7)], names[pick(7)]);
        script += &match pick(6) {
            0 => format!("; rm -rf {name}; mkdir -p {name}; echo {number} >{name}/n"),
            1 => format!("; mkdir -p {name}; echo {number} >>{name}/f"),
            2 => format!("; rm -f {name}/f"),
            3 => format!("; mkdir -p {name}/new{number}/x; echo {number} >{name}/new{number}/x/f"),
            4 => format!("; mkdir -p {name} {other}; echo {number} >{name}/m{number}; mv {name}/m{number} {other}"),
            _ => format!("; rm -rf {name}"),
        };
    }
    for name in names.iter().rev().chain(&["."]) {
        let mode = ["000", "300", "555", "100", "400", "1755"][pick(6)];
        match pick(4) {
            0 => script += &format!("; [ ! -d {name} ] || chmod {mode} {name}"),
            1 => script += &format!("; [ ! -f {name}/f ] || chmod {mode} {name}/f"),
            _ => {}
        }
    }
    (made, script)
}

#[test]
fn changes_in_nested_subvolumes_are_made_in_the_tree() {
    for is_subvolume in [false, true] {
        let Some(spot) = Spot::on(FileSystem::Btrfs).and_then(place) else { return };
        let subvolume = |path: &str| sh(&spot, &format!("btrfs subvolume create {path} >/dev/null"));
        let script = "echo 2 >data/f; echo 2 >data/new; rm data/gone; mkdir -p data/in/d; echo 2 >data/in/f; echo 2 >top; rm -r other; \
                      mkdir other; echo 2 >other/f; chmod 711 data";
        sh(&spot, "rm -rf tree");
        if is_subvolume {
            subvolume("tree");
        } else {
            sh(&spot, "mkdir tree");
        }
        ["tree/data", "tree/data/in", "tree/other"].into_iter().for_each(subvolume);
        sh(
            &spot,
            "cd tree; for f in data/f data/gone data/in/f data/in/g other/g top; do echo 1 >$f; done; cp -a . ../hand",
        );
        let by_hand = Command::new("sh").args(["-ec", script]).current_dir(spot.join("hand")).status().unwrap();
        assert!(by_hand.success());
        run(&spot, &["--keep=../kept"], script).succeeds();
        assert_same_except(spot.join("hand"), spot.join("kept"), &[Aspect::Times]);
        run(&spot, &["--apply"], script).succeeds();
        assert_same_except(spot.join("hand"), spot.join("tree"), &[Aspect::Times]);
        // Those that it had are still there.
        let shown = Command::new("btrfs").args(["subvolume", "show"]).arg(spot.join("tree/data/in")).output().unwrap();
        assert!(shown.status.success(), "{shown:?}");
        let left =
            Command::new("find").args([".", "-name", ".calve*"]).current_dir(spot.join("tree")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&left.stdout), "");
    }
}

/// Nested subvolumes whose roots the command closes to their own user: hidden entries in them go, and the times are the command's.
#[test]
fn nested_subvolumes_may_end_closed() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for (is_subvolume, closing) in [
        (true, "chmod 555 data"),
        (false, "chmod 555 data"),
        (true, "chmod 555 data/in"),
        (true, "chmod 500 data/in; chmod 555 data; chmod 555 ."),
        (true, "chmod 000 data/in; chmod 100 data"),
        (false, "chmod 700 data"),
    ] {
        let Some(spot) = Spot::on(FileSystem::Btrfs).and_then(place) else { return };
        let subvolume = |path: &str| sh(&spot, &format!("btrfs subvolume create {path} >/dev/null"));
        sh(&spot, "rm -rf tree");
        if is_subvolume {
            subvolume("tree");
        } else {
            sh(&spot, "mkdir tree");
        }
        ["tree/data", "tree/data/in"].into_iter().for_each(subvolume);
        let id = UnprivilegedUser::UID;
        sh(
            &spot,
            &format!(
                "cd tree; for f in data/f data/gone data/in/f top; do echo 1 >$f; done; chown -hR {id}:{id} ..; cp -a . ../hand"
            ),
        );
        let script = format!(
            "echo 2 >data/f; echo 2 >data/new; rm data/gone; echo 2 >data/in/f; mkdir data/in/d; echo 2 >top; \
             touch -d @5 data/in; touch -d @6 data; {closing}"
        );
        let mut by_hand = UnprivilegedUser::command("sh");
        assert!(by_hand.args(["-ec", &script]).current_dir(spot.join("hand")).status().unwrap().success());
        for (option, changed) in [("--keep=../kept", "kept"), ("--apply", "tree")] {
            let ran = run(&spot, &[option], &script).by_somebody_else(&reachable).run();
            assert_eq!(ran.status.code(), Some(0), "{option}, {closing}: {}", ran.stderr);
            assert_same_except(spot.join("hand"), spot.join(changed), &[Aspect::Times]);
            let left =
                Command::new("find").args([".", "-name", ".calve*"]).current_dir(spot.join(changed)).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&left.stdout), "", "{option}, {closing}");
        }
        let inode = |path: &str| fs_err::metadata(spot.join(path)).unwrap();
        assert_ne!(inode("tree").dev(), inode("tree/data").dev());
        assert_eq!(is_subvolume, inode("kept").dev() != inode("kept/data").dev());
        assert_eq!(["kept/data/in", "kept/data"].map(|path| inode(path).mtime()), [5, 6], "{closing}");
    }
}

/// The snapshot of the middle one is as closed as that is, and gets one of the inner one.
#[test]
fn a_subvolume_in_a_closed_one_is_kept() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Btrfs).and_then(place) else { return };
    sh(&spot, "rm -rf tree; for path in tree tree/data tree/data/in; do btrfs subvolume create $path >/dev/null; done");
    let id = UnprivilegedUser::UID;
    sh(&spot, &format!("echo 1 >tree/data/in/f; touch -d @5 tree/data; chown -hR {id}:{id} .; chmod 555 tree/data"));
    run(&spot, &["--keep=../kept"], "echo 2 >data/in/f").by_somebody_else(&reachable).succeeds();
    assert_eq!(fs_err::read_to_string(spot.join("kept/data/in/f")).unwrap(), "2\n");
    for tree in ["tree", "kept"] {
        let middle = fs_err::metadata(spot.join(tree).join("data")).unwrap();
        assert_eq!((middle.mode() & 0o777, middle.mtime()), (0o555, 5), "{tree}");
    }
}

/// The command leaves a process that goes on making and removing entries.
#[test]
fn what_goes_while_it_is_listed_is_no_failure() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = place(Spot::anywhere()) else { return };
    let id = UnprivilegedUser::UID;
    sh(&spot, &format!("chown -hR {id}:{id} ."));
    for works in [
        "seq 2000 | xargs mkdir; rm -rf *",
        "seq 2000 | xargs touch; chmod 0 *; rm -f *",
        "mkdir -p $(seq -f %g/1/2 500); rm -rf *; seq 500 | xargs touch; rm -f *",
    ] {
        for round in 0..rounds(20) {
            // Another one each time: what an earlier round has left may not have looked yet.
            let go = format!("go{round}");
            let script = format!(
                "mkdir n; echo 1 >n/in; mkdir n/w; cd n/w; \
                 while [ -e ../../../{go} ]; do {works}; done </dev/null >/dev/null 2>&1 & sleep 0.1"
            );
            sh(&spot, &format!("touch {go}; chown {id}:{id} {go}"));
            let ran = run(&spot, &["--json"], &script).by_somebody_else(&reachable).run();
            fs_err::remove_file(spot.join(&go)).unwrap();
            assert_eq!(ran.status.code(), Some(0), "{works}: {}", ran.stderr);
            let ran = ran.says(&["processes of the command still run"]);
            let listed = listed_in(&ran.json());
            assert!(listed.contains(&"- n/in f".to_owned()), "{works}: {listed:?}");
        }
    }
}
