//! `calve bench dedupe`: what it measures and reports, what it leaves (nothing), and what it does with everything that goes wrong.

use std::path::Path;

use calve_testkit::{FileSystem, SplitMix64, Tree, fingerprint, node_modules_like, require_program};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bench_copy::{Programs, commands, of_command};
use crate::process::send;
use crate::program::{Calve, calve};
use crate::spot::{Spot, eventually, leftovers};

/// `calve bench dedupe --tree TREE --into INTO`, which finds these programs alone.
fn bench_of(tree: impl AsRef<Path>, into: impl AsRef<Path>, programs: &Programs) -> Calve {
    let command = calve(["bench", "dedupe", "--tree"]).arg(tree.as_ref()).arg("--into").arg(into.as_ref());
    command.env("PATH", programs.path())
}

/// The entry with that `command` among those of a first, or a second, run.
fn of(report: &Value, command: &str, again: bool) -> Value {
    let group = if again { "the same command again" } else { "two copies that share nothing" };
    let all = report["results"].as_array().unwrap();
    let found = all.iter().find(|one| one["command"] == command && one["group"] == group);
    found.unwrap_or_else(|| panic!("no `{command}` in {all:#?}")).clone()
}

#[test]
fn it_measures_time_gain_and_memory_and_leaves_nothing() {
    if !require_program("jdupes") {
        return;
    }
    for file_system in FileSystem::REFLINKING {
        let Some(spot) = Spot::on(file_system) else { return };
        node_modules_like(spot.join("tree"), 200);
        spot.tree("tree").file("large", SplitMix64::new(1).bytes(4 << 20));
        let before = fingerprint(spot.join("tree"));
        let programs = Programs::none().real("jdupes");
        let exports = ["--export-json", "r.json", "--export-markdown", "r.md", "--export-html", "r.html"];
        let command = bench_of("tree", ".", &programs).args(["--runs", "2"]).args(exports);
        let ran = command.within(&spot).succeeds();
        spot.holds(&["r.html", "r.json", "r.md", "tree"]);
        before.assert_unchanged(spot.join("tree"));
        let report: Value = serde_json::from_str(&fs_err::read_to_string(spot.join("r.json")).unwrap()).unwrap();
        assert_eq!((&report["schema"], &report["bench"]), (&json!("calve.bench/1"), &json!("dedupe")));
        assert_eq!((&report["rounds"], &report["failed"]), (&json!(2), &json!([])));
        for command in ["calve dedupe A B", "calve dedupe --blocks A B", "calve reshare B --with A", "jdupes -rBq A B"]
        {
            let one = of(&report, command, false);
            assert!(one["gained_bytes"].as_i64().unwrap() > 3 << 20, "{one:#}");
            assert_eq!(one["remarks"], json!([]), "{one:#}");
            assert_eq!(one["memory_usage_byte"].as_array().unwrap().len(), 2);
        }
        for command in ["calve dedupe A B", "jdupes -rBq A B"] {
            let one = of(&report, command, true);
            assert!(one["gained_bytes"].as_i64().unwrap().abs() < 1 << 20, "{one:#}");
        }
        let again = of(&report, "calve dedupe A B", true);
        assert!(again["said"].as_str().unwrap().contains(" files shared already"), "{again:#}");
        for name in ["duperemove -rdq A B", "rmlint -T df --hidden -c sh:handler=clone -o sh:KEPT A B && sh KEPT -dq"] {
            assert_eq!(of_command(&report["not_run"], name)["why"], "missing");
        }
        // What is missing is named, and so is who gained how much.
        let html = fs_err::read_to_string(spot.join("r.html")).unwrap();
        assert_eq!(fs_err::read_to_string(spot.join("r.md")).unwrap(), ran.stdout);
        for words in
            ["`fclones` is not installed (cargo install fclones)", "gained, as a part of the most", "| gained |"]
        {
            let plain: String = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(plain.contains(words), "{words}: {}", ran.stdout);
        }
        assert!(html.contains("Disk space gained") && html.contains("<th>gained</th>"), "{html}");
    }
}

#[test]
fn what_a_program_does_to_the_copies_is_told() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    spot.tree("tree").file("a", vec![1; 50_000]).file("b", vec![2; 50_000]);
    let programs = Programs::none()
        // It gets `-rBq A B`.
        .script("jdupes", "printf x | dd of=\"$2/a\" conv=notrunc 2>/dev/null; rm \"$3/b\"")
        .script("duperemove", "echo 'out of luck' >&2; exit 7");
    let ran = bench_of("tree", ".", &programs).args(["--runs", "1", "--json"]).within(&spot).succeeds();
    let report = ran.json();
    let jdupes = of(&report, "jdupes -rBq A B", false);
    let remark = jdupes["remarks"][0].as_str().unwrap();
    for words in ["did not keep", "contents of 1 entry", "missing of 1 entry"] {
        assert!(remark.contains(words), "{remark}");
    }
    let failed = of_command(&report["failed"], "duperemove -rdq A B");
    assert_eq!((&failed["exit_code"], &failed["reason"]), (&json!(7), &json!("exit code 7: out of luck")));
    let failed = of_command(&report["failed"], "duperemove -rdq --hashfile=KEPT A B");
    assert_eq!(failed["reason"], "the first of its two runs: exit code 7");
    assert!(commands(&report["results"]).contains(&"calve dedupe A B"));
    spot.holds(&["tree"]);
}

