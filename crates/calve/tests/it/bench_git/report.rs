//! Measurements, and the report of them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use calve_testkit::{fingerprint, write_program};

use super::{bench_git, git, made_up, number, of, repository, tiny};
use crate::spot::Spot;

#[test]
fn all_tests_are_measured_on_both_sides_and_nothing_is_left() {
    let spot = Spot::anywhere();
    let elsewhere = Spot::anywhere();
    let tiny = [tiny(&elsewhere)];
    let report = bench_git(".", &tiny).arg("--json").within(&spot).succeeds().json();
    spot.holds(&[]);

    let results = &report["results"];
    assert_eq!((&report["failed"], &report["schema"]), (&serde_json::json!([]), &"calve.bench.git/1".into()));
    let tests: BTreeSet<&str> =
        results.as_array().unwrap().iter().map(|result| result["test"].as_str().unwrap()).collect();
    assert_eq!(tests.len(), 10, "{tests:?}");
    for result in results.as_array().unwrap() {
        for field in ["mean", "median", "min", "max", "user", "system", "connections", "bytes_received"] {
            assert!(result[field].is_number(), "{field} of {result:#}");
        }
        let runs = result["times"].as_array().unwrap().len();
        let fetches = ["fetch", "reset"].contains(&result["operation"].as_str().unwrap());
        assert_eq!(runs, if fetches { 3 } else { 1 }, "{result:#}");
        // Values that are reported in seconds.
        assert!((0.0005..60.0).contains(&number(&result["median"])), "{result:#}");
    }
    let received = |test: &str, operation: &str| number(&of(results, test, operation)["bytes_received"]);
    let connections = |test: &str, operation: &str| number(&of(results, test, operation)["connections"]);
    let server = |test: &str, operation: &str| number(&of(results, test, operation)["server_cpu_ms"]["median"]);
    assert!(received("T2", "clone") < received("T1", "clone"), "{results:#}");
    assert!(received("T3", "clone") < received("T1", "clone"), "{results:#}");
    assert_eq!(connections("T1", "clone"), 1.0);
    assert!(received("T1", "clone") > 30.0 * 2000.0 && server("T1", "clone") > 0.1);
    // A full clone has everything; a partial one fetches what it lacks, and the server's work for that is charged to who needed it.
    for operation in ["checkout", "blame"] {
        assert_eq!((connections("T1", operation), server("T1", operation), received("T1", operation)), (0.0, 0.0, 0.0));
        for test in ["T3", "T4"] {
            assert!(
                connections(test, operation) >= 1.0 && server(test, operation) > 0.1,
                "{:#}",
                of(results, test, operation)
            );
        }
    }
    assert!(connections("T9", "reset") >= 1.0 && connections("T5", "reset") == 0.0);
    let clone = of(results, "T1", "clone");
    assert!(number(&clone["server_peak_memory_bytes"]) > 1e6, "{clone:#}");
    let about = &report["repositories"][0];
    assert_eq!((&about["checkout_files"], &about["checkout_bytes"]), (&30.into(), &60_000.into()));
    assert!(number(&about["pack_bytes"]) > 60_000.0, "{about:#}");
    assert_eq!((&report["protocol"], &report["fetches"]), (&2.into(), &3.into()));
    let table = bench_git(".", &tiny).arg("--tests=T9-T10").within(&spot).succeeds();
    for words in ["## made-up", "| T10 ", "treeless clone, full fetch"] {
        assert!(table.stdout.contains(words), "no {words:?} in {}", table.stdout);
    }
}

