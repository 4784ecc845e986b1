//! What is measured and told.

use std::collections::BTreeSet;

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
        for field in
            ["mean", "median", "min", "max", "user", "system", "server_cpu_ms_median", "requests", "bytes_received"]
        {
            assert!(result[field].is_number(), "{field} of {result:#}");
        }
        let runs = result["times"].as_array().unwrap().len();
        let fetches = ["fetch", "reset"].contains(&result["operation"].as_str().unwrap());
        assert_eq!(runs, if fetches { 3 } else { 1 }, "{result:#}");
        // What is said to have been measured in seconds.
        assert!((0.0005..60.0).contains(&number(&result["median"])), "{result:#}");
    }
    let received = |test: &str, operation: &str| number(&of(results, test, operation)["bytes_received"]);
    let requests = |test: &str, operation: &str| number(&of(results, test, operation)["requests"]);
    let server = |test: &str, operation: &str| number(&of(results, test, operation)["server_cpu_ms_median"]);
    assert!(received("T2", "clone") < received("T1", "clone"), "{results:#}");
    assert!(received("T3", "clone") < received("T1", "clone"), "{results:#}");
    // The references, then the objects; protocol 2 asks for its abilities before.
    assert_eq!(requests("T1", "clone"), 3.0);
    // A full clone has everything; a partial one fetches what it lacks, and the server's work for that is charged to who needed it.
    for operation in ["checkout", "blame"] {
        assert_eq!((requests("T1", operation), server("T1", operation), received("T1", operation)), (0.0, 0.0, 0.0));
        for test in ["T3", "T4"] {
            assert!(
                requests(test, operation) >= 1.0 && server(test, operation) > 0.1,
                "{:#}",
                of(results, test, operation)
            );
        }
    }
    assert!(requests("T9", "reset") >= 1.0 && requests("T5", "reset") == 0.0);
    // The parts are the whole.
    for result in results.as_array().unwrap().iter().filter(|result| result["times"].as_array().unwrap().len() == 1) {
        let [upload, pack] =
            ["server_upload_pack_cpu_ms_median", "server_pack_objects_cpu_ms_median"].map(|it| number(&result[it]));
        assert!((upload + pack - number(&result["server_cpu_ms_median"])).abs() < 0.01, "{result:#}");
    }
    let clone = of(results, "T1", "clone");
    assert!(
        number(&clone["server_pack_objects_cpu_ms_median"]) > 0.1 && number(&clone["server_peak_memory_bytes"]) > 1e6,
        "{clone:#}"
    );

    let about = &report["repositories"][0];
    assert_eq!(
        (&about["bitmaps"], &about["commit_graph"], &report["protocol"]),
        (&true.into(), &true.into(), &2.into())
    );
    let shape = &about["shape"];
    assert_eq!((number(&shape["unique_commit_count"]), number(&shape["max_history_depth"])), (40.0, 40.0));
    assert_eq!(number(&shape["checkout_files"]), 30.0);
    assert_eq!((&report["automatic_gc"], &report["concurrency"]), (&false.into(), &1.into()));
    let table = bench_git(".", &tiny).arg("--tests=T9-T10").within(&spot).succeeds();
    for words in ["## made-up", "| T10 ", "treeless clone, full fetch"] {
        assert!(table.stdout.contains(words), "no {words:?} in {}", table.stdout);
    }
}

#[test]
fn what_is_charged_is_what_the_kernel_counts() {
    let spot = Spot::anywhere();
    // The kernel's sums come in hundredths of a second: enough work that these do not matter.
    let elsewhere = Spot::anywhere();
    let arguments = ["bench", "git", "-q", "--into", ".", "--tests=T1,T5", "--runs=4", "--json"];
    let ran = crate::program::calve(arguments).arg(made_up(&elsewhere, 10, 10, 1 << 18)).within(&spot).succeeds();
    let accounts = &ran.json()["accounting"];
    let host_cpu_ms = number(&accounts["host_cpu_ms"]);
    assert!(host_cpu_ms > 500.0, "{accounts:#}");
    // Two counters at two moments, in hundredths of a second.
    let rounding_percent = 100.0 * 25.0 / host_cpu_ms;
    assert!(number(&accounts["difference_percent"]).abs() < rounding_percent.max(3.0), "{accounts:#}");
    assert_eq!(number(&accounts["not_charged_cpu_ms"]), 0.0);
    spot.holds(&[]);
}

