//! The JSON documents: their shapes and the order of their keys, as `docs/receipt.md` has them.

use serde_json::json;

use crate::program::{Reachable, cp, keys_in_order, probe, rm};
use crate::spot::{Spot, eventually_nothing_left};

#[test]
fn keys_come_in_the_order_of_the_documentation() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    let clone = cp().args(["--json", "src", "new"]).within(&spot).succeeds().json();
    let expected = "schema src dst strategy refused entries bytes fell_back skipped changed warnings elapsed_ms";
    assert_eq!(keys_in_order(&clone).join(" "), expected);
    assert_eq!(keys_in_order(&clone["entries"]).join(" "), "directories files symlinks fifos devices hard_links");
    assert_eq!(keys_in_order(&clone["bytes"]).join(" "), "apparent shared written inlined");
    let plan = cp().args(["-n", "--json", "src", "newer"]).within(&spot).succeeds().json();
    assert_eq!(keys_in_order(&plan).join(" "), "schema src dst strategy refused");
    let probe = probe().args(["--json", "src"]).within(&spot).succeeds().json();
    assert_eq!(keys_in_order(&probe).join(" "), "schema src dst chosen strategies");
    let removed = rm().args(["--json", "new"]).within(&spot).succeeds().json();
    assert_eq!(keys_in_order(&removed).join(" "), "schema removed");
    assert_eq!(keys_in_order(&removed["removed"][0]).join(" "), "path trash deleted_entries warnings elapsed_ms");
    eventually_nothing_left(&spot);
}

#[test]
fn a_dry_run_of_several_is_a_list() {
    let spot = Spot::anywhere();
    spot.tree("").file("a", b"1").file("b", b"2").dir("there");
    let plans = cp().args(["-n", "-q", "--json", "a", "b", "there"]).within(&spot).succeeds().json();
    assert_eq!(keys_in_order(&plans), ["schema", "plans"]);
    assert_eq!(plans["schema"], "calve.plans/1");
    let targets: Vec<_> = plans["plans"].as_array().unwrap().iter().map(|plan| &plan["dst"]).collect();
    assert_eq!(targets, [&json!("there/a"), &json!("there/b")]);
    assert_eq!(plans["plans"][0]["schema"], "calve.plan/1");
    // One that cannot be cloned is missing from the list, and the list stays one.
    let ran = cp().args(["-n", "-q", "--json", "a", "missing", "there"]).within(&spot).ends(1);
    assert_eq!(ran.json()["plans"].as_array().unwrap().len(), 1);
    // One of `calve rm` lists what would go.
    let report = rm().args(["-n", "-f", "--json", "a", "missing", "b"]).within(&spot).succeeds().json();
    assert_eq!(report, json!({ "schema": "calve.remove/1", "removed": [], "would_remove": ["a", "b"] }));
    assert!(spot.join("a").exists() && spot.join("b").exists());
}

#[test]
fn the_root_of_a_tree_is_a_dot() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let spot = Spot::anywhere();
    spot.tree("open/src").dir("");
    for dir in [&*spot, &spot.join("open")] {
        rustix::fs::chmod(dir, 0o777.into()).unwrap();
    }
    let ran = cp().args(["--json", "open/src", "open/new"]).within(&spot).by_somebody_else(&reachable).succeeds();
    let warning = &ran.json()["warnings"][0];
    assert_eq!((&warning["code"], &warning["path"]), (&json!("owner_not_kept"), &json!(".")));
    ran.says(&["(first: `.`)"]);
}
