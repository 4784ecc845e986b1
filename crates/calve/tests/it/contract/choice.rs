//! Requirements and named strategies: met, or refused with the reason, and nothing made.

use calve_testkit::{FileSystem, assert_same};
use serde_json::json;

use super::{folder, subvolume};
use crate::program::cp;
use crate::spot::{Spot, names, paths_below};

#[test]
fn a_requirement_that_cannot_be_met_is_refused_with_the_reason() {
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
        let Some(spot) = Spot::on(file_system) else { return };
        spot.tree("src").file("a", b"1");
        for (requirement, source) in [("cow", "src"), ("cow", "src/a"), ("instant", "src"), ("instant", "src/a")] {
            let ran =
                cp().args(["--require", requirement, source, "new"]).within(&spot).fails(3).says(&[
                    "run `calve probe SRC DST` to see what would make it possible, or leave out the requirement",
                ]);
            spot.holds(&["src"]);
            ran.says(&[
                &format!("the requirement `{requirement}` cannot be met here"),
                "snapshot: ",
                "reflink: ",
                "copy: ",
            ]);
        }
        let reason = format!("{} cannot share extents", file_system.name());
        cp().args(["--require", "cow", "src", "new"]).within(&spot).fails(3).says(&[&reason]);
        // An existing target is left alone too.
        spot.tree("old").file("b", b"2");
        cp().args(["--replace", "--require", "cow", "-T", "src", "old"]).within(&spot).fails(3);
        assert_eq!(names(spot.join("old")), ["b"]);
        spot.holds(&["old", "src"]);
    }
}

#[test]
fn requirements_that_can_be_met_are() {
    let Some(spot) = subvolume() else { return };
    for requirement in ["instant", "cow", "stable"] {
        let ran = cp().args(["--json", "--require", requirement, "src", requirement]).within(&spot).succeeds();
        assert_eq!(ran.json()["strategy"], "snapshot");
    }
    cp().args(["--require", "cow", "--require", "stable", "--exclude", "x", "src", "both"]).within(&spot).succeeds();
    cp().args(["--require", "instant", "--exclude", "x", "src", "new"]).within(&spot).fails(3);
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("src").file("small", b"1").file("large", vec![1; 1 << 20]);
    let receipt = cp().args(["--json", "--require", "cow", "src", "new"]).within(&spot).succeeds().json();
    assert_eq!(
        receipt["bytes"],
        json!({ "apparent": (1 << 20) + 1, "shared": (1 << 20) + 1, "written": 0, "inlined": 0 })
    );
    cp().args(["--require", "instant", "src", "newer"]).within(&spot).fails(3);
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1");
    cp().args(["--require", "stable", "src", "new"]).within(&spot).succeeds();
}

#[test]
fn across_file_systems_only_copying_works() {
    let (Some(here), Some(there)) = (Spot::on(FileSystem::Xfs), Spot::on(FileSystem::Xfs)) else { return };
    here.tree("src").file("a", vec![1; 100_000]);
    let receipt = cp().arg("--json").arg(here.join("src")).arg(there.join("new")).succeeds().json();
    assert_eq!(receipt["strategy"], "copy");
    assert_same(here.join("src"), there.join("new"));
    let ran = cp().args(["--require", "cow"]).arg(here.join("src")).arg(there.join("newer")).fails(3);
    there.holds(&["new"]);
    ran.says(&["different file systems"]).hints();
}

#[test]
fn a_named_strategy_is_used_or_refused() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1");
    for strategy in ["snapshot", "clonefile", "reflink"] {
        let ran = cp().args(["--strategy", strategy, "src", "new"]).within(&spot).fails(3).hints();
        ran.says(&[&format!("the strategy `{strategy}` cannot be used"), &format!("{strategy}: ")]);
        spot.holds(&["src"]);
    }
    for strategy in ["copy", "hardlink"] {
        let ran = cp().args(["--json", "--strategy", strategy, "src", strategy]).within(&spot).succeeds();
        assert_eq!(ran.json()["strategy"], strategy);
        assert_same(spot.join("src"), spot.join(strategy));
    }
    let Some(other) = Spot::on(FileSystem::Tmpfs) else { return };
    let ran = cp().args(["--strategy", "hardlink"]).arg(spot.join("src")).arg(other.join("new")).fails(3);
    other.holds(&[]);
    ran.says(&["different file systems"]);
    cp().args(["--strategy", "hardlink", "--require", "cow", "src", "new"]).within(&spot).fails(3);
}

#[test]
fn an_overlay_is_for_callers_of_the_library() {
    let spot = folder();
    let ran = cp().args(["--strategy", "overlay", "src", "new"]).within(&spot).fails(2);
    ran.says(&["overlay", "mount", "library"]);
    cp().args(["--strategy", "magic", "src", "new"]).within(&spot).fails(2).says(&["magic"]);
    cp().args(["--require", "magic", "src", "new"]).within(&spot).fails(2).says(&["instant", "cow", "stable"]);
    cp().args(["--nonsense", "src", "new"]).within(&spot).fails(2).says(&["--nonsense"]);
    assert_eq!(paths_below(&spot), paths_below(folder()));
}
