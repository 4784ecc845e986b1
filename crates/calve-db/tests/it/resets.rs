//! Resets of a server that was reset before: only what has changed since is cloned again.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_testkit::{FileSystem, require_root};
use fs_err as fs;
use serde_json::Value;

use crate::world::{Engine, Postgres, User, World, eventually, ordinary};

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

fn story(world: &World, engine: Engine, strategy: &str) {
    world.template(engine);
    let server = world.db(["start", "t", "--name", "a", "--json", "--strategy", strategy]).succeeds().json();
    let data = data_of(&server);
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
    world.stop("a");
    world.nothing_left();
}

/// Returns the device, which each subvolume has its own of, and the inode.
fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// Finds the data that are cloned ahead for the server's next reset, once they are complete.
fn found_next_data(data: &Path) -> Option<(u64, u64)> {
    let entries: Vec<_> = fs::read_dir(data.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_number = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().parse::<u32>().is_ok();
    let next: Vec<_> = entries.iter().filter(is_number).collect();
    assert!(next.len() < 2, "{next:?}");
    let path = next.first().filter(|path| path.join("data/PG_VERSION").exists())?;
    assert_eq!(fs::metadata(path).unwrap().mode() & 0o7777, 0o700);
    Some(id(&path.join("data")))
}

fn next_data(data: &Path) -> (u64, u64) {
    let mut found = None;
    eventually(|| {
        found = found_next_data(data);
        found.map(drop).ok_or_else(|| "nothing is cloned ahead".to_owned())
    });
    found.unwrap()
}

fn assert_no_next_data(data: &Path) {
    for _ in 0..30 {
        assert_eq!(found_next_data(data), None);
        std::thread::sleep(Duration::from_millis(10));
    }
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
        let data = data_of(&server);
        assert_no_next_data(&data);
        let first = reset(&world);
        for _ in 0..3 {
            world.query(Postgres, &server, "DELETE FROM t");
            let (before, next) = (id(&data), next_data(&data));
            let back = reset(&world);
            assert_eq!((&back["url"], &back["strategy"]), (&server["url"], &strategy.into()));
            assert_eq!(back["refused"], first["refused"]);
            assert_eq!(id(&data), next);
            assert_ne!(id(&data), before);
            assert_eq!(world.rows(Postgres, &server), "1000");
        }
        world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
        world.db(["mark", "a", "m", "-q"]).succeeds();
        let next = next_data(&data);
        world.query(Postgres, &server, "DELETE FROM t");
        world.db(["reset", "a", "--to", "m", "-q"]).succeeds();
        assert_eq!(world.rows(Postgres, &server), "10");
        assert_eq!(id(&data), next);
        // At once, when what is cloned ahead is of the mark.
        reset(&world);
        assert_eq!(world.rows(Postgres, &server), "1000");
        // Ahead of the template before it was made again.
        let next = next_data(&data);
        world.db(["template", "create", "t", "-q", "--rebuild", "--from-mark", "a:m"]).succeeds();
        reset(&world);
        assert_eq!(world.rows(Postgres, &server), "10");
        assert_ne!(id(&data), next);
        world.db(["mark", "a", "n", "-q"]).succeeds();
        next_data(&data);
        world.db(["unmark", "a", "n"]).succeeds();
        eventually(|| match found_next_data(&data) {
            None if trash(&data).is_empty() => Ok(()),
            found => Err(format!("left: {found:?}, {:?}", trash(&data))),
        });
        world.stop("a");
        world.nothing_left();
    }
}

/// Returns what is deleted in the server's place.
fn trash(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().contains("trash")).collect()
}

#[test]
fn nothing_is_cloned_ahead_where_a_clone_takes_up_room() {
    if !require_root("the reset of a server with an account of its own") {
        return;
    }
    let Some(world) = World::on(FileSystem::Ext4, User::This) else { return };
    world.template(Postgres);
    let server = world.db(["start", "t", "--name", "a", "--json", "--strategy", "copy"]).succeeds().json();
    let data = data_of(&server);
    reset(&world);
    assert_no_next_data(&data);
    world.stop("a");
    world.nothing_left();
}

#[test]
fn others_than_root_have_data_cloned_ahead_for_a_new_mark_alone() {
    let Some(world) = World::on(FileSystem::Xfs, ordinary()) else { return };
    world.template(Postgres);
    let server = world.start("a");
    let data = data_of(&server);
    reset(&world);
    assert_no_next_data(&data);
    world.query(Postgres, &server, "DELETE FROM t WHERE a > 10");
    world.db(["mark", "a", "m", "-q"]).succeeds();
    let next = next_data(&data);
    for _ in 0..3 {
        world.query(Postgres, &server, "DELETE FROM t");
        world.db(["reset", "a", "--to", "m", "-q"]).succeeds();
        assert_eq!(world.rows(Postgres, &server), "10");
        assert_eq!(id(&data), next);
        assert_no_next_data(&data);
    }
    world.stop("a");
    world.nothing_left();
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
