//! What an overlay copies, on real servers.

use calve_testkit::FileSystem;

use crate::world::{Engine, User, World, names};

/// More than what counts as large, in one table.
fn fill(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgres => {
            "CREATE TABLE big AS SELECT n, repeat(md5(n::text), 30) AS text FROM generate_series(1, 20000) AS n"
        }
        Engine::Mariadb => {
            "CREATE TABLE big (n INT PRIMARY KEY, text TEXT) ENGINE=InnoDB AS SELECT seq AS n, REPEAT(MD5(seq), 30) AS text \
             FROM seq_1_to_20000"
        }
    }
}

#[test]
fn large_files_are_named_before_they_are_copied_and_after() {
    for engine in Engine::ALL {
        let Some(world) = World::on(FileSystem::Ext4, User::This) else { return };
        let create = ["template", "create", "t", "-q", "--engine", engine.name(), "--"];
        world.db(create).args(engine.client(fill(engine))).succeeds();
        let start = ["start", "t", "--json", "--strategy", "overlay", "--name"];
        let ran = world.db(start).arg("a").succeeds();
        let server = ran.json();
        let announced = server["copied_on_first_open"].as_array().unwrap();
        let sizes: Vec<u64> = announced.iter().map(|file| file["bytes"].as_u64().unwrap()).collect();
        assert!(!sizes.is_empty() && sizes.iter().all(|bytes| *bytes > 16 << 20), "{server:#}");
        assert!(sizes.is_sorted_by(|a, b| a >= b), "{server:#}");
        assert!(ran.stderr().contains("copies a file as a whole"), "{}", ran.stderr());
        let table = match engine {
            Engine::Postgres => world.query(engine, &server, "SELECT pg_relation_filepath('big')"),
            Engine::Mariadb => "test/big.ibd".to_owned(),
        };
        let is_announced = announced.iter().any(|file| file["path"] == table.as_str());
        assert!(is_announced, "{table}: {server:#}");

        // A server that was not asked for the table has not copied it.
        let quiet = world.db(["stop", "a"]).succeeds().stderr();
        let server = world.db(start).arg("b").succeeds().json();
        assert_eq!(world.query(engine, &server, "SELECT count(*) FROM big"), "20000");
        let told = world.db(["stop", "b"]).succeeds().stderr();
        assert!(told.contains("the overlay copied ") && told.contains(&table), "{table}: {told}");
        if engine == Engine::Postgres {
            assert!(!quiet.contains(&table), "{table}: {quiet}");
        }
        // What the server made anew was not copied.
        assert!(!told.contains("postmaster.pid"), "{told}");
        world.nothing_runs();
    }
}

#[test]
fn nothing_is_copied_where_blocks_can_be_shared() {
    let Some(world) = World::on(FileSystem::Xfs, User::This) else { return };
    world.template(Engine::Postgres);
    for strategy in ["overlay", "reflink"] {
        let ran = world.db(["start", "t", "--json", "--name", "a", "--strategy", strategy]).succeeds();
        assert_eq!(ran.json()["copied_on_first_open"].as_array().unwrap().len(), 0, "{strategy}");
        assert_eq!(ran.stderr(), "", "{strategy}");
        let told = world.db(["stop", "a"]).succeeds().stderr();
        assert_eq!(told.contains("the overlay copied"), strategy == "overlay", "{told}");
    }
    assert_eq!(names(&world.home().join("db/templates")).iter().filter(|name| *name == "t").count(), 1);
}
