//! A user without any privilege: what works, and the messages about the rest.

use std::path::Path;

use calve_testkit::{
    Aspect, FileSystem, UnprivilegedUser, assert_same, assert_same_except, everything, fingerprint, matrix,
};
use rustix::fs::FileType;
use serde_json::{Value, json};

use crate::program::{Calve, Reachable, calve, cp, rm};
use crate::spot::{Spot, eventually_nothing_left, leftovers, names, nothing_left};

/// A spot and the program, both within reach of another user.
struct Guest {
    spot: Spot,
    reachable: Reachable,
}

impl Guest {
    fn on(file_system: FileSystem) -> Option<Self> {
        Some(Self { reachable: Reachable::for_somebody_else()?, spot: Spot::on(file_system)? })
    }

    fn runs(&self, command: Calve) -> Calve {
        command.within(&self.spot).by_somebody_else(&self.reachable)
    }

    fn shell(&self, script: &str) {
        let output = UnprivilegedUser::command("sh").args(["-ec", script]).current_dir(&*self.spot).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn warning<'a>(receipt: &'a Value, code: &str) -> Option<&'a Value> {
    receipt["warnings"].as_array().unwrap().iter().find(|warning| warning["code"] == code)
}

#[test]
fn a_tree_of_his_own_is_kept_completely() {
    for file_system in FileSystem::ALL {
        let Some(guest) = Guest::on(file_system) else { return };
        guest.spot.tree("src").file("a", vec![1; 50_000]).file("d/run", b"#!/bin/sh\n").mode("d/run", 0o755);
        guest.spot.tree("src").symlink("l", "a").fifo("f").hard_link("d/a", "a").file("private", b"2");
        guest.spot.tree("src").file("locked/deep/down", b"3").xattr("a", "user.x", b"1");
        guest.spot.tree("src").acl("d", "u:4711:rx,d:u:4711:rwx");
        guest.spot.give_away("src");
        let src = guest.spot.tree("src").mode("private", 0o400).mode("locked/deep", 0o555).mode("locked", 0o500);
        src.mode("d/run", 0o4755).mtime("locked", 1_000_000_000, 1).mtime("", 1_000_000_001, 2);
        let before = fingerprint(guest.spot.join("src"));
        let receipt = guest.runs(cp().args(["--json", "src", "new"])).succeeds().json();
        assert_eq!(receipt["warnings"], json!([]), "{file_system:?}");
        assert_same(guest.spot.join("src"), guest.spot.join("new"));
        guest.runs(cp().args(["-q", "--verify", "src", "verified"])).succeeds();
        guest.runs(cp().args(["-q", "--replace", "-T", "src", "new"])).succeeds();
        assert_same(guest.spot.join("src"), guest.spot.join("new"));
        before.assert_unchanged(guest.spot.join("src"));
        eventually_nothing_left(&guest.spot);
    }
}

#[test]
fn owners_of_a_foreign_tree_are_not_kept_and_that_is_said() {
    for file_system in FileSystem::ALL {
        let Some(guest) = Guest::on(file_system) else { return };
        guest.spot.tree("src").file("a", b"1").file("b", b"2").file("setuid", b"3").mode("setuid", 0o6755).dir("d");
        guest.spot.tree("src").dir("setgid").mode("setgid", 0o2755).mode("b", 0o444);
        let before = fingerprint(guest.spot.join("src"));
        let ran = guest.runs(cp().args(["--json", "src", "new"])).succeeds();
        let receipt = ran.json();
        let owner = warning(&receipt, "owner_not_kept").unwrap();
        assert!(owner["message"].as_str().unwrap().contains("owner or group not kept on "), "{owner}");
        let set_id = warning(&receipt, "set_id_dropped").unwrap();
        assert!(set_id["message"].as_str().unwrap().contains("2 entries"), "{set_id}");
        ran.says(&["warning: owner or group not kept", "warning: set-user-ID or set-group-ID bits not kept"]);
        assert_same_except(guest.spot.join("src"), guest.spot.join("new"), &[Aspect::Owners, Aspect::Modes]);
        let mode = |path: &str| rustix::fs::stat(guest.spot.join("new").join(path)).unwrap().st_mode & 0o7777;
        assert_eq!((mode("setuid"), mode("setgid"), mode("a"), mode("b")), (0o755, 0o755, 0o644, 0o444));
        assert_eq!(rustix::fs::stat(guest.spot.join("new/a")).unwrap().st_uid, UnprivilegedUser::UID);
        before.assert_unchanged(guest.spot.join("src"));
        nothing_left(&guest.spot);
        // It is his now, with all rights to it.
        guest.runs(cp().args(["--json", "--verify", "src", "verified"])).succeeds();
        guest.runs(rm().args(["--wait", "new", "verified"])).succeeds();
        guest.spot.holds(&["src"]);
    }
}

