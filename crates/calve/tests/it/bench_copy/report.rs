//! Measurements, and the report of them.

use calve_testkit::{FileSystem, Volume, fingerprint, matrix, node_modules_like};
use serde_json::{Value, json};

use super::{Programs, bench_of, commands, of_command};
use crate::program::{Reachable, keys_in_order};
use crate::spot::Spot;

const MIB: usize = 1 << 20;

/// Every key of hyperfine's `results[]`, up to version 1.20.
const OF_HYPERFINE: [&str; 11] =
    ["command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "memory_usage_byte", "exit_codes"];

fn numbers(values: &Value) -> Vec<f64> {
    values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn it_measures_everything_and_leaves_nothing() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    node_modules_like(spot.join("tree"), 200);
    let before = fingerprint(spot.join("tree"));
    let programs = Programs::none().real("cp").real("rsync");
    let bench = || bench_of(spot.join("tree"), &spot).within(&spot).env("PATH", programs.path());
    let ran = bench().args(["--runs", "3", "--json"]).succeeds();
    spot.holds(&["tree"]);
    before.assert_unchanged(spot.join("tree"));

    let report = ran.json();
    assert_eq!(report["schema"], "calve.bench/1");
    assert_eq!(report["rounds"], 3);
    let measured = commands(&report["results"]);
    let expected = [
        "cp -r SRC DST",
        "cp -a SRC DST",
        "cp -a --reflink=always SRC DST",
        "cp -a --reflink=never SRC DST",
        "cp -al SRC DST",
        "rsync -a SRC/ DST",
        "rsync -a --link-dest=SRC SRC/ DST",
        "calve cp SRC DST",
        "calve cp --strategy copy SRC DST",
        "calve cp --strategy hardlink SRC DST",
        "calve cp --strategy spare SRC DST",
    ];
    for command in expected {
        assert!(measured.contains(&command), "{command} is not in {measured:?}");
    }
    assert_eq!(measured.len(), expected.len(), "{measured:?}");
    assert_eq!(report["failed"], json!([]));
    assert_eq!(of_command(&report["not_run"], "cpz SRC DST")["why"], "missing");
    assert_eq!(of_command(&report["not_run"], "calve cp --strategy snapshot SRC DST")["why"], "refused");

    // The table tells of every command, of every version, and of the places.
    let table = bench().args(["--runs", "1"]).succeeds().stdout;
    let kernel = report["machine"]["kernel"].as_str().unwrap();
    for words in [&measured[..], &["cpz SRC DST", "rsync  version", "calve 0.", "inode64", kernel]].concat() {
        assert!(table.contains(words), "{words} is missing in {table}");
    }
    for line in ["round 3", "removing everything that was made"] {
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
}

#[test]
fn the_json_is_a_superset_of_hyperfines() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    spot.tree("tree").file("a", vec![1; 100_000]).dir("d");
    let programs = Programs::none().real("cp");
    let command = bench_of(spot.join("tree"), &spot).args(["--json", "--runs", "4"]);
    let report = command.env("PATH", programs.path()).succeeds().json();
    spot.holds(&["tree"]);
    for result in report["results"].as_array().unwrap() {
        assert_eq!(keys_in_order(result)[..OF_HYPERFINE.len()], OF_HYPERFINE);
        let times = numbers(&result["times"]);
        assert_eq!((times.len(), &result["exit_codes"]), (4, &json!([0, 0, 0, 0])));
        let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key}: {result:#}"));
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        assert_eq!((number("min"), number("max")), (sorted[0], sorted[3]));
        assert!((number("median") - f64::midpoint(sorted[1], sorted[2])).abs() < 1e-12);
        assert!((number("mean") - times.iter().sum::<f64>() / 4.0).abs() < 1e-12);
        assert!(number("stddev") >= 0.0 && number("user") >= 0.0 && number("system") >= 0.0);
        assert!(numbers(&result["memory_usage_byte"]).iter().all(|bytes| *bytes > 100_000.0), "{result:#}");
        assert_eq!(numbers(&result["ratios"]).len(), 4);
        assert!(number("ratio_to_fastest") > 0.0);
    }
    // One run has no deviation, and hyperfine writes null.
    let report = bench_of(spot.join("tree"), &spot).args(["--json", "--runs", "1"]).env("PATH", programs.path());
    assert!(report.succeeds().json()["results"][0]["stddev"].is_null());
}

#[test]
fn sharing_takes_no_space_and_copying_does() {
    for file_system in matrix(FileSystem::REFLINKING) {
        let Some(spot) = Spot::on(file_system) else { return };
        for name in ["a", "b", "c", "d"] {
            spot.tree("tree").file(name, vec![name.as_bytes()[0]; 8 * MIB]);
        }
        let programs = Programs::none().real("cp");
        let command = bench_of(spot.join("tree"), &spot).args(["--json", "--runs", "1"]);
        let report = command.env("PATH", programs.path()).succeeds().json();
        let disk = |command: &str| of_command(&report["results"], command)["disk_bytes"].as_i64().unwrap();
        for shares in ["calve cp SRC DST", "cp -a --reflink=always SRC DST", "cp -al SRC DST"] {
            assert!(disk(shares) < MIB as i64, "{shares}: {}", disk(shares));
        }
        for writes in ["cp -a --reflink=never SRC DST", "calve cp --strategy copy SRC DST"] {
            let used = disk(writes);
            assert!((32 * MIB as i64..40 * MIB as i64).contains(&used), "{writes}: {used}");
        }
    }
}

#[test]
fn what_is_not_possible_is_listed_with_the_reason() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("tree").file("a", b"1");
    let programs = Programs::none().real("cp");
    let report = bench_of(spot.join("tree"), &spot).args(["--json", "--runs", "1"]);
    let report = report.env("PATH", programs.path()).succeeds().json();
    for command in ["cp -a --reflink=always SRC DST", "calve cp --strategy reflink SRC DST"] {
        let reason = of_command(&report["not_run"], command)["reason"].as_str().unwrap();
        assert!(reason.contains("ext4 cannot share extents"), "{command}: {reason}");
    }
    let missing = of_command(&report["not_run"], "xcp -r --no-progress SRC DST");
    assert_eq!((&missing["why"], &missing["remedy"]), (&json!("missing"), &json!("cargo install xcp")));
    assert_eq!(report["facts"]["chosen"], "copy");
}

