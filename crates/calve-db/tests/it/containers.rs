//! Servers in containers: the same life as others, and nothing of the user's other containers is touched.

use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use calve_testkit::{FileSystem, fingerprint, require_program, require_root, write_program};
use fs_err as fs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::conformance::story;
use crate::world::{Engine, Mariadb, Postgres, Run, User, World, eventually, names};

static MAKING: Mutex<()> = Mutex::new(());

/// A world whose templates are made from an image, and the podman that has it.
struct Containers {
    world: World,
    engine: Engine,
    podman: PathBuf,
    image: String,
    /// Names the process that podman without privilege keeps for its namespaces.
    pause: Option<PathBuf>,
}

impl Containers {
    fn of(engine: Engine) -> Option<Self> {
        Self::within(World::new()?, engine)
    }

    fn within(world: World, engine: Engine) -> Option<Self> {
        let (podman, image) = image_of(engine)?;
        Some(Self { world, engine, podman, image, pause: None })
    }

    fn create(&self, image: &str) -> Run {
        let run = self.world.db(["template", "create", "t", "-q", "--engine", self.engine.name(), "--image", image]);
        run.arg("--runtime").arg(&self.podman)
    }

    fn template(&self) {
        self.create(&self.image).arg("--").args(self.engine.client(self.engine.fill())).succeeds();
    }

    fn podman<'a>(&'a self, words: impl IntoIterator<Item = &'a str>) -> String {
        let line: Vec<&str> = iter::once(self.podman.to_str().unwrap()).chain(words).collect();
        let output = self.world.inside(&line).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn home_label(&self) -> String {
        format!("calve.home={}", fs::canonicalize(self.world.home()).unwrap().join("db").display())
    }

    /// The names of this world's containers.
    fn names(&self) -> Vec<String> {
        let filter = format!("label={}", self.home_label());
        let printed = self.podman(["ps", "--all", "--format", "{{.Names}}", "--filter", &filter]);
        printed.lines().map(str::to_owned).collect()
    }

    fn rows(&self, server: &Value) -> String {
        self.world.rows(self.engine, server)
    }

    #[track_caller]
    fn nothing_left(&self) {
        self.world.nothing_left();
        assert_eq!(self.names(), Vec::<String>::new());
    }
}

/// A podman with a storage of its own, and its image of an engine.
fn image_of(engine: Engine) -> Option<(PathBuf, String)> {
    if !require_root("containers of root") || !require_program("podman") {
        return None;
    }
    let _one = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = checkout.join("target/containers");
    let script = checkout.join("scripts/container-image");
    let made = Command::new(script).arg(engine.name()).arg(&directory).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let image = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    Some((fs::canonicalize(directory).unwrap().join("podman"), image))
}

impl Drop for Containers {
    fn drop(&mut self) {
        let _ = self.world.db(["stop", "--all"]).command.output();
        // What a test that failed has left.
        for name in self.names() {
            let _ = self.world.inside(&[self.podman.to_str().unwrap(), "rm", "--force", "--time=0", &name]).output();
        }
        let pause = self.pause.iter().filter_map(|file| fs::read_to_string(file).ok());
        pause.filter_map(|pid| pid.trim().parse().ok()).for_each(kill);
    }
}