#[test]
fn several_clients_of_several_repositories_work_at_once() {
    let spot = Spot::anywhere();
    for name in ["one", "two"] {
        repository(spot.join(name).join("same"), 3);
    }
    let arguments = ["--repo=one/same", "--repo=two/same", "--tests=T2,T7,T10", "--concurrency=3", "--json"];
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
        // Of T7 and T10, three fetches for each of three clients.
        assert_eq!(runs, [9, 9], "{name}");
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
    let place = spot.join("a place's \"own\" name");
    fs_err::create_dir(&place).unwrap();
    let arguments = ["--repo", name, "--tests=T1,T5,T9", "--json"];
    let report = bench_git(&place, arguments).within(&spot).succeeds().json();
    assert_eq!(report["repositories"][0]["name"], name);
    let clone = of(&report["results"], "T1", "clone");
    // The stand-in for git pack-objects was found.
    assert!(number(&clone["server_pack_objects_cpu_ms_median"]) > 0.1, "{clone:#}");
    before.assert_unchanged(&source);
    assert_eq!(crate::spot::names(&place), [""; 0]);
}

/// A program of that name that comes first on the PATH.
fn with_program(spot: &Spot, name: &str, script: &str) -> std::ffi::OsString {
    let programs = spot.join("programs");
    fs_err::create_dir(&programs).unwrap();
    write_program(programs.join(name), format!("#!/bin/sh\n{script}\n"));
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

/// What its first version of JSON looks like. No package of Debian's has the program, so that it cannot be asked itself.
const GIT_SIZER: &str = r#"[ "$*" = '--json --json-version=1 --no-progress' ] || exit 1
echo '{"unique_commit_count": 4711, "max_commit_size": 300, "max_commit": "abc", "max_expanded_blob_count": 12}'"#;

#[test]
fn what_git_sizer_counts_is_taken_over() {
    let spot = Spot::anywhere();
    repository(spot.join("source"), 5);
    let shape = |path: &std::ffi::OsStr| {
        let report =
            bench_git(".", ["--repo=source", "--tests=T2", "--json"]).env("PATH", path).within(&spot).succeeds().json();
        report["repositories"][0]["shape"].clone()
    };
    let path = with_program(&spot, "git-sizer", GIT_SIZER);
    let theirs = shape(&path);
    assert_eq!((&theirs["counted_by"], &theirs["unique_commit_count"]), (&"git-sizer".into(), &4711.into()));
    assert_eq!((&theirs["max_expanded_blob_count"], &theirs["checkout_files"]), (&12.into(), &1.into()));
    // One that fails is as one that is not there.
    fs_err::write(spot.join("programs/git-sizer"), "#!/bin/sh\nexit 1\n").unwrap();
    let ours = shape(&path);
    assert_eq!((&ours["counted_by"], &ours["unique_commit_count"]), (&"calve".into(), &5.into()));
}

#[test]
fn a_history_is_counted_as_it_is() {
    let spot = Spot::anywhere();
    let source = spot.join("source");
    repository(&source, 5);
    git(&source, ["tag", "-a", "-m", "tag", "v1"]);
    git(&source, ["checkout", "-q", "-b", "side", "HEAD~2"]);
    fs_err::create_dir(source.join("d")).unwrap();
    fs_err::write(source.join("d/b"), "b\n").unwrap();
    git(&source, ["add", "-A"]);
    git(&source, ["commit", "-q", "-m", "side"]);
    git(&source, ["checkout", "-q", "main"]);
    git(&source, ["merge", "-q", "-m", "merged", "side"]);
    let path = with_program(&spot, "git-sizer", "exit 1");
    let report =
        bench_git(".", ["--repo=source", "--tests=T2", "--json"]).env("PATH", path).within(&spot).succeeds().json();
    let shape = &report["repositories"][0]["shape"];
    for (name, expected) in [
        // Five, one beside them, and the merge.
        ("unique_commit_count", 7),
        ("max_history_depth", 6),
        ("max_parent_count", 2),
        ("unique_blob_count", 6),
        // Of the five, of the side and of the merge, and the folder.
        ("unique_tree_count", 8),
        ("unique_tag_count", 1),
        // Two branches and a tag.
        ("reference_count", 3),
        ("max_blob_size", 25),
        ("checkout_files", 2),
        ("checkout_bytes", 27),
        ("checkout_max_path_depth", 2),
    ] {
        assert_eq!(shape[name], expected, "{name}");
    }
}