#[test]
fn a_subvolume_is_snapshotted_by_calve_and_by_its_peer() {
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    spot.subvolume("tree").file("a", b"1");
    let programs = Programs::none().real("cp").real("btrfs");
    let command = bench_of(spot.join("tree"), &spot).args(["--json", "--runs", "2"]);
    let report = command.env("PATH", programs.path()).succeeds().json();
    for command in ["btrfs subvolume snapshot SRC DST", "calve cp SRC DST", "calve cp --strategy reflink SRC DST"] {
        assert_eq!(numbers(&of_command(&report["results"], command)["times"]).len(), 2);
    }
    assert_eq!(report["facts"]["chosen"], "snapshot");
    spot.holds(&["tree"]);
}

#[test]
fn a_tree_elsewhere_is_copied_first_and_that_is_said() {
    let (Some(elsewhere), Some(spot)) = (Spot::on(FileSystem::Tmpfs), Spot::on(FileSystem::Xfs)) else { return };
    elsewhere.tree("tree").file("a", vec![1; 100_000]).symlink("l", "a");
    let before = fingerprint(elsewhere.join("tree"));
    let programs = Programs::none().real("cp");
    let command = bench_of(elsewhere.join("tree"), &spot).args(["--runs", "1", "--json"]);
    let ran = command.within(&spot).env("PATH", programs.path()).succeeds();
    assert!(ran.stderr.contains("the tree is on another file system: it is copied there once"), "{}", ran.stderr);
    let report = ran.json();
    assert_eq!(report["facts"]["same_file_system"], false);
    assert_eq!(
        (&report["facts"]["tree"]["file_system"], &report["facts"]["tree"]["files"]),
        (&json!("tmpfs"), &json!(1))
    );
    // So sharing can be measured all the same.
    of_command(&report["results"], "cp -a --reflink=always SRC DST");
    of_command(&report["results"], "calve cp --strategy hardlink SRC DST");
    before.assert_unchanged(elsewhere.join("tree"));
    spot.holds(&[]);
    elsewhere.holds(&["tree"]);
}

