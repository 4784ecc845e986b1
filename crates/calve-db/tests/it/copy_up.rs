//! The large files that an overlay copies, on real servers.

use calve_testkit::FileSystem;
use serde_json::Value;

use crate::world::{Engine, Postgres, User, World, names};

/// More than what counts as large, in one table.
fn fill(engine: Engine) -> &'static str {
    match engine {
        Postgres => {
            "CREATE TABLE big WITH (autovacuum_enabled = off) AS SELECT n, repeat(md5(n::text), 30) AS text FROM generate_series(1, 20000) AS n"
        }
        _ => {
            "CREATE TABLE big (n INT PRIMARY KEY, text TEXT) ENGINE=InnoDB AS SELECT seq AS n, REPEAT(MD5(seq), 30) AS text \
             FROM seq_1_to_20000"
        }
    }
}

/// A world on ext4 with a template `b` that has a large table, and the table's file.
fn with_large_table(engine: Engine, user: User) -> Option<(World, String)> {
    let world = World::on(FileSystem::Ext4, user)?;
    world.template(engine);
    world.db(["template", "create", "b", "-q", "--base", "t", "--"]).args(engine.client(fill(engine))).succeeds();
    let question = engine.client("SELECT pg_relation_filepath('big')");
    let table = match engine {
        Postgres => world.db(["run", "b", "-q", "--"]).args(question).succeeds().stdout().trim().to_owned(),
        _ => "test/big.ibd".to_owned(),
    };
    Some((world, table))
}

fn is_table(file: &Value, table: &str) -> bool {
    file["path"] == table
}

#[test]
fn large_files_are_named() {
    let Some((world, table)) = with_large_table(Postgres, User::This) else { return };
    let start = ["start", "b", "--json", "--strategy", "overlay", "--name"];
    let ran = world.db(start).arg("a").succeeds();
    let server = ran.json();
    let announced = server["copied_on_first_open"].as_array().unwrap();
    let sizes: Vec<u64> = announced.iter().map(|file| file["bytes"].as_u64().unwrap()).collect();
    assert!(!sizes.is_empty() && sizes.iter().all(|bytes| *bytes > 16 << 20), "{server:#}");
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{server:#}");
    assert!(announced.iter().any(|file| is_table(file, &table)), "{table}: {server:#}");
    assert!(ran.stderr().contains("copies a file as a whole"), "{}", ran.stderr());

    assert!(world.db(["reset", "a"]).succeeds().stderr().contains("copies a file as a whole"));
    assert!(world.db(["run", "b", "--", "true"]).succeeds().stderr().contains("copies a file as a whole"));
    assert!(!world.db(["run", "b", "-q", "--", "true"]).succeeds().stderr().contains("copies a file as a whole"));
    world.stop_last("a");
}

#[test]
fn none_is_named_where_blocks_can_be_shared() {
    let Some(world) = World::at(FileSystem::Xfs, User::This, Postgres) else { return };
    for strategy in ["overlay", "reflink"] {
        let ran = world.db(["start", "t", "--json", "--name", "a", "--strategy", strategy]).succeeds();
        assert_eq!(ran.json()["copied_on_first_open"].as_array().unwrap().len(), 0, "{strategy}");
        assert_eq!(ran.stderr(), "", "{strategy}");
        world.db(["stop", "a"]).succeeds();
    }
    assert_eq!(names(&world.home().join("db/templates")).iter().filter(|name| *name == "t").count(), 1);
}
