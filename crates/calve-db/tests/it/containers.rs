//! Servers in containers of podman and of Docker: the same life as others, and nothing of the user's other containers is touched.

use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{FileSystem, few_rounds, fingerprint, matrix, require_program, rounds, write_program};
use fs_err as fs;
use serde_json::Value;

use crate::bench;
use crate::conformance::story;
use crate::runtimes::{Containers, image_of};
use crate::world::{Engine, Mysql, Postgres, Redis, User, World, eventually, kill, names};

#[test]
fn engines_of_each_kind_have_the_same_life_in_a_container() {
    let others = Engine::families().into_iter().filter(|&engine| engine != Postgres && !few_rounds());
    for containers in Containers::each(Postgres).chain(others.filter_map(Containers::with_engine)) {
        let (world, engine) = (&containers.world, containers.engine);
        containers.template();
        let made = world.db(["template", "list", "--json"]).succeeds().json();
        assert_eq!(made["templates"][0]["image"], containers.image.as_str());
        let data = world.home().join("db/templates/t/data");
        let before = fingerprint(&data);
        let (a, b) = (world.start("a"), world.start("b"));
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("1000", "1000"));
        assert_eq!(containers.names().len(), 2);
        world.query(engine, &a, engine.shrink());
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("10", "1000"));

        // Its files belong to the user that a server of this machine would have, and to no user of the image.
        let owner = rustix::fs::stat(&data).unwrap().st_uid;
        let stranger = Command::new("find").arg(&data).args(["!", "-user", &owner.to_string()]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&stranger.stdout), "");
        // Where this user is root, a server gets an account that is not.
        let user = rustix::process::geteuid();
        assert_eq!(owner == user.as_raw(), !user.is_root());
        assert_eq!(rustix::fs::stat(a["socket"].as_str().unwrap()).unwrap().st_uid, owner);

        let reset = world.db(["reset", "a", "--json"]).succeeds().json();
        assert_eq!(reset["servers"][0]["url"], a["url"]);
        assert_eq!(containers.rows(&a), "1000");
        world.db(["mark", "a", "m"]).succeeds();
        world.query(engine, &a, engine.shrink());
        world.db(["reset", "a", "--to", "m"]).succeeds();
        assert_eq!(containers.rows(&a), "1000");

        let counted = world.db(["run", "t", "--"]).args(engine.client(engine.count())).succeeds();
        assert_eq!(counted.stdout().trim(), "1000");
        let logs = world.db(["logs", "b"]).succeeds().stdout();
        assert!(logs.contains("the entry point runs"), "{logs}");
        world.db(["stop", "--all"]).succeeds();
        containers.nothing_left();
        before.assert_unchanged(&data);
    }
}

/// The conformance suite, by the ways in which podman and Docker come to their data there.
#[test]
fn on_other_file_systems() {
    let all = [
        (FileSystem::Ext4, "overlay", false),
        (FileSystem::Xfs, "reflink", true),
        // Docker's engine does not see what a supervisor mounts.
        (FileSystem::Ext4, "copy", true),
    ];
    for (file_system, strategy, is_docker) in matrix(all) {
        let Some(world) = World::on(file_system, User::This) else { return };
        let of = if is_docker { Containers::of_docker } else { Containers::within };
        let Some(containers) = of(world, Postgres) else { continue };
        containers.template();
        story(&containers.world, Postgres, strategy, None);
        assert_eq!(containers.names(), Vec::<String>::new());
    }
}

