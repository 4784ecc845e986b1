//! Wrong input, and the messages about it.

use std::path::Path;

use calve_testkit::{FileSystem, matrix, require_root, write_program};
use fs_err as fs;

use crate::world::{Engine, MUCH, Mariadb, Postgres, User, World, names, ordinary};

#[test]
fn unknown_names() {
    let Some(world) = World::new() else { return };
    world.db(["start", "none"]).fails(1, &["there is no template `none`"]);
    world.db(["run", "none", "--", "true"]).fails(1, &["there is no template `none`"]);
    world.db(["template", "remove", "none"]).fails(1, &["there is no template `none`"]);
    world.db(["template", "create", "p", "--base", "none"]).fails(1, &["there is no template `none`"]);
    for command in ["stop", "reset", "url"] {
        world.db([command, "none"]).fails(1, &["there is no server `none`"]);
    }
    for name in ["../x", "a b", "", ".x"] {
        world.db(["start", name]).fails(2, &["is not a valid name"]);
        world.db(["stop", name]).fails(2, &["is not a valid name"]);
        world.db(["template", "create", name, "--engine", "postgres"]).fails(2, &["is not a valid name"]);
    }
    world.db(["template", "create", "p"]).fails(2, &["--engine"]);
    let words = ["template", "create", "p", "--engine", "postgres", "--input", "none/*.sql"];
    world.db(words).fails(2, &["no file matches"]);
    let words = ["template", "create", "x", "--engine", "postgres", "--runtime", "podman"];
    let hint = "hint: name an image of that engine for this machine\n";
    world.db(words).fails(2, &["a container runtime was named without an image", hint]);
}

