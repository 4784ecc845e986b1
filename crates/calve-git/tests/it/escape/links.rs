//! Symlinks into the old tree.

use calve_git::escape::{Action, Explanation, ReferenceKind};

use super::{Pair, outline};

#[test]
fn absolute_links_lead_to_the_new_tree() {
    let pair = Pair::new();
    pair.file("packages/a/index.js", "").link("node_modules/a", "{old}/packages/a").link("root", "{old}");
    pair.link("outside", "/usr/bin").link("near", "{old}-2/x");
    let expected = ["node_modules/a", "root"].map(|path| (ReferenceKind::AbsoluteLink, path, Action::Repaired));
    assert_eq!(outline(&pair.fixed()), expected);
    pair.leads("node_modules/a", "{new}/packages/a");
    pair.leads("root", "{new}");
    pair.leads("near", "{old}-2/x");
}

#[test]
fn a_link_to_what_only_the_old_tree_has_is_reported() {
    let pair = Pair::new();
    pair.link("data", "{old}/big");
    calve_testkit::Tree::new(pair.old()).file("big/file", b"");
    let found = pair.fixed();
    assert_eq!(outline(&found), [(ReferenceKind::AbsoluteLink, "data", Action::Reported)]);
    assert_eq!(found[0].names, pair.old().join("big"));
    assert_eq!(found[0].explanation, Explanation::TargetMissing("big".into()));
    pair.leads("data", "{old}/big");
}

#[test]
fn a_link_to_what_no_tree_has_is_reported() {
    let pair = Pair::new();
    pair.link("node_modules/.bin/n", "{old}/nope").link("up", "../main/nope");
    let expected = [
        (ReferenceKind::AbsoluteLink, "node_modules/.bin/n", Action::Reported),
        (ReferenceKind::LeavingLink, "up", Action::Reported),
    ];
    assert_eq!(outline(&pair.fixed()), expected);
    pair.leads("node_modules/.bin/n", "{old}/nope");
    pair.leads("up", "../main/nope");
}

#[test]
fn relative_links_inside_the_tree_are_left_alone() {
    let pair = Pair::new();
    pair.link("a/b/c", "../../x").link("a/d", "./../y/../z").link("e", "f");
    assert_eq!(outline(&pair.fixed()), []);
}

#[test]
fn relative_links_that_leave_the_tree_come_back_into_it() {
    let pair = Pair::new();
    pair.file("lib/x", "").link("a/up", "../../main/lib/x").link("top", "../main/lib").link("sibling", "../shared");
    let found = pair.fixed();
    let expected = ["a/up", "top"].map(|path| (ReferenceKind::LeavingLink, path, Action::Repaired));
    assert_eq!(outline(&found), expected, "the sibling is the same for both");
    pair.leads("a/up", "../lib/x");
    pair.leads("top", "lib");
}

#[test]
fn a_link_out_of_a_tree_at_another_depth_leads_to_what_it_led_to() {
    let pair = Pair::at("work/main", "trees/deep/b");
    calve_testkit::Tree::new(pair.folder()).file("work/shared/x", b"");
    pair.link("shared", "../shared").link("a/none", "../../nothing");
    assert_eq!(outline(&pair.fixed()), [(ReferenceKind::LeavingLink, "shared", Action::Repaired)]);
    pair.leads("shared", "../../../work/shared");
}
