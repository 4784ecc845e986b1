//! `calve bench write`: with a real Node, and with everything that a Node can do wrong.

use std::path::PathBuf;

use calve_testkit::{FileSystem, Volume, require_program, write_program};
use rustix::process::Signal;
use serde_json::Value;

use crate::process::send;
use crate::program::{Calve, calve};
use crate::spot::{Spot, eventually, leftovers};

/// A small one, within the spot.
fn bench(spot: &Spot) -> Calve {
    calve(["bench", "write", "--files", "40", "--size", "100", "--runs", "1"]).within(spot)
}

/// Makes a directory with a `node` that gives `version` when asked for it, and otherwise runs `body`. `$2` is the way, `$3` the new
/// directory, `$7` the file for the result.
fn fake_node(spot: &Spot, version: &str, body: &str) -> PathBuf {
    let path = spot.join("fake/node");
    fs_err::create_dir_all(spot.join("fake")).unwrap();
    let found = format!("{{\"file\":\"/calve.js\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"));
    let answer = format!("{{\"node\":\"{version}\",\"found\":{found}}}");
    let text = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n[ \"$1\" = -e ] && {{ echo '{answer}'; exit; }}\n{body}\n");
    write_program(&path, text);
    spot.join("fake")
}

fn of<'a>(report: &'a Value, list: &str, command: &str) -> Vec<&'a Value> {
    report[list].as_array().unwrap().iter().filter(|row| row["command"] == command).collect()
}

/// A package that the real Node finds, with functions as Calve's, in JavaScript.
fn package(spot: &Spot) {
    let version = env!("CARGO_PKG_VERSION");
    spot.tree("node_modules/calve")
        .file("package.json", format!("{{\"name\":\"calve\",\"version\":\"{version}\",\"main\":\"index.js\"}}"))
        .file(
            "index.js",
            "const fs = require('fs'), path = require('path');\n\
             exports.writeFilesSync = (root, entries) => { for (const [name, data] of entries) fs.writeFileSync(path.join(root, name), data); };\n\
             exports.writeFiles = async (root, entries) => exports.writeFilesSync(root, entries);\n",
        );
}

