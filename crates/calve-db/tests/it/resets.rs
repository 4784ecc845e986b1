//! Resets of a server that was reset before: only what has changed since is cloned again.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_testkit::{FileSystem, matrix, require_root};
use fs_err as fs;
use rustix::process::Signal;
use serde_json::Value;

use crate::marks::{down, ends};
use crate::world::{Postgres, Redis, User, World, ordinary, signal};

/// Returns the inode of each file below a directory.
fn inodes(root: &Path) -> BTreeMap<PathBuf, u64> {
    let (mut found, mut ahead) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(directory) = ahead.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let entry = fs::symlink_metadata(&path).unwrap();
            if entry.is_dir() {
                ahead.push(path.clone());
            } else {
                found.insert(path.clone(), entry.ino());
            }
        }
    }
    found
}

fn data_of(server: &Value) -> PathBuf {
    PathBuf::from(server["data_directory"].as_str().unwrap())
}

fn reset(world: &World) -> Value {
    world.db(["reset", "a", "--json"]).succeeds().json()["servers"][0].clone()
}

fn story(world: &World, strategy: &str) {
    world.template(Postgres);
    let server = world.db(["start", "t", "--name", "a", "--json", "--strategy", strategy]).succeeds().json();
    let data = data_of(&server);
    // The first reset clones everything. What it made within the last tick of the clock is made again by the second one.
    reset(world);
    std::thread::sleep(Duration::from_millis(50));
    reset(world);
    for _ in 0..3 {
        let before = inodes(&data);
        world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
        world.query(Postgres, &server, "CREATE TABLE u (b int)");
        fs::write(data.join("planted"), "planted").unwrap();
        let back = reset(world);
        assert_eq!((&back["url"], &back["strategy"]), (&server["url"], &strategy.into()));
        assert_eq!(world.rows(Postgres, &server), "1000");
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'u'";
        assert_eq!(world.query(Postgres, &server, tables), "0");
        assert!(!data.join("planted").exists());
        let after = inodes(&data);
        let same = before.iter().filter(|(path, inode)| after.get(*path) == Some(inode)).count();
        assert!(same > before.len() / 2, "{same} of {} files stayed the same", before.len());
    }
    world.stop_last("a");
}

#[test]
fn a_second_reset_leaves_what_has_not_changed() {
    let ways = [(FileSystem::Xfs, "reflink"), (FileSystem::Btrfs, "snapshot"), (FileSystem::Ext4, "copy")];
    for (file_system, strategy) in matrix(ways) {
        let Some(world) = World::on(file_system, ordinary()) else { return };
        story(&world, strategy);
    }
}

/// The server's account, which may do everything in the data directory, must not lead root anywhere.
#[test]
fn as_root_every_reset_makes_a_new_directory() {
    if !require_root("the reset of a server with an account of its own") {
        return;
    }
    let Some(world) = World::at(FileSystem::Xfs, User::This, Postgres) else { return };
    let server = world.start("a");
    let data = data_of(&server);
    let mut seen = Vec::new();
    for _ in 0..3 {
        // Kept, so that no later directory has the inode of an earlier one.
        seen.push(fs::File::open(&data).unwrap());
        reset(&world);
        let now = fs::metadata(&data).unwrap().ino();
        assert!(seen.iter().all(|before| before.metadata().unwrap().ino() != now));
    }
    seen.clear();
    world.stop_last("a");
}

#[test]
fn a_template_that_was_made_again_is_cloned_as_a_whole() {
    let Some(world) = World::at(FileSystem::Xfs, ordinary(), Postgres) else { return };
    let server = world.start("a");
    reset(&world);
    world.query(Postgres, &server, "CREATE TABLE u (b int)");
    world.db(["mark", "a", "m", "-q"]).succeeds();
    reset(&world);
    world.db(["template", "create", "t", "-q", "--rebuild", "--from-mark", "a:m"]).succeeds();
    reset(&world);
    assert_eq!(world.query(Postgres, &server, "SELECT count(*) FROM pg_class WHERE relname = 'u'"), "1");
    world.stop_last("a");
}

/// Whatever the moment, a reset is made or not made.
#[test]
fn a_reset_that_is_interrupted_leaves_a_server_that_goes_on() {
    for (engine, user) in [(Postgres, User::This), (Redis, ordinary())] {
        let Some(world) = World::of(user, engine) else { return };
        let server = world.start("a");
        let mut random = calve_testkit::SplitMix64::new(u64::from(std::process::id()));
        let mut most = 1000;
        for round in 0..calve_testkit::rounds(60).max(8) {
            world.query(engine, &server, engine.add());
            most += 1;
            let mut child = world.db(["reset", "a"]).spawn();
            std::thread::sleep(Duration::from_millis(random.below(60)));
            signal(child.id().into(), if round % 2 == 0 { Signal::INT } else { Signal::TERM });
            let code = ends(&mut child);
            let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
            // Its turn comes when the reset is over.
            world.db(["unmark", "a", "none"]).fails(1, &["no mark `none`"]);
            let rows: u64 = world.rows(engine, &server).parse().unwrap();
            match code {
                Some(0) => assert_eq!(rows, 1000),
                Some(130) if said.contains("interrupted; the server `a` still finishes the operation\n") => {
                    assert!([1000, most].contains(&rows), "{rows} of {most}");
                }
                // Before it asked; signals before it listens end it.
                Some(130) | None => assert_eq!(rows, most, "{said}"),
                other => panic!("it ended with {other:?}"),
            }
            most = rows;
        }
        assert_eq!(down(&world), [""; 0]);
        world.stop_last("a");
    }
}
