//! `calve template`, and `@NAME` as the source of `calve cp`.

use calve_testkit::{
    BindMount, FileSystem, SplitMix64, Tree, assert_same, few_rounds, fingerprint, node_modules_like, remove_deep,
    require_root, rounds,
};
use serde_json::{Value, json};

use crate::kill::Killer;
use crate::program::{Calve, calve};
use crate::spot::{Spot, eventually, names};

/// A command whose CALVE_HOME is below the spot.
fn kept<'a>(spot: &Spot, args: impl IntoIterator<Item = &'a str>) -> Calve {
    calve(args).within(spot).env("CALVE_HOME", spot.join("home"))
}

#[test]
fn the_documents_of_each_command_are_as_the_schema_says() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("a", b"1").file("b.log", b"2");
    let made = kept(&spot, ["template", "create", "--json", "--exclude", "*.log", "shop", "src"]).succeeds();
    let made = made.says(&["created the template `shop` by copy: 2 entries, 1 B, in "]).json();
    assert_eq!(made["schema"], "calve.template.create/1");
    assert_eq!((&made["name"], &made["entries"], &made["exclude"]), (&json!("shop"), &json!(2), &json!(["*.log"])));
    let key = &made["key"];
    let listed = kept(&spot, ["template", "list", "--json"]).succeeds().json();
    assert_eq!((&listed["templates"][0]["state"], &listed["templates"][0]["template"]["key"]), (&json!("ready"), key));
    let shown = kept(&spot, ["template", "show", "--json", "shop"]).succeeds().json();
    assert_eq!((&shown["schema"], &shown["key"]), (&json!("calve.template/1"), key));
    assert_eq!(shown["source"], Value::from(spot.join("src").to_str().unwrap()));
    let verified = kept(&spot, ["template", "verify", "--json", "shop"]).succeeds().json();
    assert_eq!(verified["differences"], json!([]));
    let refreshed = kept(&spot, ["template", "refresh", "--json", "shop"]).succeeds();
    let refreshed = refreshed.says(&["refreshed the template `shop`"]).json();
    assert_eq!((&refreshed["key"], &refreshed["exclude"]), (key, &json!(["*.log"])));
    let removed = kept(&spot, ["template", "remove", "--json", "shop"]).succeeds().json();
    assert_eq!(removed, json!({ "schema": "calve.template.remove/1", "names": ["shop"] }));
    let listed = kept(&spot, ["template", "list", "--json"]).succeeds().json();
    assert_eq!(listed["templates"], json!([]));
    let trees = spot.join("home/templates/trees");
    eventually("the files are deleted", || fs_err::read_dir(&trees).unwrap().next().is_none());
}

#[test]
fn a_source_that_was_moved_is_named_anew() {
    let spot = Spot::anywhere();
    spot.tree("src").file("a", b"1");
    kept(&spot, ["template", "create", "-q", "shop", "src"]).succeeds();
    fs_err::rename(spot.join("src"), spot.join("moved")).unwrap();
    let refused = kept(&spot, ["template", "refresh", "shop"]).fails(1);
    refused.says(&["does not exist", "hint: if you moved it, name its new place: calve template refresh shop DIR\n"]);
    kept(&spot, ["template", "refresh", "-q", "shop", "moved"]).succeeds();
}

#[test]
fn spares_of_a_template_outlive_its_refresh_and_go_with_it() {
    let (Some(spot), Some(other)) = (Spot::on(FileSystem::Ext4), Spot::on(FileSystem::Xfs)) else { return };
    other.tree("deps").file("a", b"1");
    let calve = |words: &[&str]| kept(&spot, words.iter().copied());
    calve(&["template", "create", "-q", "shop", other.join("deps").to_str().unwrap()]).succeeds();
    calve(&["spares", "add", "@shop"]).succeeds().says(&["`@shop`: 1 of 1 spare ready"]);
    other.tree("deps").file("b", b"2");
    calve(&["template", "refresh", "-q", "shop"]).succeeds();
    calve(&["spares", "refill", "@shop"]).succeeds().says(&["`@shop`: 1 of 1 spare ready"]);
    let dst = other.join("dst");
    let cloned = calve(&["cp", "--json", "@shop", dst.to_str().unwrap()]).succeeds().json();
    assert_eq!(cloned["strategy"], "spare");
    assert_same(other.join("deps"), dst);
    calve(&["spares", "add", "@shop"]).succeeds();
    let sources = || calve(&["spares", "list", "--json"]).succeeds().json()["sources"].as_array().unwrap().len();
    assert_eq!(sources(), 1);
    calve(&["template", "remove", "-q", "shop"]).succeeds();
    assert_eq!(sources(), 0);
    let is_gone = || names(&other).iter().all(|name| !name.starts_with(".calve-spares"));
    eventually("the spares are deleted", is_gone);
}