#[test]
fn device_nodes_are_left_out_and_listed() {
    let Some(guest) = Guest::on(FileSystem::Ext4) else { return };
    guest.spot.tree("src").device("null", FileType::CharacterDevice, 1, 3).file("a", b"1");
    let ran = guest.runs(cp().args(["--json", "src", "new"])).succeeds();
    let receipt = ran.json();
    assert_eq!(receipt["skipped"][0]["path"], "null");
    assert_eq!(receipt["entries"]["devices"], 0);
    assert_eq!(names(guest.spot.join("new")), ["a"]);
    ran.says(&["warning: left out `null`"]);
    // Asked for by name, its absence would be no clone at all.
    let ran = guest.runs(cp().args(["src/null", "node"])).run();
    assert!(!ran.status.success() && !guest.spot.join("node").exists(), "{}", ran.stderr);
    ran.says(&["`src/null`", "device node", "privilege"]).hints();
    nothing_left(&guest.spot);
}

#[test]
fn everything_is_cloned_as_far_as_he_may() {
    for file_system in matrix(FileSystem::ALL) {
        let Some(guest) = Guest::on(file_system) else { return };
        everything(guest.spot.join("src"));
        let before = fingerprint(guest.spot.join("src"));
        // Files that he may not read are an error, and no clone is made of the rest.
        guest.runs(cp().args(["src", "new"])).fails(1).says(&["Permission denied"]).hints();
        guest.spot.holds(&["src"]);
        before.assert_unchanged(guest.spot.join("src"));
    }
}

fn strategy(receipt: &Value) -> &str {
    receipt["strategy"].as_str().unwrap()
}

#[test]
fn his_own_subvolume_is_snapshotted_and_a_foreign_one_is_not() {
    let Some(guest) = Guest::on(FileSystem::Btrfs) else { return };
    for name in ["his", "foreign"] {
        guest.spot.subvolume(name).file("a", vec![1; 100_000]).file("d/b", b"2");
    }
    guest.spot.give_away("his");
    let receipt = guest.runs(cp().args(["--json", "his", "new"])).succeeds().json();
    assert_eq!(strategy(&receipt), "snapshot");
    assert_same(guest.spot.join("his"), guest.spot.join("new"));
    guest.runs(cp().args(["--require", "instant", "his", "newer"])).succeeds();
    // He can write to it and remove it again, without the right to delete subvolumes.
    guest.shell("echo more >> new/a; rm new/d/b; echo x > new/c");
    for clone in ["new", "newer"] {
        guest.runs(rm().args(["--wait", clone])).succeeds();
    }
    guest.spot.holds(&["foreign", "his"]);

    let ran = guest.runs(cp().args(["--json", "foreign", "new"])).succeeds();
    let receipt = ran.json();
    assert_eq!(strategy(&receipt), "reflink");
    let refused = receipt["refused"].as_array().unwrap();
    let snapshot = refused.iter().find(|refusal| refusal["strategy"] == "snapshot").unwrap();
    assert!(snapshot["reason"].as_str().unwrap().contains("only the owner"), "{snapshot}");
    assert_same_except(guest.spot.join("foreign"), guest.spot.join("new"), &[Aspect::Owners]);
    let ran = guest.runs(cp().args(["--require", "instant", "foreign", "newer"])).fails(3);
    ran.says(&["only the owner"]);
    guest.spot.holds(&["foreign", "his", "new"]);
}

#[test]
fn trees_of_his_own_are_removed_even_read_only_ones() {
    for file_system in matrix(FileSystem::ALL) {
        let Some(guest) = Guest::on(file_system) else { return };
        for options in [&["--wait"][..], &[]] {
            guest.shell(
                "mkdir -p tree/a/b/c tree/empty tree/closed/in; echo 1 > tree/a/b/c/f; echo 2 > tree/a/g
                 chmod 000 tree/closed/in tree/empty; chmod 0400 tree/closed; chmod 0555 tree/a/b/c tree/a/b tree/a tree",
            );
            guest.runs(rm().args(options).arg("tree")).succeeds();
            eventually_nothing_left(&guest.spot);
            guest.spot.holds(&[]);
        }
    }
}

