//! Making templates: keys, bases, builders at the same time, and migrations in files.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs_err as fs;

use crate::world::{Mariadb, Postgres, World, eventually, names, ordinary, until};

fn create<'a>(world: &World, words: &[&'a str], script: &'a str) -> serde_json::Value {
    let base = ["template", "create", "--json"];
    let words = base.iter().chain(words).copied().chain(["--", "sh", "-ec", script]);
    world.db(words).succeeds().json()
}

#[test]
fn unchanged_inputs_reuse_it_and_changed_ones_do_not() {
    let Some(world) = World::new() else { return };
    fs::create_dir(world.path().join("sql")).unwrap();
    let file = world.path().join("sql/1.sql");
    fs::write(&file, "CREATE TABLE t (a int);").unwrap();
    let migrate = "psql -Xq -f sql/1.sql; echo run >> runs";
    let runs = || fs::read_to_string(world.path().join("runs")).unwrap().lines().count();
    let words = ["p", "--engine", "postgres", "--input", "sql/*.sql"];
    let first = create(&world, &words, migrate);
    assert_eq!((first["reused"].as_bool(), runs()), (Some(false), 1));
    let second = create(&world, &words, migrate);
    assert_eq!((second["reused"].as_bool(), runs()), (Some(true), 1));
    assert_eq!(first["key"], second["key"]);

    fs::write(&file, "CREATE TABLE t (a int, b int);").unwrap();
    assert_eq!((create(&world, &words, migrate)["reused"].as_bool(), runs()), (Some(false), 2));
    let server = world.db(["start", "p", "--json"]).succeeds().json();
    assert_eq!(world.query(Postgres, &server, "SELECT count(a) + count(b) FROM t"), "0");
    // A running server is not touched by a new template.
    let forced = ["p", "--engine", "postgres", "--input", "sql/*.sql", "--rebuild"];
    assert_eq!((create(&world, &forced, migrate)["reused"].as_bool(), runs()), (Some(false), 3));
    assert_eq!(world.query(Postgres, &server, "SELECT count(*) FROM t"), "0");
    world.db(["stop", "--all"]).succeeds();
    eventually(|| {
        world.db(["gc"]).succeeds();
        let found = names(&world.home().join("db/templates"));
        if found == [".lock-p", "p"] { Ok(()) } else { Err(format!("{found:?}")) }
    });

    // On top of it: a changed seed does not run the schema again.
    let seed = |sql: &str| {
        let script = format!("psql -Xq -c \"{sql}\"");
        create(&world, &["seeded", "--base", "p"], &script)
    };
    assert_eq!(seed("INSERT INTO t VALUES (1, 1)")["base"], "p");
    assert_eq!(seed("INSERT INTO t VALUES (1, 1), (2, 2)")["reused"], false);
    assert_eq!(runs(), 3);
    let server = world.db(["start", "seeded", "--json"]).succeeds().json();
    assert_eq!(world.query(Postgres, &server, "SELECT count(*) FROM t"), "2");
    world.db(["stop", "--all"]).succeeds();
    // A changed base changes the templates on it.
    fs::write(&file, "CREATE TABLE t (a int, b int, c int);").unwrap();
    create(&world, &words, migrate);
    assert_eq!(seed("INSERT INTO t VALUES (1, 1), (2, 2)")["reused"], false);

    world.db(["template", "remove", "seeded", "p"]).succeeds();
    assert_eq!(world.db(["template", "list"]).succeeds().stdout(), "");
    world.nothing_left();
}

#[test]
fn builders_at_the_same_time_wait_for_one() {
    let Some(world) = World::new() else { return };
    let script = &format!("echo run >> runs; psql -Xqc 'SELECT 1'; {}", until("go"));
    let words = ["template", "create", "p", "--engine", "postgres", "--json", "--", "sh", "-ec", script];
    let mut builders: Vec<_> = (0..4).map(|_| world.db(words).spawn()).collect();
    // The command goes on until all others have said that they wait for it.
    let (say, waiting) = std::sync::mpsc::channel();
    let mut listeners = Vec::new();
    for builder in &mut builders {
        let (stderr, say) = (BufReader::new(builder.stderr.take().unwrap()), say.clone());
        listeners.push(std::thread::spawn(move || {
            for line in stderr.lines().map(Result::unwrap) {
                if line.contains("waiting for another process") {
                    say.send(()).unwrap();
                }
            }
        }));
    }
    drop(say);
    assert_eq!(waiting.iter().take(3).count(), 3);
    fs::write(world.path().join("go"), "").unwrap();
    let mut reused = 0;
    for builder in builders {
        let output = builder.wait_with_output().unwrap();
        assert!(output.status.success());
        let template: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        reused += usize::from(template["reused"].as_bool().unwrap());
    }
    listeners.into_iter().for_each(|listener| listener.join().unwrap());
    assert_eq!((reused, waiting.iter().count()), (3, 0));
    assert_eq!(fs::read_to_string(world.path().join("runs")).unwrap(), "run\n");
}

