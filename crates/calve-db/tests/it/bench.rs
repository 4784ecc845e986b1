//! `calve bench db`, on real servers.

use std::time::Duration;

use calve_testkit::{FileSystem, require_program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::runtimes::Containers;
use crate::world::{Mariadb, Postgres, User, World, eventually};

fn bench(world: &World) -> crate::world::Run {
    world.calve("bench").args(["db", "--template", "t", "--json"])
}

/// Strategies that were measured; their rows must be whole.
#[track_caller]
fn strategies(report: &Value, seconds: usize) -> Vec<String> {
    assert_eq!((&report["schema"], &report["bench"]), (&"calve.bench/1".into(), &"db".into()));
    assert_eq!(report["failed"], Value::Array(vec![]), "{report:#}");
    let rows: Vec<&Value> =
        report["results"].as_array().unwrap().iter().filter(|row| row["strategy"].is_string()).collect();
    for row in &rows {
        let median = |key: &str| row[key]["median"].as_f64().unwrap_or_else(|| panic!("{key}: {row:#}"));
        assert!(median("clone_ms") > 0.0 && median("first_query_ms") > median("clone_ms"), "{row:#}");
        for key in ["first_write_ms", "second_write_ms", "tenth_write_ms", "stop_ms"] {
            assert!(median(key) > 0.0, "{row:#}");
        }
        assert!(median("memory_bytes") > 1e6, "{row:#}");
        let timelines = row["timelines"].as_array().unwrap();
        if seconds > 0 {
            assert!(median("transactions_per_second") > 1.0 && median("worst_latency_ms") > 0.0, "{row:#}");
            assert!(timelines.iter().all(|line| line.as_array().unwrap().len() >= seconds), "{row:#}");
        } else {
            assert_eq!((timelines.len(), &row["worst_latency_ms"]), (0, &Value::Null));
        }
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
    for (file_system, expected) in
        [(FileSystem::Ext4, &["copy", "overlay"][..]), (FileSystem::Btrfs, &["copy", "overlay", "reflink", "snapshot"])]
    {
        let Some(world) = World::on(file_system, User::This) else { return };
        world.template(Postgres);
        let html = world.path().join("report.html");
        let ran = bench(&world).args(["--runs", "1", "--duration", "2", "--export-html"]).arg(&html).succeeds();
        let report = ran.json();
        assert_eq!(strategies(&report, 1), expected, "{report:#}");
        let steps = report["results"].as_array().unwrap().iter().filter(|row| row["step"].is_string());
        let timed = steps.filter(|row| row["ms"]["median"].as_f64().unwrap_or_default() > 0.0).count();
        // On an overlay that copies, no reset is prepared.
        assert_eq!(timed, if file_system == FileSystem::Ext4 { 3 } else { 4 }, "{report:#}");
        let alone = row(&report, "the server alone: an existing directory");
        assert!(alone["clone_ms"].is_null() && alone["first_query_ms"]["median"].as_f64() > Some(0.0), "{alone:#}");
        let not_run: Vec<&Value> = report["not_run"].as_array().unwrap().iter().map(|row| &row["why"]).collect();
        assert_eq!(not_run, vec!["refused"; 4 - expected.len()], "{report:#}");
        assert!(median(&report, "copy", "disk_bytes") > 2.0 * median(&report, "overlay", "disk_bytes"), "{report:#}");
        assert!(fs_err::read_to_string(html).unwrap().contains("first write"));
        // The template was only read, and nothing is left.
        let server = world.start("after");
        assert_eq!(world.rows(Postgres, &server), "1000");
        world.stop("after");
        world.nothing_left();
    }
}

/// Images and volumes that benches of this world have made and not removed.
fn left(containers: &Containers) -> [String; 2] {
    let filter = format!("label=calve.bench={}", containers.home_label().split_once('=').unwrap().1);
    [["images"].as_slice(), &["volume", "ls"]]
        .map(|words| containers.ask(words.iter().copied().chain(["--quiet", "--filter", &filter])))
}

#[test]
fn servers_in_containers_are_compared_with_what_podman_does() {
    let Some(world) = World::on(FileSystem::Xfs, User::This) else { return };
    let Some(containers) = Containers::within(world, Postgres) else { return };
    is_compared(&containers);
    containers.create(&containers.image).arg("--rebuild").succeeds();
    let image = ["--image", &containers.image];
    bench(&containers.world).args(image).fails(2, &["run from the image", "leave out `--image`"]);
}

#[test]
fn servers_in_containers_are_compared_with_what_docker_does() {
    let Some(world) = World::on(FileSystem::Ext4, User::This) else { return };
    Containers::of_docker(world, Postgres).iter().for_each(is_compared);
}

/// Compares them, also for users who may not do everything.
#[track_caller]
pub(crate) fn is_compared(containers: &Containers) {
    let (world, is_rootless) = (&containers.world, containers.pause.is_some());
    let runtime = if containers.is_docker { "docker" } else { "podman" };
    let own = ["an existing directory", "the data in the image"];
    let overlays = ["a volume of type=overlay", "--volume DIR:DIR:O"];
    let measure = |more: &[&str]| {
        let line = bench(world).args(["--runs", "1", "--duration", "0", "--steps", "0"]).args(more);
        let report = line.succeeds().json();
        for data in own.iter().chain(&overlays) {
            let name = format!("{runtime}: {data}");
            // Docker has no such option.
            let is_possible = !containers.is_docker || *data != overlays[1];
            let found = report["results"].as_array().unwrap().iter().find(|row| row["server"] == name.as_str());
            assert_eq!(found.is_some(), is_possible, "{name}: {report:#}");
            for key in ["first_query_ms", "first_write_ms", "stop_ms"] {
                assert!(found.is_none_or(|row| row[key]["median"].as_f64() > Some(0.0)), "{found:#?}");
            }
            // By the process at the other end of its socket, and not by the runtime's.
            assert!(found.is_none_or(|row| row["memory_bytes"]["median"].as_f64() > Some(1e7)), "{found:#?}");
        }
        assert_eq!(left(containers), ["", ""]);
        containers.nothing_left();
        // Nor of the home that the bench has made for its template.
        let all = containers.ask(["ps", "--all", "--format", "{{.Labels}}"]);
        assert!(!all.contains(world.path().to_str().unwrap()), "{all}");
        report
    };
    containers.template();
    let report = measure(&[]);
    let image = ["--image", &containers.image, "--runtime", containers.runtime.to_str().unwrap()];
    if is_rootless {
        assert_eq!(strategies(&report, 0), ["copy"]);
        return;
    }
    world.db(["template", "remove", "t"]).succeeds();
    world.template(Postgres);
    let report = measure(&image);
    row(&report, "the server alone: an existing directory");
    let clone_ms = row(&report, &format!("{runtime}: Calve"))["clone_ms"]["median"].as_f64();
    assert!(clone_ms > Some(0.0), "{report:#}");
}

#[test]
fn what_a_killed_bench_leaves_of_containers_goes_with_the_next_commands() {
    let on_ext4 = World::on(FileSystem::Ext4, User::This);
    let Some(containers) = on_ext4.and_then(|world| Containers::within(world, Postgres)) else { return };
    let world = &containers.world;
    containers.template();
    let line = ["--runs", "2", "--duration", "0", "--steps", "0"];
    let is_there: [&dyn Fn() -> bool; 3] = [
        // In a container of its own, on a volume of its own, and from an image of its own.
        &|| containers.ask(["ps", "--all", "--format", "{{.Labels}}"]).contains("bench-"),
        &|| !left(&containers)[1].is_empty(),
        &|| !left(&containers)[0].is_empty(),
    ];
    for is_there in is_there {
        let mut child = bench(world).args(line).spawn();
        while !is_there() {
            assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        }
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        // A supervisor of Calve's own servers takes a moment to see that its owner has gone.
        eventually(|| {
            world.db(["gc"]).succeeds();
            let names = containers.names();
            if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) }
        });
        world.nothing_runs();
    }
    // Nor does what has the label alone.
    let label = containers.home_label().replacen("calve.home", "calve.bench", 1);
    let stranger = format!("not-calve-bench-1-{}", std::process::id());
    containers.ask(["volume", "create", "--label", &label, &stranger]);
    bench(world).args(["--runs", "1", "--duration", "0", "--steps", "0"]).succeeds();
    assert_eq!(left(&containers), ["".to_owned(), stranger.clone()]);
    containers.ask(["volume", "rm", &stranger]);
    containers.nothing_left();
}