/// A program in the server's place.
fn script(directory: &Path, name: &str, text: &str) {
    fs::create_dir_all(directory).unwrap();
    let path = directory.join(name);
    write_program(&path, format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn a_server_program_that_is_missing_or_unfit() {
    for (engine, program, old, new) in [
        (Engine::Postgres, "postgres", "postgres (PostgreSQL) 9.6.24", "postgres (PostgreSQL) 15.1"),
        (Engine::Mariadb, "mariadbd", "mariadbd  Ver 10.3.39-MariaDB", "mariadbd  Ver 10.11.6-MariaDB"),
    ] {
        let Some(world) = World::new() else { return };
        let bin = world.path().join("bin");
        let create = || world.db(["template", "create", "p", "--engine", engine.name(), "--server-bin"]).arg(&bin);
        fs::create_dir(&bin).unwrap();
        create().fails(1, &["cannot find", program, "looked in", "/bin`"]);
        script(&bin, program, &format!("echo '{old}'"));
        create().fails(
            1,
            &[
                "is ",
                old.rsplit_once(' ').unwrap().1,
                "supported",
                "hint: install a supported version, or name its directory with `--server-bin`\n",
            ],
        );
        // One that is of the right version and cannot make a data directory.
        script(&bin, program, &format!("echo '{new}'"));
        create().fails(1, &["cannot find"]);
        world.nothing_left();
    }
}

#[test]
fn a_server_that_crashes_at_start() {
    let Some(world) = World::having(Postgres) else { return };
    let path = world.home().join("db/templates/t/template.json");
    let bin = world.path().join("bin");
    script(&bin, "server", "echo 'cannot allocate the moon' >&2; exit 3");
    let text = fs::read_to_string(&path).unwrap();
    let mut template: serde_json::Value = serde_json::from_str(&text).unwrap();
    template["program"] = bin.join("server").to_string_lossy().into_owned().into();
    fs::write(&path, template.to_string()).unwrap();
    let started = std::time::Instant::now();
    let words = [
        "ended before it was ready (exit code 3)",
        "cannot allocate the moon",
        "hint: the lines above are the last that it wrote\n",
    ];
    world.db(["start", "t"]).fails(1, &words);
    // It is not waited for, which takes two minutes.
    assert!(started.elapsed().as_secs() < 100);
    // One that does not say anything.
    script(&bin, "server", "exit 3");
    let words = ["ended before it was ready", "hint: check that the server's program runs on this machine\n"];
    world.db(["start", "t"]).fails(1, &words);
    world.nothing_left();
    template["program"] = "/nonexistent/server".into();
    fs::write(&path, template.to_string()).unwrap();
    let words =
        ["`/nonexistent/server`, which made the template `t`, is gone: postgres", "template create t --rebuild"];
    world.db(["start", "t"]).fails(1, &words);
    world.nothing_left();
}

#[test]
fn a_template_that_is_damaged() {
    let Some(world) = World::having(Postgres) else { return };
    let data = world.home().join("db/templates/t/data");
    let file = data.join("global/pg_control");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    world.db(["start", "t"]).fails(
        1,
        &[
            "the template `t` is damaged",
            "global/pg_control",
            "hint: create it again: calve db template create t --rebuild …\n",
        ],
    );
    fs::remove_file(&file).unwrap();
    world.db(["start", "t"]).fails(1, &["the template `t` is damaged"]);
    world.nothing_left();
    fs::write(world.home().join("db/templates/t/template.json"), "{").unwrap();
    world.db(["start", "t"]).fails(1, &["the template `t` is damaged", "template.json"]);
    // It can be made again.
    world
        .db(["template", "create", "t", "--engine", "postgres"])
        .fails(1, &["the template `t` is damaged", "--rebuild"]);
    world.db(["template", "remove", "t"]).succeeds();
    world.take_over(Postgres);
    let server = world.start("a");
    assert_eq!(world.rows(Postgres, &server), "1000");
    world.stop("a");
}

#[test]
fn two_starts_with_one_name() {
    let Some(world) = World::having(Postgres) else { return };
    let starts = [0, 1].map(|_| world.db(["start", "t", "--name", "a"]).spawn());
    let ended = starts.map(|start| start.wait_with_output().unwrap());
    let well = ended.iter().filter(|output| output.status.success()).count();
    assert_eq!(well, 1);
    let refused = ended.iter().find(|output| !output.status.success()).unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(
        stderr.contains("the server `a` already exists")
            && stderr.contains("hint: choose another name, or stop it: calve db stop a\n"),
        "{stderr}"
    );
    assert_eq!(world.db(["list"]).succeeds().stdout().lines().count(), 1);
    world.stop_last("a");
}

#[test]
fn a_disk_that_is_full_while_building() {
    for engine in Engine::families() {
        // An empty data directory has 40 MB and more, that of Redis only its contents.
        let Some(volume) = calve_testkit::Volume::with_size(FileSystem::Ext4, 30 << 20) else { return };
        let Some(world) = World::new() else { return };
        let home = volume.path().join("home");
        let words = ["template", "create", "p", "--engine", engine.name()];
        let command: &[&str] = if engine.is_sql() { &[] } else { &["sh", "-c", MUCH] };
        world.db(words).env("CALVE_HOME", &home).arg("--").args(command).fails(
            1,
            &["No space left", "hint: free some space, or set CALVE_HOME to a directory on a larger file system\n"],
        );
        assert_eq!(names(&home.join("db/servers")), [".lock"]);
        assert_eq!(names(&home.join("db/templates")), [".lock-p"]);
    }
}

#[test]
fn a_disk_that_is_full_while_running() {
    let Some(volume) = calve_testkit::Volume::with_size(FileSystem::Xfs, 400 << 20) else { return };
    let Some(world) = World::with(User::This, Some(volume)) else { return };
    world.template(Postgres);
    let server = world.start("a");
    let room = rustix::fs::statvfs(world.path()).unwrap();
    let filler = fs::File::create(world.path().join("filler")).unwrap();
    rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), 0, (room.f_bavail - 512) * room.f_frsize)
        .unwrap();
    let big = "CREATE TABLE big AS SELECT repeat('x', 1000) FROM generate_series(1, 100000)";
    let output = world.client(Postgres, &server, big).output().unwrap();
    assert!(!output.status.success());
    // Nothing more can be started, which is said, and all that is there can be ended.
    world.stop_all();
    drop(filler);
    fs::remove_file(world.path().join("filler")).unwrap();
    world.start("b");
    world.stop("b");
}

#[test]
fn a_place_that_the_server_s_user_cannot_reach() {
    if !require_root("a place of root's own") {
        return;
    }
    for engine in matrix(Engine::families()) {
        let Some(world) = World::new() else { return };
        // As /root is.
        rustix::fs::chmod(world.path(), 0o700.into()).unwrap();
        world.template(engine);
        let server = world.start("a");
        assert_eq!(world.rows(engine, &server), "1000");
        world.db(["reset", "a"]).succeeds();
        assert_eq!(world.rows(engine, &server), "1000");
        world.stop_last("a");
        // A new data directory too.
        world.db(["template", "create", "p", "--engine", engine.name()]).succeeds();
        rustix::fs::chmod(world.path(), 0o755.into()).unwrap();
    }
}

#[test]
fn without_namespaces() {
    let Some(world) = World::of(ordinary(), Postgres) else { return };
    let limited = world.without_namespaces();
    let server = limited.db(["start", "t", "--name", "a", "--json"]).succeeds().json();
    assert_ne!(server["strategy"], "overlay");
    assert_eq!(limited.rows(Postgres, &server), "1000");
    limited.db(["reset", "a"]).succeeds();
    assert_eq!(limited.rows(Postgres, &server), "1000");
    limited.db(["stop", "a"]).succeeds();
    limited.nothing_left();
}