#[test]
fn many_containers_at_once() {
    // MySQL where it is: its servers have an identity. With few rounds the engine whose image is made in any case.
    let engine = if few_rounds() { Postgres } else { *Engine::all().last().unwrap() };
    let Some(podman) = Containers::with_engine(engine) else { return };
    let docker = World::new().and_then(|world| Containers::of_docker(world, Postgres));
    for containers in iter::once(podman).chain(docker) {
        let (world, engine) = (&containers.world, containers.engine);
        // Docker's engine makes one after the other.
        let count = match few_rounds() {
            _ if containers.is_docker => 5,
            true => 4,
            false => 12,
        };
        containers.template();
        // A volume that another test's container uses is none of these.
        let lists = [&["volume", "ls", "--quiet", "--filter=dangling=true"][..], &["network", "ls", "--quiet"]];
        let state = || {
            let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
            let home = world.home().to_string_lossy().into_owned();
            let mounts = mounts.lines().filter(|line| line.contains(&home)).map(str::to_owned);
            let listed = lists.map(|list| containers.ask(list.iter().copied()));
            let listed = listed.iter().flat_map(|text| text.lines()).map(str::to_owned);
            mounts.chain(listed).chain(containers.names()).collect::<BTreeSet<_>>()
        };
        let before = state();
        let starts: Vec<_> = (0..count)
            .map(|number| world.db(["start", "t", "--json", "--name", &format!("s{number}")]).spawn())
            .collect();
        let mut identities = BTreeSet::new();
        for (number, start) in starts.into_iter().enumerate() {
            let output = start.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let server: Value = serde_json::from_slice(&output.stdout).unwrap();
            world.query(engine, &server, &format!("DELETE FROM t WHERE a > {number}"));
            assert_eq!(containers.rows(&server), number.to_string());
            if engine == Mysql {
                let identity = world.query(engine, &server, "SELECT @@server_uuid");
                assert!(identities.insert(identity.clone()), "{identity} is there twice");
            }
        }
        assert_eq!(containers.names().len(), count);
        world.db(["stop", "--all"]).succeeds();
        containers.nothing_left();
        eventually(|| {
            let left: Vec<_> = state().difference(&before).cloned().collect();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }
}

/// Each way round: the data directory says whether they fit.
#[test]
fn templates_of_an_image_and_of_a_local_server_are_interchangeable() {
    let Some(containers) = Containers::with_engine(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let local = PathBuf::from(
        &world.db(["template", "list", "--json"]).succeeds().json()["templates"][0]["program"].as_str().unwrap(),
    );
    world
        .db(["template", "create", "local", "-q", "--base", "t", "--server-bin"])
        .arg(local.parent().unwrap())
        .succeeds();
    let image = ["template", "create", "back", "-q", "--base", "local", "--image", &containers.image, "--runtime"];
    world.db(image).arg(&containers.runtime).succeeds();
    world.db(["template", "create", "same", "-q", "--base", "t"]).succeeds();
    for (template, in_container) in [("local", 0), ("back", 1), ("same", 1)] {
        let server = world.db(["start", template, "--json"]).succeeds().json();
        assert_eq!((containers.rows(&server).as_str(), containers.names().len()), ("1000", in_container));
        world.db(["stop", "--all"]).succeeds();
    }
    // A data directory of another version is refused, whether that is older or newer.
    let other = world.path().join("other");
    crate::world::data_of(Postgres, &other);
    for version in ["12", "99"] {
        fs::write(other.join("PG_VERSION"), format!("{version}\n")).unwrap();
        let create = containers.create(&containers.image).arg("--rebuild").arg("--from").arg(&other);
        create.fails(1, &[&format!("made by PostgreSQL {version}"), "or an image with `--image`"]);
    }
    containers.nothing_left();
    if few_rounds() || !Engine::all().contains(&Mysql) {
        return;
    }
    let containers = Containers::with_engine(Mysql).unwrap();
    let other = containers.world.path().join("other");
    crate::world::data_of(Mysql, &other);
    let dictionary = other.join("mysql.ibd");
    let mut pages = fs::read(&dictionary).unwrap();
    pages[8..12].copy_from_slice(&90_799_u32.to_be_bytes());
    fs::write(&dictionary, pages).unwrap();
    let create = containers.create(&containers.image).arg("--from").arg(&other);
    create.fails(1, &["made by MySQL 9.7.99", "or an image with `--image`"]);
    assert_eq!(containers.names(), Vec::<String>::new());
}

#[test]
fn a_container_ends_with_the_owner_of_its_server() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        containers.template();
        let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
        let words = ["start", "t", "--json", "--owner-pid", &owner.id().to_string()];
        let server = world.db(words).succeeds().json();
        assert_eq!(containers.rows(&server), "1000");
        owner.kill().unwrap();
        owner.wait().unwrap();
        eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        containers.nothing_left();

        // Also the one of a command.
        let mut run = world.db(["run", "t", "--", "sleep", "1000"]).spawn();
        eventually(|| if containers.names().is_empty() { Err("it has not started".into()) } else { Ok(()) });
        run.kill().unwrap();
        run.wait().unwrap();
        eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        containers.nothing_left();
    }
}

#[test]
fn what_a_killed_supervisor_leaves_goes_with_the_next_command_and_nothing_else_does() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        containers.template();
        world.start("a");
        let ours = containers.names();
        // A stranger who knows all our labels.
        let home = containers.home_label();
        let stranger = [
            "run",
            "--detach",
            "--network=none",
            containers.no_volume(),
            "--label",
            &home,
            "--label",
            "calve.server=a",
            "--entrypoint=sh",
        ];
        let stranger =
            containers.ask(stranger.into_iter().chain([containers.image.as_str(), "-c", "cat /dev/zero > /dev/null"]));
        for supervisor in world.supervisors() {
            kill(supervisor);
        }
        eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        assert!(containers.names().contains(&ours[0]));
        world.db(["gc"]).succeeds();
        let left = containers.ask(["ps", "--quiet", "--no-trunc", "--filter", &format!("label={home}")]);
        assert_eq!(left, stranger);
        containers.ask(["rm", "--force", &stranger]);
        containers.nothing_left();
    }
}