#[test]
fn a_template_whose_file_system_is_not_mounted_is_not_forgotten() {
    if !require_root("mounting") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("").dir("disk").dir("at").dir("elsewhere");
    spot.tree("src").file("a", b"1");
    let mounted = BindMount::new(spot.join("disk"), spot.join("at"));
    for (name, at) in [("shop", "at"), ("deleted", "elsewhere")] {
        kept(&spot, ["template", "create", "-q", name, "src", "--at", at]).succeeds();
    }
    kept(&spot, ["template", "create", "-q", "spared", "src"]).succeeds();
    kept(&spot, ["spares", "add", "-q", "--at", "at", "@spared"]).succeeds();
    kept(&spot, ["spares", "add", "-q", "--at", "elsewhere", "@shop"]).succeeds();
    drop(mounted);
    let hint = format!(
        "hint: mount it again; if it is gone for good, delete its record: rm {}\n",
        spot.join("home/templates/shop.template").display()
    );
    for command in [&["template", "remove", "shop"][..], &["template", "refresh", "shop"], &["cp", "@shop", "dst"]] {
        let why = format!("on a file system that is not mounted: `{}`", spot.join("at").display());
        kept(&spot, command.iter().copied()).fails(1).says(&[&why, &hint]);
    }
    // One whose spares are there is not forgotten either.
    kept(&spot, ["template", "remove", "spared"]).fails(1).says(&["the spares of `@spared` are on a file system"]);
    assert_eq!(names(spot.join("at")), [""; 0]);
    let spares = kept(&spot, ["spares", "list", "--json"]).succeeds().json();
    let of_each: Vec<_> =
        spares["sources"].as_array().unwrap().iter().map(|set| set["spares"].as_array().unwrap().len()).collect();
    assert_eq!(of_each.iter().sum::<usize>(), 1, "{spares:#}");
    let listed = kept(&spot, ["template", "list"]).succeeds().stdout;
    assert!(listed.contains("shop     unmounted  ") && listed.contains("deleted  ready      "), "{listed}");
    // Its place was deleted, on a file system that is there.
    fs_err::remove_dir_all(spot.join("elsewhere")).unwrap();
    kept(&spot, ["template", "remove", "deleted"]).succeeds();
    let _mounted = BindMount::new(spot.join("disk"), spot.join("at"));
    kept(&spot, ["template", "remove", "shop", "spared"]).succeeds();
    eventually("its files are deleted", || names(spot.join("disk")).is_empty());
}

/// As outside of a container that has a part of a disk mounted.
#[test]
fn a_template_whose_files_are_there_needs_no_mount() {
    if !require_root("mounting") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("project").file("src/a", b"1");
    let mounted = BindMount::new(spot.join("project"), spot.join("project"));
    kept(&spot, ["template", "create", "-q", "shop", "project/src", "--at", "project"]).succeeds();
    drop(mounted);
    for command in [&["template", "refresh", "shop"][..], &["template", "remove", "shop"]] {
        kept(&spot, command.iter().copied()).succeeds();
    }
    eventually("its files are deleted", || names(spot.join("project")) == ["src"]);
}

#[test]
fn a_template_is_cloned_to_exactly_its_target() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    // A path that begins with an at sign is reached by its directory.
    spot.tree("@types/node").file("index.d.ts", b"1");
    kept(&spot, ["cp", "./@types", "by path"]).succeeds();
    kept(&spot, ["cp", "@types/node", "node"]).succeeds();
    kept(&spot, ["cp", "@types", "dst2"]).fails(1).says(&["there is no template `types`"]);
    assert_same(spot.join("@types"), spot.join("by path"));
    // Nothing is made to look for a template.
    assert!(!spot.join("home").exists());
    spot.tree("src").file("a", b"1");
    spot.tree("there").file("b", b"1");
    kept(&spot, ["template", "create", "-q", "shop", "src"]).succeeds();
    let ran = kept(&spot, ["cp", "--json", "@shop", "dst"]).succeeds();
    assert_eq!(ran.json()["src"], "@shop");
    assert_same(spot.join("src"), spot.join("dst"));
    kept(&spot, ["cp", "-n", "@shop", "other/"]).succeeds().says(&["would clone `@shop` to "]);
    // Never into a directory that is there.
    kept(&spot, ["cp", "@shop", "there"]).fails(1).says(&["`there` already exists"]);
    kept(&spot, ["cp", "--replace", "@shop", "there"]).succeeds();
    assert_same(spot.join("src"), spot.join("there"));
    kept(&spot, ["cp", "-t", "there", "@shop"]).fails(2).says(&["`@shop` is a template"]);
    kept(&spot, ["cp", "@shop", "src", "there"]).fails(2).says(&["`@shop` is a template"]);
    kept(&spot, ["cp", "--strategy", "hardlink", "@shop", "linked"]).fails(3).says(&["would change the template"]);
    kept(&spot, ["cp", "@nope", "dst2"]).fails(1).says(&[
        "`calve template list` shows the templates; write ./@NAME for a path that begins with @",
        "there is no template `nope`",
        "calve template list",
        "./@NAME",
    ]);
    kept(&spot, ["cp", "@", "dst2"]).fails(2).says(&[
        "choose a name such as `shop` or `node-22`; write ./@NAME for a path that begins with @",
        "is not a valid name for a template",
    ]);
}