#[test]
fn on_btrfs_the_copy_of_a_tree_elsewhere_is_a_subvolume() {
    let (Some(elsewhere), Some(spot)) = (Spot::on(FileSystem::Ext4), Spot::on(FileSystem::Btrfs)) else { return };
    elsewhere.tree("tree").file("a", vec![1; 100_000]).file("d/b", b"b");
    let programs = Programs::none().real("btrfs");
    let command = bench_of(elsewhere.join("tree"), &spot).args(["--runs", "2", "--json"]);
    let ran = command.within(&spot).env("PATH", programs.path()).succeeds();
    let report = ran.json();
    assert_eq!(report["facts"]["chosen"], "snapshot");
    for command in ["btrfs subvolume snapshot SRC DST", "calve cp SRC DST", "calve cp --strategy reflink SRC DST"] {
        of_command(&report["results"], command);
    }
    spot.holds(&[]);
}

#[test]
fn results_are_deleted_in_between_where_they_do_not_fit() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 80 << 20) else { return };
    let spot = Spot::at(volume);
    spot.tree("tree").file("a", vec![1; 8 * MIB]);
    let programs = Programs::none().real("cp");
    let command = bench_of(spot.join("tree"), &spot).args(["--runs", "3", "--json"]);
    let ran = command.within(&spot).env("PATH", programs.path()).succeeds();
    let report = ran.json();
    assert!(!report["deletions"].as_array().unwrap().is_empty());
    assert_eq!(report["failed"], json!([]));
    spot.holds(&["tree"]);
}

#[test]
fn a_faster_peer_is_marked_in_the_table_and_in_the_end() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    node_modules_like(spot.join("tree"), 3000);
    // Faster than any copier, because it makes an empty directory. The report says what it lacks, too.
    let programs = Programs::none().script("cpz", "mkdir \"$2\"").real("cp");
    let bench = || bench_of(spot.join("tree"), &spot).args(["--runs", "3"]).env("PATH", programs.path());
    let ran = bench().succeeds();
    let line = |words: &str| ran.stdout.lines().find(|line| line.contains(words)).unwrap().to_owned();
    assert!(line("| `cpz SRC DST`").contains("faster than `calve cp SRC DST`"), "{}", ran.stdout);
    assert!(line("- independent copies: faster than `calve cp SRC DST`").contains("`cpz SRC DST`"), "{}", ran.stdout);
    assert!(line("`cpz SRC DST` did not keep").contains("missing of 3,"), "{}", ran.stdout);
    let report = bench().arg("--json").succeeds().json();
    let peer = of_command(&report["results"], "cpz SRC DST");
    assert_eq!((&peer["faster_than"], &peer["ratio_to_fastest"]), (&json!("calve cp SRC DST"), &json!(1.0)));
    assert_eq!(report["versions"]["cpz"], "cpz 7.8");
}

#[test]
fn it_works_without_privileges() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("tree").file("a", vec![1; 50_000]);
    let command = bench_of(spot.join("tree"), &spot).args(["--runs", "1", "--json"]);
    let report = command.by_somebody_else(&reachable).succeeds().json();
    of_command(&report["results"], "calve cp SRC DST");
    spot.holds(&["tree"]);
    // A file that one may not read can only be copied by another user.
    spot.tree("tree").file("secret", b"1").mode("secret", 0o000);
    let ran = bench_of("tree", ".").args(["--runs", "1"]).within(&spot).by_somebody_else(&reachable).fails(1);
    ran.says(&["secret", "Permission denied"]).hints();
    spot.holds(&["tree"]);
}