#[test]
fn a_template_that_is_being_built() {
    let Some(world) = World::new() else { return };
    let script = format!("touch began; psql -Xqc 'SELECT 1'; {}", until("go"));
    let words = ["template", "create", "p", "--engine", "postgres", "--", "sh", "-ec", &script];
    let build = |more: &[&str]| world.db(words[..3].iter().chain(more).chain(&words[3..])).spawn();
    let began = world.path().join("began");
    let wait = || eventually(|| if began.exists() { Ok(()) } else { Err("it has not begun".into()) });
    let go = world.path().join("go");
    let first = build(&[]);
    wait();
    world.db(["start", "p"]).fails(1, &["`p` is still being built", "hint: try again when it is complete\n"]);
    fs::write(&go, "").unwrap();
    assert!(first.wait_with_output().unwrap().status.success());
    // Built again: until it is there, the old one is used.
    fs::remove_file(&go).unwrap();
    fs::remove_file(&began).unwrap();
    let second = build(&["--rebuild"]);
    wait();
    world.db(["start", "p", "--name", "a"]).succeeds();
    fs::write(&go, "").unwrap();
    assert!(second.wait_with_output().unwrap().status.success());
    // It can still be put back: to the new one.
    world.db(["reset", "a"]).succeeds();
    world.stop_last("a");
}

#[test]
fn a_command_that_fails() {
    let Some(world) = World::new() else { return };
    let words = ["template", "create", "p", "--engine", "postgres", "--", "sh", "-c", "echo trying; exit 42"];
    let ran = world.db(words).fails(
        42,
        &[
            "trying",
            "exit code 42",
            "the template `p` was not made",
            "logs/p.log",
            "hint: correct the command, and create the template again\n",
        ],
    );
    let log = fs::read_to_string(world.home().join("db/logs/p.log")).unwrap();
    assert!(log.contains("ready"), "{log}");
    assert!(!ran.stderr().contains("panic"));
    let said = ["cannot run `/nonexistent`", "hint: check the name of the command\n"];
    world.db(&words[..6]).arg("/nonexistent").fails(127, &said);
    world.db(["start", "p"]).fails(1, &["no template `p`"]);
    world.nothing_left();
}

/// Settings that a running server takes, and that the next one does not start with.
#[test]
fn what_no_server_starts_on_is_no_template_and_replaces_none() {
    let Some(world) = World::having(Postgres) else { return };
    let commands = [
        "psql -qc \"alter system set shared_preload_libraries='no_such_lib'\"",
        "psql -qc 'alter system set max_connections=1'",
        "psql -qc \"alter system set shared_buffers='8000GB'\"",
    ];
    for command in commands {
        let words = ["template", "create", "t", "--engine", "postgres", "--", "sh", "-ec", command];
        world.db(words).fails(1, &["when it was started on what is to be the template"]);
        let server = world.start("a");
        assert_eq!(world.rows(Postgres, &server), "1000", "{command}");
        world.stop_last("a");
    }
}

/// Migrations in files: schema versions in order, with a table that says which have run.
#[test]
fn migrations_in_files() {
    let Some(world) = World::new() else { return };
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrations");
    let migrate = "for file in \"$MIGRATIONS\"/*.sql; do psql -Xq -v ON_ERROR_STOP=1 -1 -f \"$file\" \\
        -c \"INSERT INTO schema_migrations VALUES ('$(basename \"$file\" .sql)')\"; done";
    let input = format!("{}/*.sql", migrations.display());
    let words =
        ["template", "create", "app", "--engine", "postgres", "--json", "--input", &input, "--", "sh", "-ec", migrate];
    let made = world.db(words).env("MIGRATIONS", &migrations).succeeds().json();
    assert_eq!(made["reused"], false);
    let server = world.db(["start", "app", "--json"]).succeeds().json();
    let count = |sql: &str| world.query(Postgres, &server, sql);
    let files = names(&migrations).len();
    assert_eq!(count("SELECT count(*) FROM schema_migrations"), files.to_string());
    assert_eq!(count("SELECT count(*) FROM orders JOIN customers ON customers.id = customer_id"), "300");
    assert_eq!(count("INSERT INTO orders (customer_id, total) VALUES (1, 5) RETURNING state"), "new");
    world.db(["stop", "--all"]).succeeds();
}