/// Another user has had the name first.
#[test]
fn a_place_for_sockets_that_cannot_be_had() {
    // Root's is in /run, where only root can make anything.
    let Some(world) = World::of(ordinary(), Postgres) else { return };
    let runtime = world.path().join("r");
    fs::create_dir(&runtime).unwrap();
    world.give(&runtime);
    let cover = "at=/tmp/calve-$(id -u); mkdir -p $at; mount --bind /usr $at; exec \"$@\"";
    let runner = ["unshare", "--user", "--mount", "--map-current-user", "--keep-caps", "sh", "-ec", cover, "sh"];
    let world = world.within(&runner);
    world.db(["start", "t"]).fails(
        1,
        &[
            "cannot keep sockets in `/tmp/calve-",
            "hint: set XDG_RUNTIME_DIR to a directory of your own with a short path, or remove what is in the way",
        ],
    );
    // The advice works.
    let ran = world.db(["run", "t", "--"]).args(Postgres.client("SELECT count(*) FROM t"));
    assert_eq!(ran.env("XDG_RUNTIME_DIR", &runtime).succeeds().stdout().trim(), "1000");
    assert_eq!(names(&runtime.join("calve")), Vec::<String>::new());
}

#[test]
fn strategies_that_are_not_there() {
    let Some(world) = World::at(FileSystem::Ext4, User::This, Postgres) else { return };
    for strategy in ["snapshot", "reflink"] {
        world
            .db(["start", "t", "--strategy", strategy])
            .fails(3, &[strategy, "hint: leave the strategy out: the best one is then taken\n"]);
    }
    world.db(["start", "t", "--strategy", "hardlink"]).ends().code(2);
    world.nothing_left();
}

/// In mount namespaces of their own: changes of the machine there are invisible elsewhere.
#[test]
fn what_belongs_to_others_and_accounts_that_are_missing() {
    if !require_root("what root alone may do to the machine's directories") {
        return;
    }
    let Some(world) = World::having(Postgres) else { return };
    let cover = "mount -t tmpfs none /run; mkdir /run/calve; chown 65534 /run/calve; exec \"$@\"";
    let world = world.within(&["unshare", "--mount", "sh", "-ec", cover, "sh"]);
    let words = ["`/run/calve", "hint: make root its owner: root keeps its sockets there\n"];
    world.db(["start", "t"]).fails(1, &words);

    let Some(world) = World::new() else { return };
    let cover = "echo root:x:0:0:::/bin/sh >passwd; mount --bind passwd /etc/passwd; exec \"$@\"";
    let world = world.within(&["unshare", "--mount", "sh", "-ec", cover, "sh"]);
    let create = ["template", "create", "p", "--engine", "postgres"];
    world.db(create).fails(1, &["hint: create one of these accounts: postgres"]);

    let Some(world) = World::of(User::Unprivileged, Postgres) else { return };
    let template = world.home().join("db/templates/t");
    rustix::fs::chmod(&template, 0o700.into()).unwrap();
    rustix::fs::chown(&template, Some(rustix::fs::Uid::ROOT), None).unwrap();
    let words = ["hint: check who owns it, or set CALVE_HOME to a directory of your own\n"];
    world.db(["start", "t"]).fails(1, &words);
}

/// They would cut the path, and say so in a line that is cut too.
#[test]
fn mariadb_and_mysql_refuse_a_path_that_they_would_cut() {
    let Some(world) = World::new() else { return };
    let long = |bytes: usize| {
        let mut home = world.path().join("long");
        while home.as_os_str().len() + 202 < bytes {
            home.push("x".repeat(200));
        }
        home.join("y".repeat(bytes - home.as_os_str().len() - 1))
    };
    let create = |home: &Path, name: &str, engine: Engine| {
        world.db(["template", "create", name, "-q", "--engine", engine.name()]).env("CALVE_HOME", home)
    };
    let hint = "hint: set CALVE_HOME to a directory with a shorter path\n";
    create(&long(700), "m", Mariadb).fails(1, &["bytes long; the server allows 460\n", hint]);
    create(&long(700), "p", Postgres).succeeds();
    // The template is built where the path is short enough. That of the server is not.
    let home = long(460 - "/db/servers/.building-m-abcdef/data".len());
    create(&home, "m", Mariadb).succeeds();
    world
        .db(["start", "m", "--name", "with-a-very-long-name"])
        .env("CALVE_HOME", &home)
        .fails(1, &["allows 460\n", hint]);
    world.nothing_runs();
}
