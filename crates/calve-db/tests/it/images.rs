//! Runtimes and images: how they are found, and errors for unsuitable ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::write_program;
use fs_err as fs;
use serde_json::Value;

use crate::runtimes::Containers;
use crate::world::{Mariadb, Postgres, User, World};

#[test]
fn no_runtime_and_no_fitting_image() {
    let Some(containers) = Containers::with_engine(Mariadb) else { return };
    let Some(postgres) = Containers::with_engine(Postgres) else { return };
    let world = &containers.world;
    containers
        .create("localhost/nothing:1")
        .fails(1, &["there is no image `localhost/nothing:1`", "pull it, or name one that is here: ", "podman pull"]);
    containers
        .create(&postgres.image)
        .fails(1, &["has no `mariadbd`", "hint: name an image of that engine for this machine"]);
    let create = |runtime: &str| {
        let words = ["template", "create", "t", "-q", "--engine", "mariadb", "--image", &containers.image];
        world.db(words).args(["--runtime", runtime])
    };
    create("no-such-podman").fails(
        1,
        &["cannot find `no-such-podman`", "hint: install podman or docker, or name its program with `--runtime`"],
    );
    create("true").fails(1, &["is neither podman nor docker"]);
    let broken = world.path().join("broken");
    write_program(
        &broken,
        "#!/bin/sh\n[ \"$1\" != --version ] || { echo podman version 4; exit; }\necho no such socket >&2\nexit 125\n",
    );
    create(broken.to_str().unwrap())
        .fails(1, &["failed\n  no such socket", "hint: check that it works without Calve: ", "broken info"]);
    let mysql = |image: &str| {
        let words = ["template", "create", "t", "--engine", "mysql", "--image", image, "--runtime"];
        world.db(words).arg(&containers.runtime)
    };
    mysql(&containers.image).fails(1, &["has no `mysqld`"]);
    // A program of that name that is MariaDB, or of a version that is not supported.
    for version in ["10.11.6-MariaDB", "5.7.44"] {
        let name = format!("localhost/calve-test-{}:{}", version.to_lowercase(), std::process::id());
        let script = format!(
            "printf '#!/bin/sh\\necho mysqld Ver {version} for Linux on x86_64\\n' >/usr/sbin/mysqld; chmod 755 /usr/sbin/mysqld"
        );
        let words = ["run", "--detach", "--network=none", "--image-volume=ignore", "--entrypoint=sh"];
        let made = containers.ask(words.into_iter().chain([containers.image.as_str(), "-c", script.as_str()]));
        containers.ask(["wait", &made]);
        containers.ask(["commit", "--quiet", &made, &name]);
        containers.ask(["rm", &made]);
        mysql(&name).fails(1, &[version, "supported: MySQL 8.0 and later"]);
        containers.ask(["rmi", &name]);
    }
    containers.nothing_left();
}

#[test]
fn the_first_runtime_that_has_the_image_is_used() {
    let Some(podman) = Containers::with_engine(Postgres) else { return };
    let Some(docker) = Containers::of_docker(World::new().unwrap(), Postgres) else { return };
    let world = &podman.world;
    let programs = world.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var("PATH").unwrap();
    let install = |name: &str, runtime: &Path| {
        // The runtime itself is found as before.
        let script = format!("#!/bin/sh\nPATH='{path}' exec '{}' \"$@\"\n", runtime.display());
        write_program(programs.join(name), script);
    };
    let create = |image: &str| {
        let words = ["template", "create", "t", "-q", "--rebuild", "--engine", "postgres", "--image", image];
        world.db(words).env("PATH", &programs)
    };
    let used = || {
        let template = fs::read(world.home().join("db/templates/t/template.json")).unwrap();
        let template: Value = serde_json::from_slice(&template).unwrap();
        let runtime = PathBuf::from(template["image"]["runtime"].as_str().unwrap());
        runtime.file_name().unwrap().to_str().unwrap().to_owned()
    };
    create(&podman.image).fails(1, &["cannot find `podman` or `docker`", "hint: install podman or docker"]);
    install("docker", &docker.runtime);
    create(&podman.image).succeeds();
    assert_eq!(used(), "docker");
    install("podman", &podman.runtime);
    create(&podman.image).succeeds();
    assert_eq!(used(), "podman");
    create(&podman.image).env("DOCKER_HOST", "unix:///the/client/has/its/own").succeeds();
    assert_eq!(used(), "docker");
    // Servers have to be descendants of their supervisor, which those of podman's service are not.
    for service in ["CONTAINER_HOST", "CONTAINER_CONNECTION"] {
        create(&podman.image).env(service, "unix:///there/is/none").succeeds();
        assert_eq!(used(), "podman");
        let start = world.db(["start", "t", "--json"]).env(service, "unix:///there/is/none");
        assert_eq!(world.query(Postgres, &start.succeeds().json(), "SELECT 1"), "1");
        world.db(["stop", "--all"]).succeeds();
    }
    // Podman is asked first, and does not have it.
    docker.ask(["tag", &docker.image, "localhost/only-dockers:1"]);
    create("localhost/only-dockers:1").succeeds();
    assert_eq!(used(), "docker");
    docker.ask(["rmi", "localhost/only-dockers:1"]);
}