#[test]
fn mariadb_is_put_under_load_by_sysbench() {
    if !require_program("sysbench") {
        return;
    }
    let Some(world) = World::on(FileSystem::Ext4, User::This) else { return };
    world.template(Mariadb);
    // It does not always tell of its last second.
    let report = bench(&world).args(["--runs", "1", "--duration", "3"]).succeeds().json();
    assert_eq!(strategies(&report, 1), ["copy", "overlay"]);
    assert!(report["facts"]["load"].as_str().unwrap().starts_with("`sysbench oltp_write_only`"), "{report:#}");
    world.nothing_left();
}

#[test]
fn wrong_words_are_answered() {
    let Some(world) = World::new() else { return };
    bench(&world).fails(1, &["no template `t`"]);
    world.template(Postgres);
    bench(&world)
        .args(["--write", "DELETE FROM nowhere"])
        .fails(1, &["DELETE FROM nowhere", "does not exist", "--write"]);
    bench(&world).args(["--query", "SELECT 1/0"]).fails(1, &["division by zero", "--query"]);
    world.nothing_left();
}

#[test]
fn it_leaves_nothing_however_it_ends() {
    let Some(world) = World::new() else { return };
    world.template(Postgres);
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut child = bench(&world).args(["--duration", "60"]).spawn();
        // Until the load is on.
        while load_of(&world).is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it ended without a load");
            std::thread::sleep(Duration::from_millis(20));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        world.nothing_runs();
        world.db(["gc"]).succeeds();
        world.nothing_left();
    }
}

/// The bench's files for a load that runs.
fn load_of(world: &World) -> Vec<String> {
    let places = crate::world::names(&world.home()).into_iter().filter(|name| name.starts_with(".calve-bench-"));
    let loads = places.flat_map(|place| crate::world::names(&world.home().join(place)));
    loads.filter(|name| name.starts_with("pgbench_log")).collect()
}

#[test]
fn standbys_are_measured_unless_the_template_has_a_pool() {
    for engine in [Postgres, Mariadb] {
        let Some(world) = World::on(FileSystem::Btrfs, User::This) else { return };
        world.template(engine);
        let report = bench(&world).args(["--runs", "1", "--steps", "2", "--duration", "0"]).succeeds().json();
        let steps = report["results"].as_array().unwrap().iter().filter(|row| row["step"].is_string());
        let of_standbys = steps.filter(|row| row["memory_bytes"]["median"].as_f64().is_some_and(|bytes| bytes > 1e6));
        assert_eq!(of_standbys.map(|row| row["ms"]["values"].as_array().unwrap().len()).collect::<Vec<_>>(), [2]);
        world.nothing_left();
        // With a pool of its own, the figures would not mean what they say.
        world.db(["pool", "t", "--size", "1", "-q"]).succeeds();
        bench(&world).args(["--runs", "1"]).fails(2, &["has a pool"]);
        world.db(["pool", "t", "--size", "0", "-q"]).succeeds();
    }
}