fn kill(pid: u64) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn every_engine_has_the_same_life_in_a_container() {
    for engine in Engine::all() {
        let Some(containers) = Containers::of(engine) else { return };
        let world = &containers.world;
        containers.template();
        let made = world.db(["template", "list", "--json"]).succeeds().json();
        assert_eq!(made["templates"][0]["image"], containers.image.as_str());
        let data = world.home().join("db/templates/t/data");
        let before = fingerprint(&data);
        let (a, b) = (world.start("a"), world.start("b"));
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("1000", "1000"));
        assert_eq!(containers.names().len(), 2);
        world.query(engine, &a, "DELETE FROM t WHERE a > 10");
        assert_eq!((containers.rows(&a).as_str(), containers.rows(&b).as_str()), ("10", "1000"));

        // Its files belong to the user that a server of this machine would have, and to nobody of the image.
        let owner = rustix::fs::stat(&data).unwrap().st_uid;
        assert_ne!((owner, owner), (0, 999));
        assert_eq!(rustix::fs::stat(a["socket"].as_str().unwrap()).unwrap().st_uid, owner);

        let reset = world.db(["reset", "a", "--json"]).succeeds().json();
        assert_eq!(reset["servers"][0]["url"], a["url"]);
        assert_eq!(containers.rows(&a), "1000");
        world.db(["mark", "a", "m"]).succeeds();
        world.query(engine, &a, "DELETE FROM t WHERE a > 10");
        world.db(["reset", "a", "--to", "m"]).succeeds();
        assert_eq!(containers.rows(&a), "1000");

        let counted = world.db(["run", "t", "--"]).args(engine.client("SELECT count(*) FROM t")).succeeds();
        assert_eq!(counted.stdout().trim(), "1000");
        let logs = world.db(["logs", "b"]).succeeds().stdout();
        assert!(logs.contains("the entry point runs"), "{logs}");
        world.db(["stop", "--all"]).succeeds();
        containers.nothing_left();
        before.assert_unchanged(&data);
    }
}

/// The conformance suite: what servers of this machine do on these file systems.
#[test]
fn on_other_file_systems() {
    for (file_system, strategy) in
        [(FileSystem::Btrfs, "snapshot"), (FileSystem::Xfs, "reflink"), (FileSystem::Ext4, "overlay")]
    {
        let Some(world) = World::on(file_system, User::This) else { return };
        let Some(containers) = Containers::within(world, Postgres) else { return };
        containers.template();
        story(&containers.world, Postgres, strategy, None);
        assert_eq!(containers.names(), Vec::<String>::new());
    }
}

#[test]
fn twenty_containers_at_once() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let lists = [["volume", "ls", "--quiet"], ["network", "ls", "--quiet"]];
    let state = || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let home = world.home().to_string_lossy().into_owned();
        let mounts = mounts.lines().filter(|line| line.contains(&home)).map(str::to_owned).collect::<Vec<_>>();
        (containers.names(), lists.map(|list| containers.podman(list)), mounts)
    };
    let before = state();
    let starts: Vec<_> =
        (0..20).map(|number| world.db(["start", "t", "--json", "--name", &format!("s{number}")]).spawn()).collect();
    for (number, start) in starts.into_iter().enumerate() {
        let output = start.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let server: Value = serde_json::from_slice(&output.stdout).unwrap();
        world.query(Postgres, &server, &format!("DELETE FROM t WHERE a > {number}"));
        assert_eq!(containers.rows(&server), number.to_string());
    }
    assert_eq!(containers.names().len(), 20);
    world.db(["stop", "--all"]).succeeds();
    containers.nothing_left();
    assert_eq!(state(), before);
}

/// Each way round: the data directory says whether they fit.
#[test]
fn templates_of_an_image_and_of_a_local_server_are_interchangeable() {
    let Some(containers) = Containers::of(Postgres) else { return };
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
    world.db(image).arg(&containers.podman).succeeds();
    world.db(["template", "create", "same", "-q", "--base", "t"]).succeeds();
    for (template, in_container) in [("local", 0), ("back", 1), ("same", 1)] {
        let server = world.db(["start", template, "--json"]).succeeds().json();
        assert_eq!((containers.rows(&server).as_str(), containers.names().len()), ("1000", in_container));
        world.db(["stop", "--all"]).succeeds();
    }
    // A data directory of another version is refused.
    let old = world.path().join("old");
    crate::world::data_of(Postgres, &old);
    fs::write(old.join("PG_VERSION"), "12\n").unwrap();
    containers.create(&containers.image).arg("--rebuild").arg("--from").arg(&old).fails(1, &["made by PostgreSQL 12"]);
    containers.nothing_left();
}

