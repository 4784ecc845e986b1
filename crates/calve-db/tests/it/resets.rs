//! Resets of a server that was reset before: only what has changed since is cloned again.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_testkit::{FileSystem, require_root};
use fs_err as fs;
use serde_json::Value;

use crate::world::{Engine, Postgres, User, World, ordinary};

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

fn reset(world: &World) -> Value {
    world.db(["reset", "a", "--json"]).succeeds().json()["servers"][0].clone()
}

fn story(world: &World, engine: Engine, strategy: &str) {
    world.template(engine);
    let server = world.db(["start", "t", "--name", "a", "--json", "--strategy", strategy]).succeeds().json();
    let data = PathBuf::from(server["data_directory"].as_str().unwrap());
    // The first reset clones everything. What it made within the last tick of the clock is made again by the second one.
    reset(world);
    std::thread::sleep(Duration::from_millis(50));
    reset(world);
    for _ in 0..3 {
        let before = inodes(&data);
        world.query(engine, &server, "DELETE FROM t WHERE a > 10");
        world.query(engine, &server, "CREATE TABLE u (b int)");
        fs::write(data.join("planted"), "planted").unwrap();
        let back = reset(world);
        assert_eq!((&back["url"], &back["strategy"]), (&server["url"], &strategy.into()));
        assert_eq!(world.rows(engine, &server), "1000");
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'u'";
        assert_eq!(world.query(engine, &server, tables), "0");
        assert!(!data.join("planted").exists());
        let after = inodes(&data);
        let same = before.iter().filter(|(path, inode)| after.get(*path) == Some(inode)).count();
        assert!(same > before.len() / 2, "{same} of {} files of {engine:?} stayed the same", before.len());
    }
    world.stop("a");
    world.nothing_left();
}

#[test]
fn a_second_reset_leaves_what_has_not_changed() {
    let ways = [(FileSystem::Xfs, "reflink"), (FileSystem::Btrfs, "snapshot"), (FileSystem::Ext4, "copy")];
    for (file_system, strategy) in ways {
        for engine in Engine::all() {
            let Some(world) = World::on(file_system, ordinary()) else { return };
            story(&world, engine, strategy);
        }
    }
}

/// The server's account, which may do everything in the data directory, must not lead root anywhere.
#[test]
fn as_root_every_reset_makes_a_new_directory() {
    if !require_root("the reset of a server with an account of its own") {
        return;
    }
    let Some(world) = World::on(FileSystem::Xfs, User::This) else { return };
    world.template(Postgres);
    let server = world.start("a");
    let data = PathBuf::from(server["data_directory"].as_str().unwrap());
    let mut seen = Vec::new();
    for _ in 0..3 {
        // Kept, so that no later directory has the inode of an earlier one.
        seen.push(fs::File::open(&data).unwrap());
        reset(&world);
        let now = fs::metadata(&data).unwrap().ino();
        assert!(seen.iter().all(|before| before.metadata().unwrap().ino() != now));
    }
    seen.clear();
    world.stop("a");
    world.nothing_left();
}

/// Returns the device, which each subvolume has its own of, and the inode.
fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// Finds the data that are cloned ahead for the server's next reset, once they are complete.
fn next_data(data: &Path) -> Option<(u64, u64)> {
    let place = data.parent().unwrap();
    let complete = |path: &Path| path.join("data/PG_VERSION").exists() && path.join("data/global/pg_control").exists();
    for _ in 0..100 {
        let entries: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
        let is_number = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().parse::<u32>().is_ok();
        let next: Vec<_> = entries.iter().filter(is_number).collect();
        assert!(next.len() < 2, "{next:?}");
        if let Some(path) = next.first().filter(|path| complete(path)) {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o700);
            return Some(id(&path.join("data")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn as_root_a_reset_takes_data_that_were_cloned_ahead() {
    if !require_root("the reset of a server with an account of its own") {
        return;
    }
    for (file_system, strategy) in [(FileSystem::Xfs, "reflink"), (FileSystem::Btrfs, "snapshot")] {
        let Some(world) = World::on(file_system, User::This) else { return };
        world.template(Postgres);
        let server = world.start("a");
        let data = PathBuf::from(server["data_directory"].as_str().unwrap());
        assert_eq!(next_data(&data), None);
        reset(&world);
        for _ in 0..3 {
            world.query(Postgres, &server, "DELETE FROM t");
            let next = next_data(&data);
            let before = id(&data);
            let back = reset(&world);
            assert_eq!((&back["url"], &back["strategy"]), (&server["url"], &strategy.into()));
            assert_eq!(Some(id(&data)), next);
            assert_ne!(id(&data), before);
            assert_eq!(world.rows(Postgres, &server), "1000");
        }
        world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
        world.db(["mark", "a", "m", "-q"]).succeeds();
        next_data(&data).expect("data for a reset to the mark");
        world.query(Postgres, &server, "DELETE FROM t");
        world.db(["reset", "a", "--to", "m", "-q"]).succeeds();
        assert_eq!(world.rows(Postgres, &server), "10");
        // At once, when what is cloned ahead is of the mark.
        reset(&world);
        assert_eq!(world.rows(Postgres, &server), "1000");
        // Ahead of the template before it was made again.
        next_data(&data).expect("data for a reset to the template");
        world.db(["template", "create", "t", "-q", "--rebuild", "--from-mark", "a:m"]).succeeds();
        reset(&world);
        assert_eq!(world.rows(Postgres, &server), "10");
        world.stop("a");
        world.nothing_left();
    }
}

#[test]
fn nothing_is_cloned_ahead_where_a_clone_takes_up_room_or_a_reset_reverts() {
    for (file_system, strategy) in [(FileSystem::Ext4, "copy"), (FileSystem::Xfs, "reflink")] {
        let Some(world) = World::on(file_system, ordinary()) else { return };
        world.template(Postgres);
        let server = world.db(["start", "t", "--name", "a", "--json", "--strategy", strategy]).succeeds().json();
        let data = PathBuf::from(server["data_directory"].as_str().unwrap());
        reset(&world);
        assert_eq!(next_data(&data), None);
        world.stop("a");
        world.nothing_left();
    }
}

#[test]
fn a_template_that_was_made_again_is_cloned_as_a_whole() {
    let Some(world) = World::on(FileSystem::Xfs, ordinary()) else { return };
    world.template(Postgres);
    let server = world.start("a");
    reset(&world);
    world.query(Postgres, &server, "CREATE TABLE u (b int)");
    world.db(["mark", "a", "m", "-q"]).succeeds();
    reset(&world);
    world.db(["template", "create", "t", "-q", "--rebuild", "--from-mark", "a:m"]).succeeds();
    reset(&world);
    assert_eq!(world.query(Postgres, &server, "SELECT count(*) FROM pg_class WHERE relname = 'u'"), "1");
    world.stop("a");
    world.nothing_left();
}