#[test]
fn a_clone_with_read_only_directories_can_be_made_again_and_replaced() {
    let Some(guest) = Guest::on(FileSystem::Xfs) else { return };
    guest.shell("mkdir -p src/a/b; echo 1 > src/a/b/c; chmod 0555 src/a/b src/a src");
    guest.runs(cp().args(["src", "new"])).succeeds();
    assert_same(guest.spot.join("src"), guest.spot.join("new"));
    guest.runs(cp().args(["--replace", "-T", "src", "new"])).succeeds();
    assert_same(guest.spot.join("src"), guest.spot.join("new"));
    eventually_nothing_left(&guest.spot);
}

#[test]
fn a_staged_tree_is_closed_to_others() {
    let Some(guest) = Guest::on(FileSystem::Tmpfs) else { return };
    // Wide open in the source, its clone must not be entered before it is complete: links to outside, half-written files.
    calve_testkit::wide(guest.spot.join("src"), 5000);
    guest.spot.tree("").mode("src", 0o777);
    let mut running = cp().args(["src", "new"]).within(&guest.spot).start();
    let mut seen = 0;
    while !running.has_ended() {
        for name in names(&guest.spot) {
            let hidden = name.starts_with(".calve-staging-");
            if let (true, Ok(stat)) = (hidden, rustix::fs::lstat(guest.spot.join(&name))) {
                // The last of all steps before the rename is to give it its mode.
                let complete = is_complete(&guest.spot.join(&name));
                assert!(stat.st_mode & 0o077 == 0 || complete, "{name}: {:o}", stat.st_mode);
                seen += 1;
            }
        }
    }
    running.wait().ended(0);
    assert!(seen > 0);
}

fn is_complete(dir: &Path) -> bool {
    // Gone means renamed, which comes after completion.
    fs_err::read_dir(dir).map_or(true, |entries| entries.count() == 5000)
}

#[test]
fn capabilities_and_trusted_attributes_are_reported() {
    let Some(guest) = Guest::on(FileSystem::Ext4) else { return };
    let src = guest.spot.tree("src").file("capable", b"1").mode("capable", 0o755);
    src.capability("capable", calve_testkit::Capability::NetRaw).xattr("capable", "user.x", b"1");
    let receipt = guest.runs(cp().args(["--json", "src", "new"])).succeeds().json();
    let lost = warning(&receipt, "xattr_not_kept").unwrap();
    assert!(lost["message"].as_str().unwrap().contains("capabilit"), "{lost}");
    assert_same_except(guest.spot.join("src"), guest.spot.join("new"), &[Aspect::Owners, Aspect::Xattrs]);
}

