//! `calve probe`: what a place can do, found by doing it there, with nothing left of the trial.

use calve_testkit::{FileSystem, Volume, fingerprint};
use serde_json::{Value, json};

use crate::program::{Reachable, keys, probe};
use crate::spot::{Spot, nothing_left};

fn offer<'a>(report: &'a Value, strategy: &str) -> &'a Value {
    let offers = report["strategies"].as_array().unwrap();
    offers.iter().find(|offer| offer["strategy"] == strategy).unwrap()
}

#[test]
fn the_document_has_exactly_the_keys_of_its_schema() {
    for file_system in FileSystem::ALL {
        let Some(spot) = Spot::on(file_system) else { return };
        spot.tree("src").file("a", vec![1; 100_000]);
        let before = fingerprint(spot.join("src"));
        let ran = probe().args(["--json", "src", "."]).within(&spot).succeeds();
        assert_eq!(ran.stderr, "");
        let report = ran.json();
        assert_eq!(keys(&report), ["chosen", "dst", "schema", "src", "strategies"]);
        assert_eq!(report["schema"], "calve.probe/1");
        for place in ["src", "dst"] {
            assert_eq!(keys(&report[place]), ["device", "file_system", "path"]);
            assert_eq!(report[place]["file_system"], file_system.name());
        }
        let reflinks = FileSystem::REFLINKING.contains(&file_system);
        assert_eq!(report["chosen"], if reflinks { "reflink" } else { "copy" });
        assert_eq!(offer(&report, "reflink")["available"], reflinks);
        assert_eq!(offer(&report, "copy")["available"], true);
        let names: Vec<_> =
            report["strategies"].as_array().unwrap().iter().map(|one| one["strategy"].clone()).collect();
        assert_eq!(names, ["spare", "snapshot", "clonefile", "reflink", "copy", "hardlink", "overlay"]);
        for offer in report["strategies"].as_array().unwrap() {
            assert_eq!(keys(offer), ["available", "reason", "remedy", "strategy"]);
            assert_eq!(offer["reason"].is_null(), offer["available"] == true, "{offer}");
        }
        nothing_left(&spot);
        before.assert_unchanged(spot.join("src"));
    }
}

#[test]
fn refusals_come_with_reasons_and_remedies() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1");
    let report = probe().args(["--json", "src"]).within(&spot).succeeds().json();
    let reflink = offer(&report, "reflink");
    assert!(reflink["reason"].as_str().unwrap().contains("ext4 cannot share extents"), "{reflink}");
    assert_eq!(reflink["remedy"], "keep both on btrfs, XFS, bcachefs or another file system with reflinks");
    let snapshot = offer(&report, "snapshot");
    assert_eq!(snapshot["remedy"], "keep the source in a btrfs subvolume");
    let table = probe().args(["src"]).within(&spot).succeeds();
    for words in ["from  src (ext4", "to    src (ext4", "refused: ext4 cannot share", "to have it: ", "would be used"] {
        assert!(table.stdout.contains(words), "{words}: {}", table.stdout);
    }
    assert_eq!(table.stderr, "");
    nothing_left(&spot);
    nothing_left(spot.join("src"));
}

#[test]
fn a_pair_is_judged_as_a_pair() {
    let (Some(here), Some(there)) = (Spot::on(FileSystem::Xfs), Spot::on(FileSystem::Xfs)) else { return };
    here.tree("src").file("a", vec![1; 100_000]);
    let report = probe().arg("--json").arg(here.join("src")).arg(&there).succeeds().json();
    assert_eq!(report["chosen"], "copy");
    for strategy in ["reflink", "hardlink"] {
        let refused = offer(&report, strategy);
        assert!(refused["reason"].as_str().unwrap().contains("different file systems"), "{refused}");
    }
    assert_eq!(offer(&report, "reflink")["remedy"], "clone to a place on the source's file system");
    assert_ne!(report["src"]["device"], report["dst"]["device"]);
    // A place that is not there yet is judged by its parent.
    let report = probe().arg("--json").arg(here.join("src")).arg(here.join("new")).succeeds().json();
    assert_eq!(report["chosen"], "reflink");
    assert!(!here.join("new").exists());
    nothing_left(&here);
    nothing_left(&there);
}