#[test]
fn a_template_that_was_changed_is_told_with_what_to_do() {
    let Some(spot) = Spot::on(FileSystem::Ext4) else { return };
    spot.tree("src").file("d/a", b"1");
    let made = kept(&spot, ["template", "create", "--json", "shop", "src"]).succeeds().json();
    let tree = made["tree"].as_str().unwrap();
    Tree::new(tree).file("d/a", "x");
    let ran = kept(&spot, ["cp", "--json", "@shop", "dst"]).fails(1);
    let ran = ran.says(&["the template `shop` was changed after it was made", "calve template verify shop"]);
    assert_eq!(ran.json()["code"], "ERR_CALVE_TEMPLATE");
    assert!(!spot.join("dst").exists());
    let ran = kept(&spot, ["template", "verify", "shop"]).ends(1);
    assert!(ran.stdout.starts_with("changed    d/a ("), "{}", ran.stdout);
    ran.says(&["1 of 3 entries", "calve template refresh shop"]);
    kept(&spot, ["template", "create", "shop", "src"])
        .fails(1)
        .says(&["already exists", "calve template refresh shop"]);
    kept(&spot, ["template", "refresh", "shop"]).succeeds();
    kept(&spot, ["cp", "@shop", "dst"]).succeeds();
    assert_same(spot.join("src"), spot.join("dst"));
}

#[test]
fn without_a_home_there_are_no_templates() {
    let spot = Spot::anywhere();
    let ran = kept(&spot, ["template", "list"]).env("CALVE_HOME", "relative").fails(1);
    ran.says(&["CALVE_HOME is not an absolute path", "set CALVE_HOME to an absolute path"]);
    kept(&spot, ["cp", "@shop", "dst"]).env("CALVE_HOME", "relative").fails(1).says(&["CALVE_HOME"]);
    // The error names a home that is a file.
    spot.tree("").file("home", b"");
    let refused = kept(&spot, ["template", "list"]).fails(1);
    refused.says(&["home/templates`: Not a directory"]);
}

#[test]
fn a_template_killed_at_any_moment_is_absent_or_whole() {
    let rounds = rounds(30);
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    let sources = ["a", "b"];
    node_modules_like(spot.join("a"), 400);
    node_modules_like(spot.join("b"), 500);
    spot.tree("b").file("only-in-b", b"1");
    let before = sources.map(|source| fingerprint(spot.join(source)));
    let (mut random, mut killer) = (SplitMix64::new(6), Killer::new(7));
    // The source that the template equals.
    let mut now: Option<&str> = None;
    for round in 0..rounds {
        let wanted = *random.pick(&sources);
        let (command, then): (&[&str], _) = match now {
            None => (&["create", "-q", "shop", wanted], Some(wanted)),
            Some(_) if random.below(3) == 0 => (&["remove", "-q", "shop"], None),
            Some(_) => (&["refresh", "-q", "shop", wanted], Some(wanted)),
        };
        let ran = killer.let_run(kept(&spot, ["template"].into_iter().chain(command.iter().copied())));
        let listed = kept(&spot, ["template", "list", "--json"]).succeeds().json();
        let is_there = !listed["templates"].as_array().unwrap().is_empty();
        let became = if !is_there {
            None
        } else {
            kept(&spot, ["template", "verify", "-q", "shop"]).succeeds();
            kept(&spot, ["cp", "-q", "@shop", "dst"]).succeeds();
            let equals = if spot.join("dst/only-in-b").exists() { "b" } else { "a" };
            assert_same(spot.join(equals), spot.join("dst"));
            remove_deep(spot.join("dst"));
            Some(equals)
        };
        assert!(
            became == then || ran.was_killed() && became == now,
            "round {round}: {command:?}: {now:?}, then {became:?}"
        );
        now = became;
    }
    assert!(few_rounds() || (rounds / 4..rounds).contains(&killer.killed()), "{}", killer.killed());
    kept(&spot, ["template", if now.is_some() { "refresh" } else { "create" }, "-q", "shop", "a"]).succeeds();
    kept(&spot, ["template", "remove", "-q", "shop"]).succeeds();
    let trees = spot.join("home/templates/trees");
    eventually("nothing is left", || fs_err::read_dir(&trees).unwrap().next().is_none());
    for (source, before) in sources.iter().zip(&before) {
        before.assert_unchanged(spot.join(source));
    }
}
