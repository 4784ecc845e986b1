//! Servers in a Docker engine that does not see this machine's files, as one in a virtual machine: their data are in volumes of the engine.

use std::path::Path;
use std::process::Command;

use calve_testkit::fingerprint;
use fs_err as fs;
use serde_json::Value;

use crate::containers::{a_standby_is_handed_over, taken_by_a_stranger};
use crate::runtimes::{Containers, kill};
use crate::world::{Engine, Mariadb, Postgres, Redis, eventually, names};

const IN_ENGINE: &str = "is in volumes of Docker's engine";
const REFUSED: &str = "hint: use podman, or a Docker engine that runs on this machine as root";

/// The containers, volumes and networks of the engine that have no label of Calve's. Other tests use the engine too.
fn unlabelled(containers: &Containers) -> Vec<String> {
    let lists = [["ps", "--all"], ["volume", "ls"], ["network", "ls"]];
    let listed = lists.map(|list| containers.ask(list.into_iter().chain(["--format", "{{json .}}"])));
    let lines = listed.iter().flat_map(|listed| listed.lines()).filter(|line| !line.contains("calve.home="));
    // Containers have names, and all else a name.
    let named = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    named.map(|it| format!("{}{}", it["Names"], it["Name"])).collect()
}

/// The volumes of this world.
fn volumes(containers: &Containers) -> Vec<String> {
    let filter = format!("label={}", containers.home_label());
    let printed = containers.ask(["volume", "ls", "--quiet", "--filter", &filter]);
    printed.lines().map(str::to_owned).collect()
}

/// Nothing but the volume of the template is left.
#[track_caller]
fn nothing_but_the_template_is_left(containers: &Containers) {
    containers.nothing_left();
    let left = volumes(containers);
    assert!(left.len() == 1 && left[0].starts_with("calve-template-"), "{left:?}");
}

#[track_caller]
fn remove_template(containers: &Containers) {
    containers.world.db(["template", "remove", "t"]).succeeds();
    assert_eq!(volumes(containers), Vec::<String>::new());
}

#[test]
fn every_engine_has_the_same_life_in_a_volume() {
    let engines =
        [Some(Postgres), Some(Mariadb), Engine::all().contains(&Engine::Mysql).then_some(Engine::Mysql), Some(Redis)];
    for containers in engines.into_iter().flatten().filter_map(Containers::apart) {
        let (world, engine) = (&containers.world, containers.engine);
        containers.template();
        let data = world.home().join("db/templates/t/data");
        let before = fingerprint(&data);
        let (a, b) = (world.start("a"), world.start("b"));
        for server in [&a, &b] {
            assert_eq!((&server["in_engine"], &server["socket"]), (&true.into(), &"".into()));
            assert_eq!((&server["url"], &server["strategy"]), (&server["tcp_url"], &"overlay".into()));
            assert_eq!(containers.rows(server), "1000");
        }
        world.query(engine, &a, engine.shrink());
        world.query(engine, &b, engine.add());
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("10", "1001"));

        world.db(["mark", "a", "m"]).succeeds();
        world.query(engine, &a, engine.add());
        world.db(["reset", "a", "--to", "m"]).succeeds();
        assert_eq!(containers.rows(&a), "10");
        let reset = world.db(["reset", "a", "--json"]).succeeds().json();
        assert_eq!(reset["servers"][0]["url"], a["url"]);
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("1000", "1001"));

        let counted = world.db(["run", "t", "--"]).args(engine.client(engine.count())).succeeds();
        assert_eq!(counted.stdout().trim(), "1000");
        assert!(world.db(["logs", "b"]).succeeds().stdout().contains("the entry point runs"));
        world.db(["stop", "--all"]).succeeds();
        nothing_but_the_template_is_left(&containers);
        before.assert_unchanged(&data);
        if matches!(engine, Mariadb | Engine::Mysql) {
            world.db(["diff", "@t", "@t"]).fails(1, &[IN_ENGINE, REFUSED]);
        }
        remove_template(&containers);
    }
}

