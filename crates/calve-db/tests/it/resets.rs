//! Resets of a server that was reset before: only what has changed since is cloned again.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_testkit::{FileSystem, require_root};
use fs_err as fs;
use serde_json::Value;

use crate::world::{Postgres, User, World, ordinary};

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
    world.stop("a");
    world.nothing_left();
}

#[test]
fn a_second_reset_leaves_what_has_not_changed() {
    let ways = [(FileSystem::Xfs, "reflink"), (FileSystem::Btrfs, "snapshot"), (FileSystem::Ext4, "copy")];
    for (file_system, strategy) in ways {
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