#[test]
fn programs_can_be_left_out() {
    let Some(spot) = Spot::on(FileSystem::Btrfs) else { return };
    spot.tree("tree").file("a", vec![1; 50_000]);
    let programs = Programs::none().script("jdupes", "exit 1");
    let command = bench_of("tree", ".", &programs).args(["--without", "jdupes", "--runs", "1", "--json"]);
    let report = command.within(&spot).succeeds().json();
    assert!(!report.to_string().contains("jdupes -rBq"), "{report:#}");
    bench_of("tree", ".", &programs).args(["--without", "cp"]).within(&spot).fails(2).says(&["cp"]).hints();
    spot.holds(&["tree"]);
}

#[test]
fn copies_of_two_trees_are_compared_each_with_its_own_and_only_the_named_commands_run() {
    let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
    let content = SplitMix64::new(1).bytes(1 << 20);
    spot.tree("one").file("x", &content).file("only here", b"1");
    spot.tree("two").file("x", &content).file("y", &content);
    let programs = Programs::none().script("jdupes", "exit 1");
    let of_two = |names: &str| {
        bench_of("one", ".", &programs).args(["--and", "two", "--runs", "1", "--json", "--only", names]).within(&spot)
    };
    let report = of_two("calve dedupe").succeeds().json();
    assert_eq!(commands(&report["results"]), ["calve dedupe A B"; 2], "{report:#}");
    assert_eq!(report["facts"]["commands_chosen"], json!(["calve dedupe"]));
    assert_eq!(
        (&report["facts"]["tree"]["files"], &report["facts"]["other_tree"]["bytes"]),
        (&json!(2), &json!(2 << 20))
    );
    let first = of(&report, "calve dedupe A B", false);
    assert!(first["gained_bytes"].as_i64().unwrap() > 1 << 20, "{first:#}");
    assert_eq!(first["remarks"], json!([]));
    // A name for several commands, of which one fails.
    let report = of_two("jdupes,calve reshare --with").succeeds().json();
    assert_eq!(commands(&report["results"]), ["calve reshare B --with A"], "{report:#}");
    assert_eq!(commands(&report["failed"]), ["jdupes -rBq A B"; 2]);
    of_two("cp").fails(2).says(&["`cp` names no command", "`calve dedupe --blocks`", "`rmlint`"]).hints();
    of_two("rmlint").fails(1).says(&[
        "`rmlint` is not installed",
        "hint: install a program that is named, or ask for another with `--only`\n",
    ]);
    bench_of("one", ".", &programs)
        .args(["--and", "one/x"])
        .within(&spot)
        .fails(2)
        .says(&["is not a directory"])
        .hints();
    spot.holds(&["one", "two"]);
}

#[test]
fn places_that_cannot_share_and_paths_that_make_no_sense_are_refused() {
    let none = Programs::none();
    for file_system in [FileSystem::Ext4, FileSystem::Tmpfs] {
        let Some(spot) = Spot::on(file_system) else { return };
        spot.tree("tree").file("a", b"1");
        bench_of("tree", ".", &none).within(&spot).fails(1).says(&["btrfs"]).hints();
        bench_of("tree/a", ".", &none).within(&spot).fails(2).says(&["is not a directory"]).hints();
        bench_of("tree", "tree", &none).within(&spot).fails(2).says(&["is inside the tree"]).hints();
        bench_of("missing", ".", &none).within(&spot).fails(1).says(&["does not exist"]).hints();
        spot.holds(&["tree"]);
    }
}

#[test]
fn too_little_room_for_two_copies_is_noticed_early() {
    let Some(volume) = calve_testkit::Volume::with_size(FileSystem::Btrfs, 128 << 20) else { return };
    let spot = Spot::at(volume);
    Tree::new(spot.join("tree")).sparse("holes", 200 << 20, &[(0, b"x")]);
    bench_of("tree", ".", &Programs::none()).within(&spot).fails(1).says(&["a run needs"]).hints();
    spot.holds(&["tree"]);
}

#[test]
fn an_interruption_removes_everything() {
    // While a run is measured, and while one is prepared: what gets a file of hashes runs there first.
    for (signal, name, when) in [(Signal::INT, "jdupes", "-rBq*"), (Signal::TERM, "duperemove", "*--hashfile=*")] {
        let Some(spot) = Spot::on(FileSystem::Xfs) else { return };
        spot.tree("tree").file("a", vec![1; 50_000]);
        let before = fingerprint(spot.join("tree"));
        let script = format!("case \"$*\" in {when}) echo $$ > {}/pid; sleep 1000;; esac", spot.join("").display());
        let programs = Programs::none().script(name, &script);
        let running = bench_of("tree", ".", &programs).within(&spot).start();
        eventually("the program runs", || spot.join("pid").exists());
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!leftovers(&spot).is_empty());
        send(running.id(), signal);
        running.wait().ended(130);
        spot.holds(&["pid", "tree"]);
        before.assert_unchanged(spot.join("tree"));
    }
}