#[test]
fn an_engine_is_left_as_it_was() {
    let Some(containers) = Containers::apart(Postgres) else { return };
    let world = &containers.world;
    let before = unlabelled(&containers);
    containers.template();
    world.start("a");
    // What is made again gets another volume, and the old one stays for the server that needs it.
    containers.create(&containers.image).arg("--rebuild").succeeds();
    world.start("b");
    let templates = || volumes(&containers).iter().filter(|name| name.starts_with("calve-template-")).count();
    assert_eq!(templates(), 2);
    world.db(["stop", "a"]).succeeds();
    eventually(|| if templates() == 1 { Ok(()) } else { Err(format!("{:?}", volumes(&containers))) });
    // An unreadable document takes no volume from running servers.
    let document = world.home().join("db/templates/t/template.json");
    let intact = fs::read(&document).unwrap();
    fs::write(&document, "{").unwrap();
    world.db(["gc"]).succeeds();
    assert_eq!(templates(), 1);
    fs::write(&document, intact).unwrap();
    world.db(["stop", "b"]).succeeds();
    nothing_but_the_template_is_left(&containers);

    // Somebody has removed it.
    containers.ask(["volume", "rm", &volumes(&containers)[0]]);
    world.start("a");
    world.db(["template", "remove", "t"]).succeeds();
    world.db(["stop", "a"]).succeeds();
    containers.nothing_left();
    eventually(|| if volumes(&containers).is_empty() { Ok(()) } else { Err(format!("{:?}", volumes(&containers))) });
    // Those that look at an image have no labels, and end.
    eventually(|| {
        let now = unlabelled(&containers);
        if now == before { Ok(()) } else { Err(format!("{now:?} instead of {before:?}")) }
    });
}