/// Podman forgets a container of which it was killed while it made it; its processes stay.
#[test]
fn a_supervisor_that_is_killed_while_its_container_is_made_leaves_nothing() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        containers.template();
        let note = world.home().join("db/servers/a/container.json");
        for _ in 0..rounds(5) {
            let start = world.db(["start", "t", "--name", "a"]).spawn();
            let mut name = String::new();
            eventually(|| {
                let noted = fs::read(&note).map_err(|error| error.to_string())?;
                let noted: Value = serde_json::from_slice(&noted).map_err(|error| error.to_string())?;
                name = noted["name"].as_str().unwrap().to_owned();
                let program = if containers.is_docker { "docker " } else { "conmon " };
                if with(program, &name).is_empty() { Err("no container is made".into()) } else { Ok(()) }
            });
            world.supervisors().into_iter().for_each(kill);
            start.wait_with_output().unwrap();
            world.db(["gc"]).succeeds();
            eventually(|| {
                let left = with("conmon ", &name);
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
            });
            containers.nothing_left();
        }
    }
}

/// The processes of a program that have to do with a container, such as the one that podman leaves with it.
fn with(program: &str, name: &str) -> Vec<String> {
    let lines = names(Path::new("/proc")).into_iter().map(|pid| fs::read(format!("/proc/{pid}/cmdline")));
    let lines = lines.flatten().map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(program) && line.contains(name)).collect()
}

/// Makes a template whose runtime fails for as long as there is a file, and returns that.
fn template_of_failing(containers: &Containers) -> PathBuf {
    let world = &containers.world;
    let (podman, failing) = (world.path().join("podman"), world.path().join("failing"));
    let runtime = containers.runtime.display();
    let script = format!("#!/bin/sh\n[ ! -e {} ] || exit 125\nexec {runtime} \"$@\"\n", failing.display());
    write_program(&podman, &script);
    let arguments =
        ["template", "create", "t", "-q", "--engine", "postgres", "--image", &containers.image, "--runtime"];
    world.db(arguments).arg(&podman).succeeds();
    failing
}

#[test]
fn a_place_stays_for_as_long_as_its_container_cannot_be_removed() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        let failing = template_of_failing(&containers);
        world.start("a");
        let b = world.start("b");
        fs::write(&failing, "").unwrap();
        world.db(["stop", "a"]).fails(1, &["podman"]);
        eventually(|| if world.supervisors().len() == 1 { Ok(()) } else { Err("it is still there".into()) });
        fs::remove_file(&failing).unwrap();
        world.db(["gc"]).succeeds();
        assert_eq!(containers.names().len(), 1);
        assert_eq!(world.query(Postgres, &b, "SELECT 7").trim(), "7");

        // Also when its supervisor was killed.
        fs::write(&failing, "").unwrap();
        world.supervisors().into_iter().for_each(kill);
        eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        let told = world.db(["gc"]).succeeds().stderr();
        assert!(told.contains("the container of `b` is still there"), "{told}");
        assert_eq!(containers.names().len(), 1);
        fs::remove_file(&failing).unwrap();
        world.db(["gc"]).succeeds();
        containers.nothing_left();
    }
}