#[test]
fn a_container_ends_with_the_owner_of_its_server() {
    let Some(containers) = Containers::of(Postgres) else { return };
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

#[test]
fn what_a_killed_supervisor_leaves_goes_with_the_next_command_and_nothing_else_does() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    world.start("a");
    let ours = containers.names();
    // Somebody who knows all labels of ours.
    let home = containers.home_label();
    let stranger = [
        "run",
        "--detach",
        "--network=none",
        "--image-volume=ignore",
        "--label",
        &home,
        "--label",
        "calve.server=a",
        "--entrypoint=sh",
    ];
    let stranger =
        containers.podman(stranger.into_iter().chain([containers.image.as_str(), "-c", "cat /dev/zero > /dev/null"]));
    for supervisor in world.supervisors() {
        kill(supervisor);
    }
    eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    assert!(containers.names().contains(&ours[0]));
    world.db(["gc"]).succeeds();
    let left = containers.podman(["ps", "--quiet", "--no-trunc", "--filter", &format!("label={home}")]);
    assert_eq!(left, stranger);
    containers.podman(["rm", "--force", "--time=0", &stranger]);
    containers.nothing_left();
}

/// Podman forgets a container of which it was killed while it made it; its processes stay.
#[test]
fn a_supervisor_that_is_killed_while_its_container_is_made_leaves_nothing() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    let note = world.home().join("db/servers/a/container.json");
    for _ in 0..5 {
        let start = world.db(["start", "t", "--name", "a"]).spawn();
        let mut name = String::new();
        eventually(|| {
            let noted = fs::read(&note).map_err(|error| error.to_string())?;
            let noted: Value = serde_json::from_slice(&noted).map_err(|error| error.to_string())?;
            name = noted["name"].as_str().unwrap().to_owned();
            if monitors(&name).is_empty() { Err("podman makes no container".into()) } else { Ok(()) }
        });
        world.supervisors().into_iter().for_each(kill);
        start.wait_with_output().unwrap();
        world.db(["gc"]).succeeds();
        eventually(|| {
            let left = monitors(&name);
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
        containers.nothing_left();
    }
}

/// The processes that podman leaves with a container.
fn monitors(name: &str) -> Vec<String> {
    let lines = names(Path::new("/proc")).into_iter().map(|pid| fs::read(format!("/proc/{pid}/cmdline")));
    let lines = lines.flatten().map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains("conmon ") && line.contains(name)).collect()
}

#[test]
fn a_place_stays_for_as_long_as_its_container_cannot_be_removed() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    let podman = world.path().join("podman");
    let failing = world.path().join("failing");
    let script =
        format!("#!/bin/sh\n[ ! -e {} ] || exit 125\nexec {} \"$@\"\n", failing.display(), containers.podman.display());
    write_program(&podman, &script);
    let runtime = ["template", "create", "t", "-q", "--engine", "postgres", "--image", &containers.image, "--runtime"];
    world.db(runtime).arg(&podman).succeeds();
    world.start("a");
    fs::write(&failing, "").unwrap();
    for supervisor in world.supervisors() {
        kill(supervisor);
    }
    eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    let told = world.db(["gc"]).succeeds().stderr();
    assert!(told.contains("the container of `a` is still there"), "{told}");
    assert_eq!(containers.names().len(), 1);
    fs::remove_file(&failing).unwrap();
    world.db(["gc"]).succeeds();
    containers.nothing_left();
}

#[test]
fn a_container_that_is_killed_is_told_and_leaves_nothing() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    world.start("a");
    containers.podman(["kill", "--signal=KILL", &containers.names()[0]]);
    eventually(|| if world.processes().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    world.db(["url", "a"]).fails(1, &["`a` ended by itself (signal 9)"]);
    containers.nothing_left();

    // The runtime alone, which leaves its container.
    let pid = world.start("a")["pid"].as_u64().unwrap();
    kill(pid);
    eventually(|| if world.supervisors().is_empty() { Ok(()) } else { Err("it is still there".into()) });
    containers.nothing_left();
}