#[test]
fn volumes_end_with_their_server() {
    let Some(containers) = Containers::apart(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let words = ["start", "t", "--json", "--owner-pid", &owner.id().to_string()];
    assert_eq!(containers.rows(&world.db(words).succeeds().json()), "1000");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    nothing_but_the_template_is_left(&containers);

    world.start("a");
    world.supervisors().into_iter().for_each(kill);
    eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    assert!(volumes(&containers).len() > 1);
    world.db(["gc"]).succeeds();
    nothing_but_the_template_is_left(&containers);

    // Killed while its volumes are made, or its container.
    for wait in [0, 100, 300] {
        let start = world.db(["start", "t", "--name", "a"]).spawn();
        eventually(|| if world.supervisors().is_empty() { Err("it has not begun".into()) } else { Ok(()) });
        std::thread::sleep(std::time::Duration::from_millis(wait));
        world.supervisors().into_iter().for_each(kill);
        start.wait_with_output().unwrap();
        world.db(["gc"]).succeeds();
        nothing_but_the_template_is_left(&containers);
    }
    // The same for a reset, when there is a record.
    for wait in [0, 100, 300] {
        world.start("a");
        let reset = world.db(["reset", "a"]).spawn();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        world.supervisors().into_iter().for_each(kill);
        reset.wait_with_output().unwrap();
        world.db(["gc"]).succeeds();
        nothing_but_the_template_is_left(&containers);
    }
    remove_template(&containers);
}

#[test]
fn strategies_ports_standbys_and_what_is_refused() {
    let Some(containers) = Containers::apart(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let start = |strategy: &str| world.db(["start", "t", "--json", "--strategy", strategy]);
    assert_eq!(start("copy").succeeds().json()["strategy"], "copy");
    start("snapshot").fails(3, &["the strategy `snapshot` cannot be used", "overlays, reflinks and copies"]);
    let reflinked = start("reflink").command.output().unwrap();
    let said = String::from_utf8_lossy(&reflinked.stderr).into_owned();
    assert!(reflinked.status.success() || said.contains("the strategy `reflink` cannot be used"), "{said}");
    world.db(["stop", "--all"]).succeeds();
    // As if no overlay could be mounted.
    let notes = world.home().join("db/volumes");
    let note = notes.join(names(&notes).into_iter().find(|name| name.ends_with(".json")).unwrap());
    let mut noted: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
    noted["filled"]["no_overlay"] = "no such device".into();
    fs::write(&note, noted.to_string()).unwrap();
    let server = world.start("a");
    assert_eq!((&server["refused"][0], containers.rows(&server).as_str()), (&"overlay: no such device".into(), "1000"));
    assert!(
        server["strategy"] == "reflink" || server["refused"][1].as_str().unwrap().starts_with("reflink: "),
        "{server}"
    );
    world.db(["stop", "--all"]).succeeds();
    start("overlay").fails(3, &["the strategy `overlay` cannot be used: no such device"]);
    noted["filled"]["no_overlay"] = Value::Null;
    fs::write(&note, noted.to_string()).unwrap();

    // Nobody without the password gets in.
    let server = world.db(["start", "t", "--json", "--tcp"]).succeeds().json();
    let with = |password: &str| {
        let url = server["url"].as_str().unwrap().replace(server["password"].as_str().unwrap(), password);
        Command::new("psql").args(["-XqAtw", "-c", "SELECT 1", &url]).output().unwrap().status.success()
    };
    let password = server["password"].as_str().unwrap();
    assert_eq!((with(password), with("wrong")), (true, false));
    // Nor can anybody read it in a command line.
    let lines = names(Path::new("/proc")).into_iter().map(|pid| fs::read(format!("/proc/{pid}/cmdline")));
    let mut lines = lines.flatten().map(|line| String::from_utf8_lossy(&line).into_owned());
    assert!(!lines.any(|line| line.contains(password)));
    assert!(!containers.ask(["inspect", &containers.names()[0]]).contains(password));
    taken_by_a_stranger(world);
    let port = format!("--tcp={}", server["tcp_port"]);
    world.db(["stop", "--all"]).succeeds();
    let again = world.db(["start", "t", "--json", &port]).succeeds().json();
    assert_eq!((containers.rows(&again).as_str(), &again["tcp_port"]), ("1000", &server["tcp_port"]));
    world.db(["stop", "--all"]).succeeds();

    a_standby_is_handed_over(&containers);
    nothing_but_the_template_is_left(&containers);

    local_templates_go_on_from_it(&containers);
}

/// A local template on one from the engine, then one in the engine on that. Its settings and password stay.
fn local_templates_go_on_from_it(containers: &Containers) {
    let world = &containers.world;
    let program = world.db(["template", "list", "--json"]).succeeds().json()["templates"][0]["program"].clone();
    let program = Path::new(program.as_str().unwrap()).parent().unwrap().to_owned();
    let (own, read_only) =
        ("ALTER ROLE postgres PASSWORD 'own'", "ALTER SYSTEM SET default_transaction_read_only = on");
    let create = world.db(["template", "create", "local", "-q", "--base", "t", "--server-bin"]).arg(&program).arg("--");
    create.args(Postgres.client(own)).args(["-c", read_only]).succeeds();
    let image = ["template", "create", "back", "-q", "--base", "local", "--image", &containers.image, "--runtime"];
    world.db(image).arg(&containers.runtime).succeeds();
    for template in ["local", "back"] {
        let server = world.db(["start", template, "--json"]).succeeds().json();
        assert_eq!(containers.rows(&server), "1000");
        world.db(["stop", "--all"]).succeeds();
    }
    // Nothing is left of the password that the server had while it was filled.
    let words = ["template", "create", "again", "-q", "--base", "back", "--server-bin"];
    world.db(words).arg(&program).succeeds();
    let password = |template: &str| {
        let server = world.db(["start", template, "--json"]).succeeds().json();
        let password = "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'";
        let password = world.query(Postgres, &server, password);
        world.db(["stop", "--all"]).succeeds();
        password
    };
    let own = password("local");
    assert!(own.starts_with("SCRAM-SHA-256$"), "{own}");
    assert_eq!(password("again"), own);
    world.calve("bench").args(["db", "--template", "t", "--runs", "1"]).fails(1, &[IN_ENGINE, REFUSED]);
    world.db(["template", "create", "plain", "-q", "--base", "t", "--server-bin"]).arg(program).succeeds();
    let bench = world.calve("bench").args(["db", "--template", "plain", "--runs", "1", "--image", &containers.image]);
    bench.arg("--runtime").arg(&containers.runtime).fails(1, &[IN_ENGINE, REFUSED]);
}

#[test]
fn a_build_sets_the_password_of_the_superuser() {
    let Some(containers) = Containers::apart(Postgres) else { return };
    let world = &containers.world;
    for sql in ["ALTER ROLE postgres PASSWORD 'own'", "ALTER ROLE postgres PASSWORD NULL"] {
        let fill = format!("{}; {sql}", Postgres.fill());
        let create = containers.create(&containers.image).arg("--rebuild").arg("--");
        create.args(Postgres.client(&fill)).succeeds();
        let server = world.start("a");
        assert_eq!(containers.rows(&server), "1000");
        world.db(["stop", "a"]).succeeds();
    }
    nothing_but_the_template_is_left(&containers);
    remove_template(&containers);
}