/// A server that cannot be put back stays as it is.
#[test]
fn a_reset_looks_before_it_gives_anything_up() {
    let Some((world, server)) = World::with_server(Postgres) else { return };
    world.query(Postgres, &server, "INSERT INTO t VALUES (0)");
    let refused = |words: &[&str]| {
        world.db(["reset", "a"]).fails(1, words);
        assert_eq!(world.rows(Postgres, &server), "1001");
    };
    let file = world.home().join("db/templates/t/data/PG_VERSION");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text} ")).unwrap();
    refused(&["the template `t` is damaged", "PG_VERSION"]);
    world.db(["template", "remove", "t"]).succeeds();
    refused(&["there is no template `t`"]);
    world.db(["template", "create", "t", "--engine", "mariadb"]).succeeds();
    refused(&[
        "`t` was made again by",
        "MariaDB",
        "PostgreSQL",
        "it stays as it is",
        "hint: start a new server from a template, and stop this one\n",
    ]);
    world.db(["template", "remove", "t"]).succeeds();
    world.template(Postgres);
    world.db(["reset", "a"]).succeeds();
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop_last("a");
}

#[test]
fn a_template_is_replaced_by_another_engine_only_on_purpose() {
    let Some(world) = World::having(Postgres) else { return };
    let words = ["template", "create", "t", "--engine", "mariadb"];
    world.db(words).fails(
        1,
        &[
            "a template `t` of the engine postgres",
            "hint: choose another name, remove it with `calve db template remove t`, or replace it with `--rebuild`\n",
        ],
    );
    let server = world.start("a");
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop("a");
    world.db(words).arg("--rebuild").succeeds();
    assert_eq!(world.start("b")["engine"], "mariadb");
    world.stop("b");
}

/// Without another command of `calve`.
#[test]
fn what_is_removed_or_replaced_is_deleted_at_once() {
    let Some(world) = World::new() else { return };
    let only = |wanted: &[&str]| {
        eventually(|| {
            let found = names(&world.home().join("db/templates"));
            if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
        });
    };
    let create = ["template", "create", "p", "--engine", "postgres", "--rebuild", "-q"];
    world.db(create).succeeds();
    world.db(create).succeeds();
    only(&[".lock-p", "p"]);
    // One that a server still needs goes with the server.
    let words = ["start", "p", "--name", "a", "--strategy", "overlay"];
    if world.db(words).spawn().wait_with_output().unwrap().status.success() {
        world.db(create).succeeds();
        assert_eq!(names(&world.home().join("db/templates")).len(), 3);
        world.stop("a");
        only(&[".lock-p", "p"]);
    }
    world.db(["template", "remove", "p"]).succeeds();
    only(&[".lock-p"]);
    world.nothing_left();
}

/// As the process that ended a server does for a while.
#[test]
fn gc_waits_for_those_who_delete_already() {
    let Some(world) = World::having(Postgres) else { return };
    let servers = world.home().join("db/servers");
    fs_err::create_dir_all(servers.join("gone/data")).unwrap();
    let mut options = calve_core::RemoveOptions::default();
    options.wait = calve_core::RemovalWait::No;
    calve_core::remove_tree(&servers.join("gone"), &options).unwrap();
    let trash = || names(&servers).into_iter().filter(|name| name.contains("trash")).collect::<Vec<_>>();
    let lock = trash().into_iter().find(|name| name.ends_with(".lock")).unwrap();
    let held = fs_err::File::open(servers.join(lock)).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let gc = world.db(["gc"]).spawn();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(held);
    assert!(gc.wait_with_output().unwrap().status.success());
    assert_eq!(trash(), [""; 0]);
}

#[test]
fn events_are_told_because_none_of_them_runs() {
    let Some(world) = World::new() else { return };
    let event = "CREATE EVENT test.e ON SCHEDULE EVERY 1 SECOND DO CREATE TABLE test.ran (a int)";
    let words = ["template", "create", "t", "--json", "--engine", "mariadb", "--"];
    let made = world.db(words).args(Mariadb.client(event)).succeeds();
    let told = "the event scheduler is off: 1 event does not run";
    assert!(made.stderr().contains(&format!("in the template: {told}")), "{}", made.stderr());
    assert_eq!(made.json()["neutralised"], serde_json::json!([told]));
}