#[test]
fn standbys_ports_and_a_new_image_of_the_same_name() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers.template();
    world.db(["pool", "t", "-q", "--size", "1"]).succeeds();
    let server = world.start("a");
    assert_eq!((&server["standby"], containers.rows(&server).as_str()), (&true.into(), "1000"));
    world.query(Postgres, &server, "DELETE FROM t");
    world.db(["reset", "a"]).succeeds();
    assert_eq!(containers.rows(&server), "1000");
    world.db(["pool", "t", "-q", "--size", "0"]).succeeds();
    world.db(["stop", "--all"]).succeeds();
    containers.nothing_left();

    let server = world.db(["start", "t", "--json", "--tcp"]).succeeds().json();
    let url = server["tcp_url"].as_str().unwrap();
    let asked = Command::new("psql").args(["-XqAt", "-c", "SELECT count(*) FROM t", url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout).trim(), "1000", "{asked:?}");
    world.db(["stop", "--all"]).succeeds();

    // The name comes to mean another image: the template is made again, and not before that.
    let name = format!("localhost/calve-test-moving:{}", std::process::id());
    containers.podman(["tag", &containers.image, &name]);
    let reused = || containers.create(&name).arg("--json").succeeds().json()["reused"].clone();
    assert_eq!((reused(), reused()), (false.into(), true.into()));
    let made = containers.podman(["create", "--network=none", "--image-volume=ignore", &containers.image]);
    containers.podman(["commit", "--quiet", &made, &name]);
    containers.podman(["rm", &made]);
    assert_eq!((reused(), reused()), (false.into(), true.into()));
    containers.podman(["rmi", &name]);
    containers.nothing_left();
}

#[test]
fn no_runtime_and_no_fitting_image() {
    let Some(containers) = Containers::of(Mariadb) else { return };
    let Some(postgres) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    containers
        .create("localhost/nothing:1")
        .fails(1, &["there is no image `localhost/nothing:1`", "pull it, or name one that is here: ", "podman pull"]);
    containers
        .create(&postgres.image)
        .fails(1, &["has no `mariadbd`", "hint: name an image of that engine with --image"]);
    let create = |runtime: &str| {
        let words = ["template", "create", "t", "-q", "--engine", "mariadb", "--image", &containers.image];
        world.db(words).args(["--runtime", runtime])
    };
    create("no-such-podman")
        .fails(1, &["cannot find `no-such-podman`", "hint: install podman, or name its program with --runtime"]);
    create("true").fails(1, &["is not podman"]);
    let broken = world.path().join("broken");
    write_program(
        &broken,
        "#!/bin/sh\n[ \"$1\" != --version ] || { echo podman version 4; exit; }\necho no such socket >&2\nexit 125\n",
    );
    create(broken.to_str().unwrap())
        .fails(1, &["failed\n  no such socket", "hint: check that it works without Calve: ", "broken info"]);
    // A program that is no server of a supported version.
    let words = ["template", "create", "t", "--engine", "mysql", "--image", &containers.image, "--runtime"];
    world.db(words).arg(&containers.podman).fails(1, &["has no `mysqld`"]);
    containers.nothing_left();
}

#[test]
fn an_image_that_was_removed() {
    let Some(containers) = Containers::of(Postgres) else { return };
    let world = &containers.world;
    let image = format!("localhost/calve-test-gone:{}", std::process::id());
    let made = containers.podman(["create", "--network=none", "--image-volume=ignore", &containers.image]);
    containers.podman(["commit", "--quiet", &made, &image]);
    containers.podman(["rm", &made]);
    containers.create(&image).succeeds();
    containers.podman(["rmi", &image]);
    world.db(["start", "t"]).fails(
        1,
        &[&format!("there is no image `{image}`"), "hint: pull it, or name one that is here: ", "podman pull"],
    );
    containers.nothing_left();
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
    Some(Containers { world, engine, podman: own, image, pause })
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

    fs::write(world.path().join("ids"), "").unwrap();
    containers.create(&containers.image).arg("--rebuild").fails(1, &["subuid", "hint: as root, give this user subordinate ids: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER"]);
    containers.nothing_left();
}