#[test]
fn a_container_that_is_killed_is_told_and_leaves_nothing() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        containers.template();
        world.start("a");
        containers.ask(["kill", "--signal=KILL", &containers.names()[0]]);
        eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        world.db(["url", "a"]).fails(1, &["`a` ended by itself (signal 9)"]);
        containers.nothing_left();

        // The runtime alone, which leaves its container.
        let pid = world.start("a")["pid"].as_u64().unwrap();
        kill(pid);
        eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
        containers.nothing_left();
    }
}

#[test]
fn a_container_that_is_killed_for_its_memory_is_told_and_leaves_nothing() {
    let Some(containers) = World::new().and_then(|world| Containers::of_docker(world, Redis)) else { return };
    let world = &containers.world;
    containers.template();
    let server = world.start("a");
    containers.ask(["update", "--memory=32m", "--memory-swap=32m", &containers.names()[0]]);
    let much = "for i = 1, 64 do redis.call('SET', i, string.rep('x', 1048576)) end";
    let cut_off = world.client(Redis, &server, much).output().unwrap();
    assert!(!cut_off.status.success(), "{cut_off:?}");
    eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    world.db(["url", "a"]).fails(1, &["`a` ended by itself (signal 9)"]);
    containers.nothing_left();
}

/// A pool's server is handed over, and can be reset.
pub(crate) fn a_standby_is_handed_over(containers: &Containers) {
    let world = &containers.world;
    world.db(["pool", "t", "-q", "--size", "1"]).succeeds();
    let server = world.start("a");
    assert_eq!((&server["standby"], containers.rows(&server).as_str()), (&true.into(), "1000"));
    world.query(Postgres, &server, "DELETE FROM t");
    world.db(["reset", "a"]).succeeds();
    assert_eq!(containers.rows(&server), "1000");
    world.db(["pool", "t", "-q", "--size", "0"]).succeeds();
    world.db(["stop", "--all"]).succeeds();
}

/// No server gets a port on which another program listens.
pub(crate) fn taken_by_a_stranger(world: &World) {
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = format!("--tcp={}", stranger.local_addr().unwrap().port());
    world.db(["start", "t", &port]).fails(1, &["is taken", "hint: choose another port"]);
}

#[test]
fn standbys_ports_and_a_new_image_of_the_same_name() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        containers.template();
        a_standby_is_handed_over(&containers);
        containers.nothing_left();

        let server = world.db(["start", "t", "--json", "--tcp"]).succeeds().json();
        let url = server["tcp_url"].as_str().unwrap();
        let asked = Command::new("psql").args(["-XqAt", "-c", "SELECT count(*) FROM t", url]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&asked.stdout).trim(), "1000", "{asked:?}");
        let port = format!("--tcp={}", server["tcp_port"]);
        world.db(["start", "t", &port]).fails(1, &["is taken", "hint: choose another port"]);
        taken_by_a_stranger(world);
        world.db(["stop", "--all"]).succeeds();
        containers.nothing_left();

        // The name comes to mean another image: the template is made again, and not before that.
        let name = format!("localhost/calve-test-moving:{}", std::process::id());
        containers.ask(["tag", &containers.image, &name]);
        let reused = || containers.create(&name).arg("--json").succeeds().json()["reused"].clone();
        assert_eq!((reused(), reused()), (false.into(), true.into()));
        let made = containers.ask(["create", "--network=none", containers.no_volume(), &containers.image]);
        containers.ask(["commit", &made, &name]);
        containers.ask(["rm", &made]);
        assert_eq!((reused(), reused()), (false.into(), true.into()));
        containers.ask(["rmi", &name]);
        assert_eq!(containers.names(), Vec::<String>::new());
    }
}

#[test]
fn a_path_with_a_colon_cannot_be_bound() {
    for containers in Containers::each(Postgres) {
        let home = containers.world.path().join("a:b");
        fs::create_dir(&home).unwrap();
        let said =
            ["cannot be mounted into a container", "because of the colon", "hint: set CALVE_HOME to a directory "];
        containers.create(&containers.image).env("CALVE_HOME", &home).fails(1, &said);
        assert_eq!((names(&home.join("db/servers")), containers.names()), (vec![".lock".to_owned()], vec![]));
    }
}