#[test]
fn a_subvolume_can_be_snapshotted() {
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    spot.subvolume("src").file("a", b"1");
    let report = probe().args(["--json", "src", "."]).within(&spot).succeeds().json();
    assert_eq!((&report["chosen"], &offer(&report, "snapshot")["available"]), (&json!("snapshot"), &json!(true)));
    spot.tree("directory").file("a", b"1");
    let report = probe().args(["--json", "directory", "."]).within(&spot).succeeds().json();
    let advice = "create a btrfs subvolume (btrfs subvolume create), and clone the source into it";
    assert_eq!(offer(&report, "snapshot")["remedy"], advice);
    nothing_left(&spot);
}

#[test]
fn only_its_owner_snapshots_a_subvolume() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    ["src", "src/nested"].into_iter().for_each(|name| drop(spot.subvolume(name)));
    spot.tree("").mode("", 0o777).owner("src", 12345, 12345);
    let report = probe().args(["--json", "src", "."]).within(&spot).by_somebody_else(&reachable).succeeds().json();
    assert_eq!(offer(&report, "snapshot")["remedy"], "run as its owner", "{report}");
}

#[test]
fn a_place_that_cannot_be_probed_is_an_error() {
    let spot = Spot::anywhere();
    spot.tree("").file("file", b"1");
    // The current directory is the default.
    let report = probe().arg("--json").within(&spot).succeeds().json();
    assert_eq!((&report["src"]["path"], &report["dst"]["path"]), (&json!("."), &json!(".")));
    probe().arg("missing").within(&spot).fails(1).says(&["`missing` does not exist"]).hints();
    probe().args([".", "missing/too"]).within(&spot).fails(1).says(&["`missing` does not exist"]).hints();
    probe().args(["a", "b", "c"]).within(&spot).fails(2);
    let ran = probe().args(["--json"]).within(&spot).in_shell("", ">/dev/full").ends(1);
    ran.says(&["stdout"]);
    let ran = probe().within(&spot).in_shell("", ">/dev/full").ends(1);
    ran.says(&["stdout"]);
    spot.holds(&["file"]);
}

#[test]
fn a_read_only_place_says_so() {
    let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
    volume.remount_read_only();
    let ran = probe().arg("--json").arg(volume.path()).succeeds();
    let report = ran.json();
    assert!(report["chosen"].is_null(), "{report}");
    for strategy in ["reflink", "copy", "hardlink"] {
        let reason = offer(&report, strategy)["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("cannot write to") && reason.contains("Read-only file system"), "{reason}");
    }
    assert!(offer(&report, "snapshot")["reason"].as_str().unwrap().contains("no snapshots"));
    assert!(!probe().arg(volume.path()).succeeds().stdout.contains("available"));
}

#[test]
fn it_works_without_privileges() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    for file_system in FileSystem::ALL {
        let Some(spot) = Spot::on(file_system) else { return };
        spot.tree("src").file("a", vec![1; 100_000]);
        spot.tree("").dir("his").mode("his", 0o777).dir("closed").mode("closed", 0o755);
        let ran = probe().args(["--json", "src", "his"]).within(&spot).by_somebody_else(&reachable).succeeds();
        let reflinks = FileSystem::REFLINKING.contains(&file_system);
        assert_eq!(ran.json()["chosen"], if reflinks { "reflink" } else { "copy" });
        nothing_left(spot.join("his"));
        let ran = probe().args(["src", "closed"]).within(&spot).by_somebody_else(&reachable).succeeds();
        assert!(ran.stdout.contains("cannot write to `closed`: Permission denied"), "{}", ran.stdout);
    }
}