#[test]
fn what_another_user_owns_or_a_sticky_bit_keeps_is_told_before_it_is_moved_away() {
    let Some(guest) = Guest::on(FileSystem::Ext4) else { return };
    guest.spot.give_away("");
    let tree = || guest.spot.tree("it's/mine");
    tree().file("his", b"1").file("deep/root's/a", b"2");
    for mode in [0o755, 0o700] {
        tree().mode("deep/root's", mode);
        for options in [&[][..], &["--wait"], &["-n"], &["-r", "-f"]] {
            for entry in ["", "his", "deep"] {
                tree().owner(entry, UnprivilegedUser::UID, UnprivilegedUser::GID);
            }
            guest.spot.tree("").owner("it's", UnprivilegedUser::UID, UnprivilegedUser::GID);
            let ran = guest.runs(rm().arg("--json").args(options).arg("it's/mine")).fails(1);
            assert_eq!(ran.json()["path"], "it's/mine/deep/root's");
            ran.says(&[
                "error: delete what is in `it's/mine/deep/root's`: Permission denied",
                "hint: another user owns it: delete it as that user, or as root",
            ]);
            assert!(guest.spot.join("it's/mine/his").exists() && leftovers(guest.spot.join("it's")).is_empty());
        }
    }
    // The command that the hint names helps. An empty directory of another user's is no obstacle.
    rm().args(["--wait", "it's/mine/deep/root's"]).within(&guest.spot).succeeds();
    tree().dir("deep/root's");
    guest.runs(rm().args(["--wait", "it's/mine"])).succeeds();
    assert!(!guest.spot.join("it's/mine").exists());
    // The same for entries that a sticky bit keeps.
    guest.spot.tree("s").file("deep/root's", b"1").mode("deep", 0o1777);
    guest.spot.give_away("s");
    guest.spot.tree("").owner("s/deep", 0, 0).owner("s/deep/root's", 0, 0);
    let refused = |command: Calve| {
        let ran = guest.runs(command).fails(1);
        ran.says(&["delete what is in `s/deep`: Permission denied"]);
        assert!(leftovers(&guest.spot).is_empty());
    };
    refused(rm().arg("s"));
    refused(rm().args(["-n", "s"]));
    guest.shell("mkdir new");
    refused(calve(["cp", "-T", "--replace", "new", "s"]));
    // The entries of its own and those of a directory of its own go.
    guest.spot.tree("").owner("s/deep/root's", UnprivilegedUser::UID, UnprivilegedUser::GID);
    guest.runs(rm().args(["-n", "s"])).succeeds();
    guest.spot.tree("").owner("s/deep/root's", 0, 0).owner("s/deep", UnprivilegedUser::UID, UnprivilegedUser::GID);
    guest.runs(rm().args(["--wait", "s"])).succeeds();
    assert!(!guest.spot.join("s").exists());
    // A shared directory is no obstacle, and root removes what others own.
    let tree = guest.spot.tree("mine").file("shared/a", b"1").mode("shared", 0o777);
    tree.owner("", UnprivilegedUser::UID, UnprivilegedUser::GID);
    guest.runs(rm().args(["--wait", "mine"])).succeeds();
    guest.spot.tree("mine").file("his/a", b"1").owner("his", 12345, 12345).mode("his", 0o700);
    rm().args(["--wait", "mine"]).within(&guest.spot).succeeds();
    eventually_nothing_left(&guest.spot);
}

#[test]
fn what_cannot_be_deleted_is_told_and_tried_again() {
    let Some(guest) = Guest::on(FileSystem::Ext4) else { return };
    guest.spot.give_away("");
    // Too far down to be found beforehand: many directories are above it.
    let plant = |tree: &str| {
        let planted = guest.spot.tree(tree).file("his", b"1").file("d/d/root's/a", b"2");
        (0..300).map(|number| format!("wide/{number}")).fold(planted, |tree, name| tree.dir(name));
        for entry in ["d", "d/d", "wide"] {
            guest.spot.tree(tree).owner(entry, UnprivilegedUser::UID, UnprivilegedUser::GID);
        }
        guest.spot.give_away(&format!("{tree}/his"));
        guest.spot.tree("").owner(tree, UnprivilegedUser::UID, UnprivilegedUser::GID);
    };
    plant("waited");
    let ran = guest.runs(rm().args(["--wait", "waited"])).fails(1);
    ran.says(&[
        "`waited` was moved to the trash, but deleting it there failed",
        "sudo calve rm --wait",
        ".calve-trash-",
    ]);
    let trash = || leftovers(&guest.spot).into_iter().find(|name| !name.ends_with(".lock"));
    let stuck = trash().unwrap();

    // The next removal warns, and the command that it names says why.
    guest.spot.tree("other").file("a", b"1");
    guest.spot.give_away("other");
    guest.runs(rm().args(["--wait", "other"])).succeeds().says(&[&format!("`calve rm --wait ./{stuck}`")]);
    let again = guest.runs(rm().args(["--wait", &stuck])).fails(1);
    again.says(&["/d/d/root's", "delete it as that user, or as root"]).hints();

    // The command that the hint names helps.
    rm().args(["--wait", &trash().unwrap()]).within(&guest.spot).succeeds();
    plant("again");
    guest.runs(rm().args(["--wait", "again"])).fails(1);
    guest.spot.tree("").owner(format!("{}/d/d/root's", trash().unwrap()), UnprivilegedUser::UID, UnprivilegedUser::GID);
    guest.runs(rm().args(["--wait", &trash().unwrap()])).succeeds();
    // The locks of these attempts go with the next removal in the background.
    guest.spot.tree("last").file("a", b"1");
    guest.spot.give_away("last");
    guest.runs(rm().arg("last")).succeeds();
    eventually_nothing_left(&guest.spot);
}