#[test]
fn no_health_check_of_an_image_runs() {
    for containers in Containers::each(Postgres) {
        let context = containers.world.path().join("context");
        fs::create_dir(&context).unwrap();
        let recipe = format!("FROM {}\nHEALTHCHECK --interval=1s CMD /bin/false\n", containers.image);
        fs::write(context.join("Dockerfile"), recipe).unwrap();
        let name = format!("localhost/calve-test-health:{}", std::process::id());
        let format: &[&str] = if containers.is_docker { &[] } else { &["--format", "docker"] };
        let words = ["build", "--quiet", "--tag", &name].into_iter().chain(format.iter().copied());
        containers.ask(words.chain([context.to_str().unwrap()]));
        containers.create(&name).succeeds();
        containers.world.start("a");
        let told = containers.ask(["inspect", "--format", "{{json .Config.Healthcheck}}", &containers.names()[0]]);
        assert!(told == "null" || told.starts_with(r#"{"Test":["NONE"]"#), "{told}");
        containers.world.stop("a");
        containers.ask(["rmi", &name]);
        containers.nothing_left();
    }
}

/// Runs what follows as nobody, who has the subordinate ids of the file `$0`.
const AS_NOBODY: &str = r#"mount --bind "$0" /etc/subuid
mount --bind "$0" /etc/subgid
if [ -d /sys/fs/cgroup/unified ]; then umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; fi
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@""#;

/// Makes the program `podman` in the world of those who then run all commands as nobody.
fn rootless(engine: Engine) -> Option<Containers> {
    let (podman, image) = image_of(engine)?;
    let world = World::new()?;
    let path = world.path().to_path_buf();
    for name in ["home", "user", "user/run"] {
        fs::create_dir_all(path.join(name)).unwrap();
        rustix::fs::chown(path.join(name), Some(rustix::fs::Uid::from_raw(65534)), None).unwrap();
    }
    rustix::fs::chmod(path.join("user/run"), 0o700.into()).unwrap();
    let conf = podman.with_file_name("containers.conf");
    fs::copy(conf, path.join("containers.conf")).unwrap();
    let (own, user) = (path.join("podman"), path.join("user"));
    let environment = "export CONTAINERS_CONF=\"$at/../containers.conf\" HOME=$at TMPDIR=$at XDG_RUNTIME_DIR=$at/run";
    write_program(&own, format!("#!/bin/sh\nat='{}'\n{environment}\nexec podman \"$@\"\n", user.display()));
    let saved = path.join("image");
    let output = Command::new(&podman).args(["save", "--output"]).arg(&saved).arg(&image).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    rustix::fs::chmod(&saved, 0o644.into()).unwrap();
    let ids = path.join("ids");
    fs::write(&ids, "nobody:200000:131072\n").unwrap();
    let world = world.within(&["unshare", "--mount", "sh", "-ec", AS_NOBODY, ids.to_str().unwrap()]);
    let load = world.inside(&[own.to_str().unwrap(), "load", "--quiet", "--input", saved.to_str().unwrap()]).output();
    assert!(load.as_ref().is_ok_and(|load| load.status.success()), "{load:?}");
    let pause = Some(user.join("run/libpod/tmp/pause.pid"));
    Some(Containers { world, engine, runtime: own, image, is_docker: false, pause })
}

#[test]
fn another_user_than_root_needs_subordinate_ids() {
    if !require_program("newuidmap") {
        return;
    }
    let Some(containers) = rootless(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let server = world.start("a");
    assert_eq!(containers.rows(&server), "1000");
    world.query(Postgres, &server, "DELETE FROM t");
    world.db(["reset", "a"]).succeeds();
    assert_eq!(containers.rows(&server), "1000");
    // Nothing belongs to anybody but this user.
    let data = server["data_directory"].as_str().unwrap();
    let others = Command::new("find").arg(data).args(["!", "-user", "65534"]).output().unwrap();
    assert_eq!(String::from_utf8(others.stdout).unwrap(), "");
    world.supervisors().into_iter().for_each(kill);
    world.db(["gc"]).succeeds();
    containers.nothing_left();
    // To carry the image takes this user a minute, so it is done once. With few rounds only root's servers are measured.
    if !few_rounds() {
        bench::are_measured(&containers);
    }

    fs::write(world.path().join("ids"), "").unwrap();
    containers.create(&containers.image).arg("--rebuild").fails(1, &["subuid", "hint: as root, give this user subordinate ids: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"]);
    containers.nothing_left();
}