#[test]
fn every_way_is_measured_in_every_layout() {
    if !require_program("node") {
        return;
    }
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    package(&spot);
    let report = bench(&spot).args(["--json", "--directories", "1,4"]).succeeds().json();
    assert_eq!((&report["schema"], &report["bench"]), (&"calve.bench/1".into(), &"write".into()));
    assert!(report["versions"]["node"].as_str().unwrap().starts_with("Node v"), "{}", report["versions"]);
    assert_eq!(report["failed"], Value::Array(vec![]), "{report:#}");
    for command in
        ["writeFileSync in a loop", "Promise.all of writeFile", "calve.writeFiles", "calve.writeFiles, 1 thread"]
    {
        let rows = of(&report, "results", command);
        assert_eq!(rows.len(), 2, "{command}");
        assert!(rows.iter().all(|row| (0.0..1.0).contains(&row["median"].as_f64().unwrap())), "{rows:#?}");
    }
    let of_loop = of(&report, "results", "writeFileSync in a loop")[0];
    assert_eq!(of_loop["group"], "40 files of 100 B, in one directory");
    assert!(of_loop["longest_stall"].as_f64().unwrap() > 0.0, "{of_loop:#}");
    assert_eq!(report["facts"]["npm_package"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["conclusions"].as_array().unwrap().len(), 2, "{}", report["conclusions"]);
    // A deviation takes two runs.
    for key in ["mean", "median", "user", "system", "min", "max", "times", "memory_usage_byte", "exit_codes"] {
        assert!(!of_loop[key].is_null(), "hyperfine has {key}");
    }
    // Of so short a run the kernel may count all in one of them.
    let [user, system] = ["user", "system"].map(|key| of_loop[key].as_f64().unwrap());
    assert!(user + system > 0.0, "{of_loop:#}");
    spot.holds(&["node_modules"]);
}

#[test]
fn people_get_tables() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    let node = fake_node(&spot, "22.0.0", "exit 23");
    let table = bench(&spot).arg("-q").env("PATH", &node).ends(1);
    for words in ["| command ", "20 directories\n", "Node v22.0.0", "Stall", " failed |"] {
        assert!(table.stdout.contains(words), "no {words:?} in {}", table.stdout);
    }
    spot.holds(&["fake"]);
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_made() {
    let spot = Spot::anywhere();
    spot.tree("").file("file", b"1").dir("empty");
    bench(&spot)
        .env("PATH", spot.join("empty"))
        .fails(1)
        .says(&["`node` is not installed", "install Node 18.17 or later, and have it on the PATH"]);
    let with = |body: &str| {
        write_program(spot.join("empty/node"), body);
        bench(&spot).env("PATH", spot.join("empty"))
    };
    with("#!/bin/true\n").fails(2).says(&["`node` is not Node"]).hints();
    with("\n#!/none\n").run().says(&["`node`"]).hints();
    fs_err::remove_file(spot.join("empty/node")).unwrap();
    write_program(spot.join("empty/node"), "#!/bin/sh\necho '{\"node\":\"22.0.0\",\"found\":null}'\n");
    bench(&spot)
        .env("PATH", spot.join("empty"))
        .fails(1)
        .says(&["does not find the npm package `calve`", "install it in the current directory: npm install calve"]);
    fs_err::remove_file(spot.join("empty/node")).unwrap();
    let old = fake_node(&spot, "16.20.2", "exit 0");
    bench(&spot).env("PATH", &old).fails(1).says(&["Node v16.20.2, which is too old"]).hints();
    for (option, value) in
        [("--files", "0"), ("--files", "many"), ("--size", "x"), ("--directories", "0"), ("--runs", "0")]
    {
        calve(["bench", "write", option, value]).within(&spot).fails(2).says(&[option]);
    }
    let node = fake_node(&spot, "22.0.0", "exit 0");
    for (into, code, words) in [("missing", 1, "`missing` does not exist"), ("file", 2, "is not a directory")] {
        bench(&spot).args(["--into", into]).env("PATH", &node).fails(code).says(&[words]).hints();
    }
    spot.holds(&["empty", "fake", "file"]);
}

#[test]
fn a_node_that_fails_is_reported_and_the_rest_is_measured() {
    let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
    let body = "case $2 in
        loop) echo 'out of luck' >&2; kill -SEGV $$;;
        all) mkdir -p \"$3/files/d0\"; echo '{\"seconds\":1,\"stall_seconds\":0,\"error\":{\"code\":\"ENOSPC\",\"failed\":3}}' > \"$7\";;
        await) mkdir -p \"$3/files/d0\"; echo '{\"seconds\":0.001,\"stall_seconds\":0,\"error\":null}' > \"$7\";;
        async) mkdir -p \"$3/files/d0\"; for n in $(seq 40); do : > \"$3/files/d0/f$n\"; done
            echo '{\"seconds\":0.25,\"stall_seconds\":0.5,\"error\":null}' > \"$7\";;
        *) exit 23;;
    esac";
    let node = fake_node(&spot, "22.0.0", body);
    // A way of Calve has failed, too.
    let ran = bench(&spot).args(["--json", "--directories", "1"]).env("PATH", &node).ends(1);
    let report = ran.json();
    let reason = |command: &str| of(&report, "failed", command)[0]["reason"].as_str().unwrap().to_owned();
    assert_eq!(reason("writeFileSync in a loop"), "killed by SIGSEGV: out of luck");
    assert_eq!(reason("Promise.all of writeFile"), "ENOSPC");
    assert_eq!(reason("await writeFile in a loop"), "it wrote 0 of 40 files");
    assert!(report["failed"].as_array().unwrap().iter().any(|row| row["reason"] == "exit code 23"), "{report:#}");
    let ours = of(&report, "results", "calve.writeFiles")[0];
    assert_eq!((&ours["median"], &ours["longest_stall"]), (&0.25.into(), &0.5.into()));
    assert_eq!(report["results"].as_array().unwrap().len(), 1);
    let failures = report["warnings"].as_array().unwrap().iter().filter(|warning| warning["code"] == "failed").count();
    assert_eq!(failures, report["failed"].as_array().unwrap().len(), "{:#}", report["warnings"]);
    spot.holds(&["fake"]);
}

#[test]
fn too_little_room_is_noticed() {
    let Some(volume) = Volume::with_size(FileSystem::Tmpfs, 4 << 20) else { return };
    let spot = Spot::at(volume);
    let node = fake_node(&spot, "22.0.0", "exit 1");
    let ran = calve(["bench", "write", "--files", "5000", "--size", "1"]).env("PATH", &node).within(&spot).fails(1);
    ran.says(&["a run needs 26.6 MB", "are free", "--into"]).hints();
    spot.holds(&["fake"]);
}

#[test]
fn an_interruption_ends_node_and_removes_everything() {
    for signal in [Signal::INT, Signal::TERM] {
        let Some(spot) = Spot::on(FileSystem::Tmpfs) else { return };
        let node = fake_node(&spot, "22.0.0", "mkdir \"$3\"; sleep 1000 & echo $$ $! > \"$3/pids\"; wait");
        let running = bench(&spot).env("PATH", &node).start();
        let mut pids = String::new();
        eventually("a run has begun", || {
            let runs = leftovers(&spot).into_iter().flat_map(|place| fs_err::read_dir(spot.join(place)));
            for run in runs.flatten().flatten() {
                pids = fs_err::read_to_string(run.path().join("pids")).unwrap_or_default();
                if pids.ends_with('\n') {
                    return true;
                }
            }
            false
        });
        send(running.id(), signal);
        let ran = running.ends(130);
        assert_eq!(ran.stdout, "");
        spot.holds(&["fake"]);
        let is_there = |pid: &str| std::path::Path::new("/proc").join(pid).exists();
        eventually("what was started is gone", || !pids.split_whitespace().any(is_there));
    }
}