/// Its record would tell whether it holds the data of a worktree.
#[test]
fn a_template_whose_record_may_not_be_read_is_not_made_again() {
    let Some(world) = World::of(ordinary(), Postgres) else { return };
    let document = world.home().join("db/templates/t/template.json");
    let before = fs::read(&document).unwrap();
    fs::set_permissions(&document, PermissionsExt::from_mode(0o000)).unwrap();
    let again = ["template", "create", "t", "--engine", "postgres"];
    world.db(again).fails(1, &["template.json`", "Permission denied"]);
    fs::set_permissions(&document, PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(fs::read(&document).unwrap(), before);
}

/// As an earlier build has left them, which kept the data in volumes of a Docker engine.
#[test]
fn a_template_and_a_server_of_an_earlier_build_are_refused_and_kept() {
    let Some(world) = World::new() else { return };
    create(&world, &["p", "--engine", "postgres"], "psql -Xqc 'CREATE TABLE t ()'");
    let place = fs::canonicalize(world.home()).unwrap().join("db/templates/p");
    let document = place.join("template.json");
    let mut template: serde_json::Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    let apart = serde_json::json!({ "user": 999, "group": 999, "entry_point": ["docker-entrypoint.sh"] });
    template["image"] = serde_json::json!({
        "runtime": "/nowhere/docker", "engine": "unix:///nowhere", "volumes": [], "name": "postgres:16", "id": "sha256:1",
        "apart": apart,
    });
    fs::write(&document, template.to_string()).unwrap();
    let before = fs::read(&document).unwrap();
    let refused =
        ["the template `p` is damaged: its `template.json`", "hint: create it again: calve db template create p "];
    world.db(["start", "p"]).fails(1, &refused);
    world.db(["run", "p", "--", "true"]).fails(1, &refused);
    world.db(["pool", "p", "--size", "1"]).fails(1, &refused);
    world.db(["template", "create", "q", "--base", "p"]).fails(1, &refused);
    world.db(["template", "create", "p", "--engine", "postgres"]).fails(1, &refused);
    // The volume is named where a note has it, and none of another template.
    let notes = place.ancestors().nth(2).unwrap().join("volumes");
    fs::create_dir(&notes).unwrap();
    for (name, place) in [("calve-template-0123", place.clone()), ("calve-template-4567", place.with_file_name("q"))] {
        let note = serde_json::json!({ "image": template["image"], "name": name, "place": place, "filled": null });
        fs::write(notes.join(name).with_extension("json"), note.to_string()).unwrap();
        fs::write(notes.join(name).with_extension("lock"), "").unwrap();
    }
    let named = ["to delete that: docker volume rm calve-template-0123\n", "hint: create it again: "];
    world.db(["start", "p"]).fails(1, &named);
    // A server whose supervisor was killed is kept, too: its data is nowhere else.
    let slot = place.ancestors().nth(2).unwrap().join("servers/s");
    fs::create_dir(&slot).unwrap();
    fs::write(slot.join("lock"), "").unwrap();
    let container = serde_json::json!({ "image": template["image"], "name": "calve-abc", "home": "/", "server": "s" });
    fs::write(slot.join("container.json"), container.to_string()).unwrap();
    let said = world.db(["gc"]).succeeds().stderr();
    assert!(said.contains("the container of `s` is still there: ") && said.contains("of another version"), "{said}");
    assert!(slot.join("container.json").exists());
    assert_eq!(fs::read(&document).unwrap(), before);
    assert!(place.join("data/PG_VERSION").exists());
    fs::remove_dir_all(&slot).unwrap();
    world.db(["template", "remove", "p"]).succeeds();
    create(&world, &["p", "--engine", "postgres"], "psql -Xqc 'SELECT 1'");
}

#[test]
fn a_template_that_was_damaged_is_made_again() {
    let Some(world) = World::new() else { return };
    let made =
        || create(&world, &["t", "--engine", "postgres"], "psql -Xqc 'CREATE TABLE t (a int)'")["reused"] == false;
    assert!(made());
    let data = world.home().join("db/templates/t/data");
    let damages: [fn(&Path); 2] = [
        |data| fs::remove_dir_all(data).unwrap(),
        |data| {
            fs::write(data.join("PG_VERSION"), "").unwrap();
        },
    ];
    for damage in damages {
        damage(&data);
        world.db(["pool", "t", "--size", "1"]).fails(1, &["the template `t` is damaged"]);
        assert_eq!(names(&world.home().join("db/pools")), [""; 0]);
        assert!(made());
        assert!(!made());
    }
    world.nothing_left();
}

#[test]
fn one_of_several_that_fails_keeps_no_other_from_being_done_and_told() {
    let Some(world) = World::having(Postgres) else { return };
    let _servers = ["a", "b"].map(|name| world.start(name));
    let told = |word: &str| {
        let ran = world.db([word, "a", "none", "b", "--json"]).ends().code(1);
        assert!(ran.stderr().contains("there is no server `none`"), "{}", ran.stderr());
        let servers = ran.json()["servers"].as_array().unwrap().clone();
        servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((told("reset"), told("stop")), (vec!["a".into(), "b".into()], vec!["a".into(), "b".into()]));
    world.db(["stop", "a", "--json"]).fails(1, &["there is no server `a`"]);
    world.db(["template", "remove", "none", "t"]).ends().code(1);
    assert_eq!(world.db(["template", "list"]).succeeds().stdout(), "");
    world.nothing_left();
}
