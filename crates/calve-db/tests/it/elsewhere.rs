//! The user's own server is never mistaken for Calve's, whatever his environment and his files say.

use std::path::Path;

use fs_err as fs;
use serde_json::Value;

use crate::world::{Engine, Mariadb, Postgres, Run, World};

/// A server `own` with a thousand rows, which stands for the user's.
fn own(world: &World, engine: Engine) -> Value {
    world.template(engine);
    world.start("own")
}

/// `calve db template create new`, by a command that makes a table.
fn create(world: &World, engine: Engine) -> Run {
    let words = ["template", "create", "new", "--rebuild", "-q", "--engine", engine.name(), "--"];
    world.db(words).args(engine.client("CREATE TABLE made (a int)"))
}

fn run(world: &World, engine: Engine, sql: &str) -> Run {
    world.db(["run", "new", "-q", "--"]).args(engine.client(sql))
}

#[track_caller]
fn is_untouched(world: &World, engine: Engine, own: &Value) {
    assert_eq!(world.rows(engine, own), "1000");
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name = 'made'";
    assert_eq!(world.query(engine, own, tables), "0");
}

#[test]
fn variables_lead_nobody_elsewhere() {
    let Some(world) = World::new() else { return };
    let theirs = own(&world, Postgres);
    let services = world.path().join("services");
    let host = theirs["host"].as_str().unwrap();
    fs::write(&services, format!("[own]\nhost={host}\nport={}\n", theirs["port"])).unwrap();
    let led = |run: Run| {
        let run = run.env("PGSERVICE", "own").env("PGSERVICEFILE", &services).env("PGHOSTADDR", "127.0.0.1");
        run.env("PGOPTIONS", "-c default_transaction_read_only=on").env("PGSSLMODE", "verify-full")
    };
    led(create(&world, Postgres)).succeeds();
    assert_eq!(led(run(&world, Postgres, "SELECT count(*) FROM made")).succeeds().stdout(), "0\n");
    led(run(&world, Postgres, "DROP TABLE made")).succeeds();
    is_untouched(&world, Postgres, &theirs);
    let script = "eval \"$(\"$0\" db url own --format env)\"; echo ${PGSERVICE-none} ${PGHOSTADDR-none} $PGHOST";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script]).arg(World::program()).env("CALVE_HOME", world.home());
    shell.env_remove("XDG_RUNTIME_DIR").env("PGSERVICE", "own").env("PGHOSTADDR", "127.0.0.1");
    if world.has_namespaces() {
        assert_eq!(String::from_utf8(shell.output().unwrap().stdout).unwrap(), format!("none none {host}\n"));
    }
    world.db(["stop", "--all"]).succeeds();

    let Some(world) = World::new() else { return };
    let theirs = own(&world, Mariadb);
    let home = home_with(&world, "prod", theirs["socket"].as_str().unwrap());
    let led = |run: Run| run.env("HOME", &home).env("MYSQL_PWD", "wrong").env("MYSQL_GROUP_SUFFIX", "prod");
    led(create(&world, Mariadb)).succeeds();
    assert_eq!(led(run(&world, Mariadb, "SELECT count(*) FROM test.made")).succeeds().stdout(), "0\n");
    is_untouched(&world, Mariadb, &theirs);
    world.db(["stop", "--all"]).succeeds();
}

/// A user's directory with options for clients, in the groups with that suffix.
fn home_with(world: &World, suffix: &str, socket: &str) -> std::path::PathBuf {
    let home = world.path().join(format!("user-{suffix}"));
    fs::create_dir(&home).unwrap();
    fs::write(home.join(".my.cnf"), format!("[client{suffix}]\nsocket={socket}\n")).unwrap();
    home
}

/// Nothing that Calve could set overrides that file.
#[test]
fn a_file_of_options_that_leads_elsewhere_is_refused() {
    let Some(world) = World::new() else { return };
    let theirs = own(&world, Mariadb);
    create(&world, Mariadb).succeeds();
    let home = home_with(&world, "", theirs["socket"].as_str().unwrap());
    let file = home.join(".my.cnf");
    let words = [
        file.to_str().unwrap(),
        "sets `socket`",
        "hint: move that line to a group of its own, such as [clientprod] for `mariadb --defaults-group-suffix=prod`\n",
    ];
    create(&world, Mariadb).env("HOME", &home).fails(1, &words);
    run(&world, Mariadb, "DROP TABLE test.t").env("HOME", &home).fails(1, &words);
    is_untouched(&world, Mariadb, &theirs);
    // PostgreSQL's programs do not read it.
    let words = ["template", "create", "p", "-q", "--engine", "postgres", "--"];
    world.db(words).args(Postgres.client("CREATE TABLE made (a int)")).env("HOME", &home).succeeds();
    world.stop_all();
}

#[test]
fn a_command_that_was_never_there_makes_no_template() {
    for engine in Engine::families() {
        let Some(world) = World::new() else { return };
        let theirs = own(&world, engine);
        let words = ["template", "create", "new", "-q", "--engine", engine.name(), "--"];
        let said = [
            "never connected",
            "the template `new` was not made",
            "hint: check where the command connects; make it use DATABASE_URL (REDIS_URL for Redis and Valkey), or leave it out for an empty template\n",
        ];
        world.db(words).arg("true").fails(1, &said);
        let asks = match engine {
            Engine::Redis | Engine::Valkey => "return 1",
            _ => "SELECT 1",
        };
        let elsewhere = world.client(engine, &theirs, asks);
        world.db(words).arg(elsewhere.get_program()).args(elsewhere.get_args()).fails(1, &said);
        world.db(["start", "new"]).fails(1, &["no template `new`"]);
        // Without a command, it is an empty one that is wanted.
        world.db(&words[..words.len() - 1]).succeeds();
        assert!(Path::new(&world.home()).join("db/templates/new/data").is_dir());
        world.stop_all();
    }
}