#[test]
fn an_image_that_was_removed() {
    for containers in Containers::each(Postgres) {
        let world = &containers.world;
        let image = format!("localhost/calve-test-gone:{}", std::process::id());
        let made = containers.ask(["create", "--network=none", containers.no_volume(), &containers.image]);
        containers.ask(["commit", &made, &image]);
        containers.ask(["rm", &made]);
        containers.create(&image).succeeds();
        containers.ask(["rmi", &image]);
        world.db(["start", "t"]).fails(
            1,
            &[
                &format!("there is no image `{image}`"),
                "hint: pull it, or name one that is here: ",
                if containers.is_docker { "docker pull" } else { "podman pull" },
            ],
        );
        containers.nothing_left();
    }
}

#[test]
fn no_engine_of_docker_that_fits() {
    let Some(containers) = Containers::of_docker(World::new().unwrap(), Postgres) else { return };
    let world = &containers.world;
    let client = "/usr/local/docker/bin/docker";
    let create = |runtime: &str, host: &str| {
        let words = ["template", "create", "t", "-q", "--engine", "postgres", "--image", &containers.image];
        world.db(words).args(["--runtime", runtime]).env("DOCKER_HOST", host)
    };
    let nowhere = format!("unix://{}", world.path().join("none").display());
    create(client, &nowhere)
        .fails(1, &["docker` failed\n", "daemon running", "hint: check that it works without Calve: "]);
    let refused = [
        "does not share this machine's files and users",
        "hint: install the database server here (Homebrew, apt) and use no image, or use podman or a Docker engine that runs as root on this machine",
    ];
    create(client, "tcp://127.0.0.1:1").fails(1, &refused);
    // Clients of a rootless engine, of one that changes ids, of one in a virtual machine with files of its own, and of one whose files are
    // shared with a virtual machine.
    let real = containers.runtime.display();
    for script in [
        r#"case "$*" in *" info "*) echo '["name=rootless"]'; exit ;; esac"#,
        r#"case "$*" in *" info "*) echo '["name=seccomp","name=userns"]'; exit ;; esac"#,
        r#"case "$*" in *type=bind*) echo 'bind source path does not exist' >&2; exit 125 ;; esac"#,
        r#"case "$*" in *boot_id*) REAL "$@" | sed '1s/^./x/'; exit ;; esac"#,
    ] {
        let program = world.path().join("engine/docker");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let script = script.replace("REAL", &real.to_string());
        write_program(&program, format!("#!/bin/sh\n{script}\nexec {real} \"$@\"\n"));
        let words = ["template", "create", "t", "-q", "--engine", "postgres", "--image", &containers.image];
        world.db(words).arg("--runtime").arg(&program).fails(1, &refused);
        assert!(!world.home().join("db/templates/t").exists());
    }

    // A user who may not use its socket, and one who may.
    let Some(theirs) = Containers::of_docker(World::with(User::Unprivileged, None).unwrap(), Postgres) else { return };
    let socket = containers.runtime.with_file_name("engine.sock");
    rustix::fs::chmod(&socket, 0o600.into()).unwrap();
    theirs.create(&theirs.image).fails(1, &["permission denied", "hint: check that it works without Calve: "]);
    rustix::fs::chmod(&socket, 0o666.into()).unwrap();
    theirs.template();
    let server = theirs.world.start("a");
    assert_eq!(theirs.rows(&server), "1000");
    let data = server["data_directory"].as_str().unwrap();
    let owner = rustix::fs::stat(theirs.world.home()).unwrap().st_uid.to_string();
    let others = Command::new("find").arg(data).args(["!", "-user", &owner]).output().unwrap();
    assert_ne!(owner, "0");
    assert_eq!(String::from_utf8(others.stdout).unwrap(), "");
    theirs.world.db(["stop", "--all"]).succeeds();
    theirs.nothing_left();
}

#[test]
fn an_image_of_another_architecture() {
    for containers in Containers::each(Postgres) {
        let root = containers.world.path().join("root");
        fs::create_dir_all(root.join("bin")).unwrap();
        // The machine of a program in ELF.
        let mut shell = fs::read("/bin/sh").unwrap();
        shell[18] = if shell[18] == 0xb7 { 0x3e } else { 0xb7 };
        write_program(root.join("bin/sh"), &shell);
        let archive = containers.world.path().join("root.tar");
        let archived = Command::new("tar").args(["-C", root.to_str().unwrap(), "-cf"]).arg(&archive).arg(".").output();
        assert!(archived.unwrap().status.success());
        let name = format!("localhost/calve-test-other:{}", std::process::id());
        containers.import_foreign(&archive, &name);
        containers.create(&name).fails(
            1,
            &[
                &format!("the image `{name}` is for another architecture"),
                "hint: name an image of that engine for this machine",
            ],
        );
        containers.ask(["rmi", &name]);
        assert_eq!(containers.names(), Vec::<String>::new());
    }
}