#[test]
fn the_server_s_part_of_the_work_is_not_the_client_s() {
    let spot = Spot::anywhere();
    let elsewhere = Spot::anywhere();
    // Most of a megabyte that the server reads and sends, and the client unpacks and checks.
    let repository = made_up(&elsewhere, 1, 12, 64 << 10);
    // And a server that works for longer than the client, which the kernel counts it as a part of. git puts its own programs first in the
    // PATH of those that it starts.
    let output = std::process::Command::new("git").arg("--exec-path").output().unwrap();
    let own = String::from_utf8(output.stdout).unwrap();
    let programs = ["programs", "core"].map(|name| elsewhere.join(name));
    programs.iter().for_each(|folder| fs_err::create_dir(folder).unwrap());
    for entry in fs_err::read_dir(own.trim()).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != "git") {
        std::os::unix::fs::symlink(entry.path(), programs[1].join(entry.file_name())).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|git| git.is_file()).unwrap();
    let (real, core) = (real.display(), programs[1].display());
    let work = "n=0\n[ \"$1\" != upload-pack ] || until [ $n = 600000 ]; do n=$((n + 1)); done";
    for (folder, before) in [(&programs[0], format!("export GIT_EXEC_PATH='{core}'")), (&programs[1], work.into())] {
        write_program(folder.join("git"), format!("#!/bin/sh\n{before}\nexec '{real}' \"$@\"\n"));
    }
    let path = std::env::join_paths([programs[0].clone()].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let arguments = [&*repository, "--tests=T1", "--json"];
    let report = bench_git(".", arguments).env("PATH", path).within(&spot).succeeds().json();
    let clone = of(&report["results"], "T1", "clone");
    let client = (number(&clone["user"]) + number(&clone["system"])) * 1000.0;
    let server = number(&clone["server_cpu_ms"]["median"]);
    assert!(client > 1.0 && client < server, "{clone:#}");
    let received = number(&clone["bytes_received"]);
    // With the three files that were pushed, as deltas or whole.
    assert!((0.75e6..1.2e6).contains(&received), "{clone:#}");
    spot.holds(&[]);
}

#[test]
fn several_repositories_are_measured_side_by_side() {
    let spot = Spot::anywhere();
    for name in ["one", "two"] {
        repository(spot.join(name).join("same"), 3);
    }
    let arguments = ["--repo=one/same", "--repo=two/same", "--tests=T2,T7,T10", "--json"];
    let report = bench_git(".", arguments).within(&spot).succeeds().json();
    let names: Vec<&str> =
        report["repositories"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["same", "same (2)"]);
    for name in names {
        let fetches = report["results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["repository"] == name && it["operation"] == "fetch");
        let runs: Vec<usize> = fetches.map(|it| it["times"].as_array().unwrap().len()).collect();
        // Of T7 and T10.
        assert_eq!(runs, [3, 3], "{name}");
    }
    spot.holds(&["one", "two"]);
}

#[test]
fn names_may_have_spaces_and_quotes() {
    let spot = Spot::anywhere();
    let name = "it's a \"name\" $HOME `x`";
    let source = spot.join(name);
    repository(&source, 4);
    for file in ["with space", "with \"quotes\"", "it's", "new\nline", "back\\slash", "-dash", "ümläut", ":(top)x"] {
        fs_err::write(source.join(file), "1\n").unwrap();
    }
    git(&source, ["add", "-A"]);
    git(&source, ["commit", "-q", "-m", "names"]);
    let before = fingerprint(&source);
    // Of the place no byte but `/` is special.
    let place = spot.join(OsStr::from_bytes(b"a place's \"own\" \\ n\xffme"));
    fs_err::create_dir(&place).unwrap();
    let arguments = ["--repo", name, "--tests=T1,T5,T9", "--json"];
    let report = bench_git(&place, arguments).within(&spot).succeeds().json();
    assert_eq!(report["repositories"][0]["name"], name);
    let clone = of(&report["results"], "T1", "clone");
    // The stand-in for git upload-pack was found.
    assert!(number(&clone["connections"]) == 1.0 && number(&clone["server_cpu_ms"]["median"]) > 0.1, "{clone:#}");
    before.assert_unchanged(&source);
    assert_eq!(crate::spot::names(&place), [""; 0]);
}
