//! The conformance suite of each engine, for root and for others: one story, on every file system for one engine of each kind.

use calve_testkit::{FileSystem, few_rounds, fingerprint, matrix, require_program};

use crate::world::{Engine, Mysql, Postgres, User, World, users};

/// The whole life of the servers of the template `t`.
pub(crate) fn story(world: &World, engine: Engine, strategy: &str, chosen: Option<&str>) {
    let template = world.home().join("db/templates/t/data");
    let before = fingerprint(&template);
    let start = |name: &str| {
        let chosen = chosen.map(|chosen| ["--strategy", chosen]).into_iter().flatten();
        world.db(["start", "t", "--json", "--name", name]).args(chosen).succeeds().json()
    };
    let (a, b) = (start("a"), start("b"));
    assert_eq!(a["strategy"], strategy);
    assert_eq!(a["engine"], engine.name());
    for server in [&a, &b] {
        assert_eq!(world.rows(engine, server), "1000");
    }

    // What one writes the other does not see, nor does the template.
    world.query(engine, &a, engine.shrink());
    world.query(engine, &b, engine.add());
    assert_eq!((world.rows(engine, &a).as_str(), world.rows(engine, &b).as_str()), ("10", "1001"));

    // Back to the template, at the same address.
    let reset = world.db(["reset", "a", "--json"]).succeeds().json();
    assert_eq!((&reset["servers"][0]["url"], &reset["servers"][0]["name"]), (&a["url"], &a["name"]));
    assert_eq!((world.rows(engine, &a).as_str(), world.rows(engine, &b).as_str()), ("1000", "1001"));
    world.query(engine, &a, engine.add());

    // Back to a mark.
    world.db(["mark", "a", "m"]).succeeds();
    world.query(engine, &a, engine.shrink());
    world.db(["reset", "a", "--to", "m"]).succeeds();
    assert_eq!(world.rows(engine, &a), "1001");

    // A server for one command.
    let chosen = chosen.map(|chosen| ["--strategy", chosen]).into_iter().flatten();
    let ran = world.db(["run", "t"]).args(chosen).arg("--").args(engine.client(engine.count())).succeeds();
    assert_eq!(ran.stdout().trim(), "1000");

    world.db(["stop", "a"]).succeeds();
    assert_eq!(world.rows(engine, &b), "1001");
    world.stop_all();
    before.assert_unchanged(&template);
}

/// One engine of each kind; with few rounds PostgreSQL.
fn families() -> Vec<Engine> {
    matrix(Engine::families()).collect()
}

/// These engines, for root and for others; in few rounds for one of them, and the first engine for `first`.
fn on(engines: &[Engine], file_system: FileSystem, (strategy, chosen): (&str, Option<&str>), first: User) {
    let second = if first == User::This { User::Unprivileged } else { User::This };
    for (&engine, order) in engines.iter().zip([[first, second], [second, first]].iter().cycle()) {
        for user in matrix(order) {
            let Some(world) = World::at(file_system, *user, engine) else { return };
            story(&world, engine, strategy, chosen);
        }
    }
}

#[test]
fn on_btrfs_by_snapshot() {
    on(&families(), FileSystem::Btrfs, ("snapshot", None), User::This);
}

#[test]
fn on_xfs_by_reflink() {
    on(&Engine::every(), FileSystem::Xfs, ("reflink", None), User::Unprivileged);
}

#[test]
fn on_ext4_by_overlay() {
    on(&families(), FileSystem::Ext4, ("overlay", None), User::Unprivileged);
}

#[test]
fn on_ext4_by_copy() {
    on(&families(), FileSystem::Ext4, ("copy", Some("copy")), User::This);
}

/// The oldest version that Calve serves, which few of the others' settings fit. With few rounds only the newest is tested.
#[test]
fn mysql_8_0() {
    let directory = "/usr/local/mysql-8.0/bin";
    if few_rounds() || !require_program(&format!("{directory}/mysqld")) || !Engine::all().contains(&Mysql) {
        return;
    }
    let all = [(FileSystem::Xfs, "reflink", User::This), (FileSystem::Ext4, "overlay", User::Unprivileged)];
    for (file_system, strategy, user) in all {
        let Some(world) = World::on(file_system, user) else { return };
        let create = |name: &str| world.db(["template", "create", name, "-q", "--engine", "mysql"]);
        create("t").args(["--server-bin", directory, "--"]).args(Mysql.client(Mysql.fill())).succeeds();
        story(&world, Mysql, strategy, None);
        let identities: Vec<String> = ["a", "b"]
            .map(|name| {
                let server = world.start(name);
                assert!(world.query(Mysql, &server, "SELECT @@version").starts_with("8.0."));
                // The size of the redo log is that of the settings.
                assert_eq!(world.query(Mysql, &server, "SELECT @@innodb_log_file_size"), "16777216");
                world.query(Mysql, &server, "SELECT @@server_uuid")
            })
            .into();
        assert_ne!(identities[0], identities[1]);
        world.db(["stop", "--all"]).succeeds();
        // A server of another series would upgrade the data for good.
        let data = world.home().join("db/templates/t/data");
        create("newer").arg("--from").arg(&data).fails(1, &["8.0"]);
        world.nothing_left();
    }
}

#[test]
fn forty_servers_at_once_do_not_see_each_other_under_load() {
    let Some(world) = World::having(Postgres) else { return };
    let starts: Vec<_> =
        (0..40).map(|number| world.db(["start", "t", "--name", &format!("s{number}")]).spawn()).collect();
    for start in starts {
        let output = start.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let list = world.db(["list", "--json"]).succeeds().json();
    let servers = list["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 40);
    for server in servers {
        assert_eq!(world.rows(Postgres, server), "1000");
    }
    let loaded = &servers[..10];
    std::thread::scope(|scope| {
        for (number, server) in (1..).zip(loaded) {
            let world = &world;
            scope.spawn(move || {
                let insert = format!("INSERT INTO t SELECT -{number} FROM generate_series(1, 200)");
                (0..5).for_each(|_| drop(world.query(Postgres, server, &insert)));
            });
        }
    });
    for (number, server) in (1..).zip(loaded) {
        let ask = |what: &str| world.query(Postgres, server, &format!("SELECT {what} FROM t WHERE a < 0"));
        assert_eq!(
            [ask("count(*)"), ask("min(a)"), ask("max(a)")],
            ["1000".into(), format!("-{number}"), format!("-{number}")]
        );
    }
    world.stop_all();
}

#[test]
fn every_user_has_servers_of_his_own() {
    for user in users() {
        let Some(world) = World::of(user, Postgres) else { return };
        let server = world.start("a");
        // The directory of the socket is closed to everybody else.
        let socket = std::path::PathBuf::from(server["socket"].as_str().unwrap());
        let mode = rustix::fs::stat(socket.parent().unwrap()).unwrap().st_mode & 0o777;
        assert_eq!(mode, 0o700);
        // No server runs as root.
        let pid = server["pid"].as_u64().unwrap();
        let owner = rustix::fs::stat(format!("/proc/{pid}")).unwrap().st_uid;
        assert_ne!(owner, 0);
        world.stop_last("a");
    }
}
