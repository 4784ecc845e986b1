//! A CALVE_HOME that is moved while servers run, with another one in its place.

use std::path::PathBuf;

use calve_testkit::matrix;
use serde_json::Value;

use crate::services::Project;
use crate::world::{Engine, Redis, World, eventually, kill, names};

/// A server of each kind: `a`, `b`, `c` from a pool, and that of a service.
fn start_all(project: &Project) -> Vec<Value> {
    let world = &project.world;
    world.db(["pool", "t", "-q", "--size", "1"]).succeeds();
    let handed_over = world.start("c");
    assert_eq!(handed_over["standby"], true);
    world.db(["pool", "t", "-q", "--size", "0"]).succeeds();
    world.calve("up").arg("-q").within(&project.path).succeeds();
    let listed = world.db(["list", "--json"]).succeeds().json();
    let service = listed["servers"].as_array().unwrap().iter().find(|server| named(server).starts_with("t-"));
    vec![world.start("a"), world.start("b"), handed_over, service.unwrap().clone()]
}

fn named(server: &Value) -> &str {
    server["name"].as_str().unwrap()
}

fn running(world: &World) -> Vec<String> {
    let listed = world.db(["list", "--json"]).succeeds().json();
    assert_eq!(listed["ended"], Value::Array(Vec::new()));
    listed["servers"].as_array().unwrap().iter().map(|server| named(server).to_owned()).collect()
}

/// Everything in a directory but for its logs, which servers write to, with what it has.
fn files(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let servers = world.home().join("db/servers");
    let slots = names(&servers).into_iter().flat_map(|slot| {
        let slot = servers.join(slot);
        names(&slot).into_iter().map(move |name| slot.join(name))
    });
    let files = slots.filter(|path| path.is_file() && !path.ends_with("log"));
    files.map(|path| (path.clone(), fs_err::read(path).unwrap())).collect()
}

#[test]
fn another_home_in_the_place_of_a_moved_one_stays_as_it_is() {
    let Some(world) = World::new() else { return };
    let project = Project::new(world, Redis);
    let world = &project.world;
    start_all(&project);
    let moved = world.path().join("moved");
    fs_err::rename(world.home(), &moved).unwrap();
    let db = |words: &[&str]| world.db(words).env("CALVE_HOME", &moved);
    assert_eq!(db(&["list"]).succeeds().stdout().matches("redis").count(), 4);
    fs_err::create_dir(world.home()).unwrap();
    world.template(Redis);
    let others = start_all(&project);
    let (running_before, files_before) = (running(world), files(world));
    eventually(|| {
        let listed = db(&["list"]).succeeds().stdout();
        let count = listed.matches("  ended after CALVE_HOME was moved\n").count();
        if count == 3 { Ok(()) } else { Err(listed) }
    });
    // Its slot has a name by chance, and none in its place. The link that leads to it has.
    db(&["stop", "c"]).succeeds();
    db(&["gc"]).succeeds();
    assert_eq!(names(&moved.join("db/servers")), [".lock"]);
    assert_eq!(running(world), running_before);
    assert_eq!(files(world), files_before);
    for other in &others {
        assert_eq!(world.rows(Redis, other), "1000");
    }
    for name in ["a", "b", "c"] {
        world.stop(name);
    }
    world.calve("down").within(&project.path).succeeds();
    world.nothing_left();
}

#[test]
fn a_moved_home_still_ends_its_servers_and_says_what_they_cannot_do_there() {
    for engine in matrix(Engine::families()) {
        let Some(world) = World::new() else { return };
        let project = Project::new(world, engine);
        let world = &project.world;
        let [before, ended, _, service] = start_all(&project).try_into().unwrap();
        world.query(engine, &service, engine.add());
        let moved = world.path().join("moved");
        fs_err::rename(world.home(), &moved).unwrap();
        let db = |words: &[&str]| world.db(words).env("CALVE_HOME", &moved);
        let calve =
            |words: &[&str]| world.calve(words[0]).args(&words[1..]).within(&project.path).env("CALVE_HOME", &moved);
        let was = |name: &str| {
            let slot = world.home().join("db/servers").join(name);
            let hint =
                "hint: move CALVE_HOME back, or end the server: `calve db stop`, for a service `calve down --force`";
            format!("the server was started in `{}`, which was moved since\n{hint}\n", slot.display())
        };
        for words in [&["reset", "a"][..], &["mark", "a", "m"]] {
            db(words).fails(1, &[&was("a")]);
        }
        let name = named(&service);
        db(&["stop", name]).fails(1, &[&was(name)]);
        calve(&["down"]).fails(1, &[&was(name)]);
        assert_eq!(world.rows(engine, &before), "1000");
        assert_eq!(world.rows(engine, &service), "1001");
        for name in ["a", "c"] {
            db(&["stop", name]).succeeds();
        }
        calve(&["down", "--force"]).succeeds();
        kill(ended["pid"].as_u64().unwrap());
        eventually(|| {
            let listed = db(&["list"]).succeeds().stdout();
            if listed == "b  ended after CALVE_HOME was moved\n" { Ok(()) } else { Err(listed) }
        });
        db(&["gc"]).succeeds();
        assert_eq!(names(&moved.join("db/servers")), [".lock"]);
        calve(&["up"]).succeeds();
        let again = db(&["list", "--json"]).succeeds().json()["servers"][0].clone();
        assert_eq!(world.rows(engine, &again), "1001");
        calve(&["down"]).succeeds();
        eventually(|| {
            let left = names(&moved.join("db/servers"));
            if left == [".lock"] { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}
