//! `--only`: a part of the commands.

use calve_testkit::FileSystem;
use serde_json::json;

use super::{Programs, bench_of, commands, of_command};
use crate::spot::Spot;

#[test]
fn only_the_named_commands_are_run() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("tree").file("a", b"1");
    let programs = Programs::none().real("cp").real("rsync");
    let report = |names: &str| {
        let command = bench_of("tree", ".").args(["--runs", "1", "--json", "--only", names]).within(&spot);
        command.env("PATH", programs.path()).succeeds().json()
    };
    let some = report("calve cp,cp -a, cpz ");
    let mut measured = commands(&some["results"]);
    measured.sort_unstable();
    assert_eq!(measured, ["calve cp SRC DST", "cp -a SRC DST"]);
    // Named programs that are missing are reported; others are not.
    assert_eq!(commands(&some["not_run"]), ["cpz SRC DST"]);
    assert_eq!(some["facts"]["commands_chosen"], json!(["calve cp", "cp -a", "cpz"]));
    // A program means all of its commands.
    let mut of_rsync =
        commands(&report("rsync")["results"]).iter().map(|command| (*command).to_owned()).collect::<Vec<_>>();
    of_rsync.sort_unstable();
    assert_eq!(of_rsync, ["rsync -a --link-dest=SRC SRC/ DST", "rsync -a SRC/ DST"]);
    spot.holds(&["tree"]);
}

#[test]
fn unknown_names_and_names_of_what_cannot_run_are_errors() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("tree").file("a", b"1");
    let programs = Programs::none().real("cp");
    let of = |names: &str| bench_of("tree", ".").args(["--only", names]).within(&spot).env("PATH", programs.path());
    let ran = of("cp,cq").fails(2).says(&["the names are"]);
    ran.says(&[
        "`cq` names no command",
        "`cp`, `cp -r`, `cp -a`",
        "`calve cp --strategy reflink`",
        "`xcp -r --no-progress`",
    ])
    .hints();
    of("").fails(2).says(&["names no command"]).hints();
    of("cpz").fails(1).says(&["`cpz SRC DST`: `cpz` is not installed", "cargo install cpz"]).hints();
    of("calve cp --strategy reflink").fails(1).says(&["ext4 cannot share extents"]).hints();
    spot.holds(&["tree"]);
    // The others are run all the same.
    let report = of("calve cp --strategy reflink,calve cp").args(["--runs", "1", "--json"]).succeeds().json();
    assert_eq!(commands(&report["results"]), ["calve cp SRC DST"]);
    let reflink = of_command(&report["not_run"], "calve cp --strategy reflink SRC DST");
    assert!(reflink["remedy"].as_str().unwrap().starts_with("keep both on btrfs"), "{reflink}");
}
