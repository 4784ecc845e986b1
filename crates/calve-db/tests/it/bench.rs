//! `calve bench db`, on real servers.

use std::time::Duration;

use calve_testkit::{FileSystem, matrix};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::runtimes::Containers;
use crate::world::{Postgres, User, World};

fn bench(world: &World) -> crate::world::Run {
    world.calve("bench").args(["db", "--template", "t", "--json"])
}

/// Strategies that were measured; their rows must be whole.
#[track_caller]
fn strategies(report: &Value) -> Vec<String> {
    assert_eq!((&report["schema"], &report["bench"]), (&"calve.bench/1".into(), &"db".into()));
    assert_eq!(report["failed"], Value::Array(vec![]), "{report:#}");
    let rows: Vec<&Value> =
        report["results"].as_array().unwrap().iter().filter(|row| row["strategy"].is_string()).collect();
    for row in &rows {
        let median = |key: &str| row[key]["median"].as_f64().unwrap_or_else(|| panic!("{key}: {row:#}"));
        assert!(median("clone_ms") > 0.0 && median("first_query_ms") > median("clone_ms"), "{row:#}");
        for key in ["first_write_ms", "tenth_write_ms", "stop_ms"] {
            assert!(median(key) > 0.0, "{row:#}");
        }
        assert!(median("memory_bytes") > 1e6, "{row:#}");
    }
    rows.iter().map(|row| row["strategy"].as_str().unwrap().to_owned()).collect()
}

/// The row of the servers that got their data in this way.
#[track_caller]
fn row<'a>(report: &'a Value, server: &str) -> &'a Value {
    report["results"].as_array().unwrap().iter().find(|row| row["server"] == server).expect(server)
}

fn median(report: &Value, strategy: &str, key: &str) -> f64 {
    let row = report["results"].as_array().unwrap().iter().find(|row| row["strategy"] == strategy).unwrap();
    row[key]["median"].as_f64().unwrap()
}

#[test]
fn every_strategy_that_works_is_measured() {
    for (file_system, expected) in matrix([
        (FileSystem::Btrfs, &["copy", "overlay", "reflink", "snapshot"][..]),
        (FileSystem::Ext4, &["copy", "overlay"]),
    ]) {
        let Some(world) = World::at(file_system, User::This, Postgres) else { return };
        let report = bench(&world).args(["--runs", "1"]).succeeds().json();
        assert_eq!(strategies(&report), expected, "{report:#}");
        let steps = report["results"].as_array().unwrap().iter().filter(|row| row["step"].is_string());
        let timed = steps.filter(|row| row["ms"]["median"].as_f64().unwrap_or_default() > 0.0).count();
        assert_eq!(timed, 4, "{report:#}");
        let alone = row(&report, "the server alone: an existing directory");
        assert!(alone["clone_ms"].is_null() && alone["first_query_ms"]["median"].as_f64() > Some(0.0), "{alone:#}");
        let not_run: Vec<&Value> = report["not_run"].as_array().unwrap().iter().map(|row| &row["why"]).collect();
        assert_eq!(not_run, vec!["refused"; 4 - expected.len()], "{report:#}");
        assert!(median(&report, "copy", "disk_bytes") > 2.0 * median(&report, "overlay", "disk_bytes"), "{report:#}");
        // The template was only read, and nothing is left.
        let server = world.start("after");
        assert_eq!(world.rows(Postgres, &server), "1000");
        world.stop("after");
        world.nothing_left();
    }
}

#[test]
fn servers_in_containers_are_measured() {
    let Some(world) = World::on(FileSystem::Xfs, User::This) else { return };
    Containers::within(world, Postgres).iter().for_each(are_measured);
}

/// Measures them, also for users who may not do everything.
#[track_caller]
pub(crate) fn are_measured(containers: &Containers) {
    let (world, runtime) = (&containers.world, if containers.is_docker { "docker" } else { "podman" });
    containers.template();
    let report = bench(world).args(["--runs", "1", "--steps", "0"]).succeeds().json();
    let alone = row(&report, &format!("{runtime}: an existing directory"));
    for key in ["first_query_ms", "first_write_ms", "stop_ms"] {
        assert!(alone[key]["median"].as_f64() > Some(0.0), "{alone:#}");
    }
    // By the process at the other end of its socket, and not by the runtime's.
    assert!(alone["memory_bytes"]["median"].as_f64() > Some(1e7), "{alone:#}");
    if containers.pause.is_some() {
        assert_eq!(strategies(&report), ["copy"]);
    }
    containers.nothing_left();
}

#[test]
fn wrong_words_are_answered() {
    let Some(world) = World::new() else { return };
    bench(&world).fails(1, &["no template `t`"]);
    world.template(Postgres);
    bench(&world)
        .args(["--write", "DELETE FROM nowhere"])
        .fails(1, &["DELETE FROM nowhere", "does not exist", "--write"]);
    world.nothing_left();
}

#[test]
fn it_leaves_nothing_however_it_ends() {
    let Some(world) = World::having(Postgres) else { return };
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut child = bench(&world).args(["--runs", "1000"]).spawn();
        // Until the first server runs.
        while world.db(["list", "--json"]).succeeds().json()["servers"].as_array().unwrap().is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it ended without a server");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        world.nothing_runs();
        world.db(["gc"]).succeeds();
        world.nothing_left();
    }
}

#[test]
fn standbys_are_measured_unless_the_template_has_a_pool() {
    let Some(world) = World::at(FileSystem::Btrfs, User::This, Postgres) else { return };
    let report = bench(&world).args(["--runs", "1", "--steps", "2"]).succeeds().json();
    let steps = report["results"].as_array().unwrap().iter().filter(|row| row["step"].is_string());
    let of_standbys = steps.filter(|row| row["memory_bytes"]["median"].as_f64().is_some_and(|bytes| bytes > 1e6));
    assert_eq!(of_standbys.map(|row| row["ms"]["values"].as_array().unwrap().len()).collect::<Vec<_>>(), [2]);
    world.nothing_left();
    // With a pool of its own, the figures would not mean what they say.
    world.db(["pool", "t", "--size", "1", "-q"]).succeeds();
    bench(&world).args(["--runs", "1"]).fails(2, &["has a pool"]);
}
