//! `--from`: data directories of other servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use calve_testkit::{fingerprint, matrix, write_program};
use fs_err as fs;

use crate::world::{Engine, Mariadb, Mysql, Postgres, Redis, World, data_of, eventually, names};

/// A stopped data directory in the world, of the user that owns everything there.
fn directory(world: &World, engine: Engine) -> PathBuf {
    let at = world.path().join("theirs");
    data_of(engine, &at);
    at
}

fn create(world: &World, engine: Engine, from: &Path) -> crate::world::Run {
    world.db(["template", "create", "new", "--engine", engine.name(), "--from"]).arg(from)
}

#[test]
fn it_is_only_read() {
    for engine in Engine::families() {
        let Some(world) = World::new() else { return };
        let theirs = directory(&world, engine);
        let before = fingerprint(&theirs);
        create(&world, engine, &theirs).succeeds();
        before.assert_unchanged(&theirs);
        let server = world.db(["start", "new", "--json"]).succeeds().json();
        assert_eq!(world.rows(engine, &server), "1000");
        world.db(["stop", "--all"]).succeeds();
    }
}

#[test]
fn what_is_no_data_directory_is_refused() {
    for engine in Engine::kinds() {
        let Some(world) = World::new() else { return };
        fs::create_dir(world.path().join("empty")).unwrap();
        create(&world, engine, Path::new("empty"))
            .fails(1, &["empty", "it is not a data directory of", "hint: name a complete data directory\n"]);
        create(&world, engine, Path::new("nowhere")).fails(1, &["nowhere"]);
        let other = if engine == Postgres { Mariadb } else { Postgres };
        let theirs = directory(&world, other);
        create(&world, engine, &theirs).fails(1, &["it is not a data directory of"]);
        world.nothing_left();
    }
}

#[test]
fn one_that_is_in_use_is_refused() {
    for engine in matrix(Engine::families()) {
        let Some(world) = World::having(engine) else { return };
        // By copy, so that the files are where they seem to be.
        let server = world.db(["start", "t", "--strategy", "copy", "--json", "--name", "a"]).succeeds().json();
        let theirs = PathBuf::from(server["data_directory"].as_str().unwrap());
        let hint =
            "hint: mark it, and create the template from the mark: calve db mark a NAME, then `--from-mark a:NAME`";
        let said = ["cannot be made a template", "it is in use by the server `a`\n", hint];
        create(&world, engine, &theirs).fails(1, &said);
        // One that this CALVE_HOME does not know.
        let Some(other) = World::new() else { return };
        let pid = format!("it is in use by the process {}\n", server["pid"]);
        create(&other, engine, &theirs).fails(1, &["cannot be made a template", &pid]);
        world.stop_all();
    }
}

#[test]
fn one_that_was_not_shut_down_is_refused() {
    for engine in Engine::kinds_of_sql() {
        let Some(world) = World::having(engine) else { return };
        let server = world.db(["start", "t", "--name", "a", "--strategy", "copy", "--json"]).succeeds().json();
        if engine != Postgres {
            // Else its log is written some time later.
            world.query(engine, &server, "SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        }
        world.query(engine, &server, "INSERT INTO t VALUES (0)");
        let crashed = world.path().join("crashed");
        // As after a crash: what a running server has on the disk.
        let copied = Command::new("cp")
            .arg("-a")
            .arg(server["data_directory"].as_str().unwrap())
            .arg(&crashed)
            .output()
            .unwrap();
        assert!(copied.status.success());
        world.stop("a");
        let _ = fs::remove_file(crashed.join("postmaster.pid"));
        create(&world, engine, &crashed)
            .fails(1, &["not shut down cleanly", "hint: shut its server down cleanly, then try again\n"]);
        world.nothing_left();
    }
}

#[test]
fn another_version_is_refused() {
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Postgres);
    fs::write(theirs.join("PG_VERSION"), "9.6\n").unwrap();
    let hint = "hint: install that version of the server; name its directory with `--server-bin`, or an image with `--image`\n";
    let said = create(&world, Postgres, &theirs).fails(1, &["was made by PostgreSQL 9.6", hint]).stderr();
    // The advice fits the failure.
    assert!(!said.contains("shut") && !said.contains("clean"), "{said}");
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Mariadb);
    for name in ["mariadb_upgrade_info", "mysql_upgrade_info"] {
        fs::write(theirs.join(name), "10.4.12-MariaDB").unwrap();
    }
    create(&world, Mariadb, &theirs).fails(1, &["made by 10.4.12-MariaDB"]);
}

#[test]
fn mysql_and_mariadb_do_not_take_each_other_s() {
    if !Engine::all().contains(&Mysql) {
        return;
    }
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Mariadb);
    create(&world, Mysql, &theirs).fails(1, &["made by MariaDB", "the server is MySQL"]);
    fs::remove_dir_all(&theirs).unwrap();
    let theirs = directory(&world, Mysql);
    create(&world, Mariadb, &theirs).fails(1, &["made by MySQL 8", "the server is MariaDB"]);

    // What Debian calls `mysqld` beside MariaDB is MariaDB's.
    let bin = world.path().join("bin");
    fs::create_dir(&bin).unwrap();
    write_program(bin.join("mysqld"), "#!/bin/sh\necho 'mysqld  Ver 10.11.6-MariaDB'\n");
    let words = ["is mysqld  Ver 10.11.6-MariaDB", "MySQL 8.0 and later"];
    create(&world, Mysql, &theirs).arg("--server-bin").arg(&bin).fails(1, &words);

    // The version of the last server is in the first page of the data dictionary.
    let dictionary = theirs.join("mysql.ibd");
    let whole = fs::read(&dictionary).unwrap();
    for (version, says) in [(80_034_u32, "made by MySQL 8.0.34"), (90_799, "made by MySQL 9.7.99")] {
        let mut other = whole.clone();
        other[8..12].copy_from_slice(&version.to_be_bytes());
        fs::write(&dictionary, other).unwrap();
        create(&world, Mysql, &theirs).fails(1, &[says]);
    }
    fs::remove_file(&dictionary).unwrap();
    create(&world, Mysql, &theirs).fails(1, &["made by MySQL before 8.0"]);
    world.nothing_left();
}

#[test]
fn each_mysql_server_has_an_identity_of_its_own_and_no_persisted_settings() {
    if !Engine::all().contains(&Mysql) {
        return;
    }
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Mysql);
    let persisted = r#"{"Version": 2, "mysql_dynamic_variables": {"event_scheduler": {"Value": "ON", "Metadata": {"Host": "localhost", "User": "root", "Timestamp": 1}}}}"#;
    fs::write(theirs.join("mysqld-auto.cnf"), persisted).unwrap();
    fs::write(theirs.join("auto.cnf"), "[auto]\nserver-uuid=16ec5f0e-e6f1-11f1-94c3-02fc00000001\n").unwrap();
    let ran = create(&world, Mysql, &theirs).succeeds();
    assert!(ran.stderr().contains("mysqld-auto.cnf"), "{}", ran.stderr());
    let [one, other] = ["a", "b"].map(|name| world.db(["start", "new", "--json", "--name", name]).succeeds().json());
    let ask = |sql: &str| world.query(Mysql, &one, sql);
    let settings = "SELECT CONCAT_WS(' ', @@event_scheduler, @@log_bin, @@secure_file_priv)";
    assert_eq!(ask(settings), "OFF 0 NULL");
    let plugins =
        "SELECT COUNT(*) FROM information_schema.plugins WHERE plugin_name = 'mysqlx' AND plugin_status = 'ACTIVE'";
    assert_eq!(ask(plugins), "0");
    let uuids = [&one, &other].map(|server| world.query(Mysql, server, "SELECT @@server_uuid"));
    assert_ne!(uuids[0], uuids[1]);
    assert!(!uuids.iter().any(|uuid| uuid.starts_with("16ec5f0e")), "{uuids:?}");
    world.db(["stop", "--all"]).succeeds();
}

/// A server on the clone would write where the link leads: into the source.
#[test]
fn what_leads_out_is_refused_and_nothing_is_written() {
    for (engine, parts) in [
        (Postgres, ["pg_wal", "pg_stat_tmp", "pg_xact"]),
        (Mariadb, ["test", "ibdata1", "mysql"]),
        (Mysql, ["test", "ibdata1", "mysql.ibd"]),
    ] {
        if !Engine::all().contains(&engine) {
            continue;
        }
        let Some(world) = World::new() else { return };
        let theirs = directory(&world, engine);
        let (elsewhere, part) = (world.path().join("elsewhere"), |name: &str| theirs.join(name));
        fs::create_dir(&elsewhere).unwrap();
        for name in parts {
            fs::rename(part(name), elsewhere.join(name)).unwrap();
            for target in [elsewhere.join(name), Path::new("../elsewhere").join(name)] {
                std::os::unix::fs::symlink(&target, part(name)).unwrap();
                let before = [fingerprint(&theirs), fingerprint(&elsewhere)];
                let ran = create(&world, engine, &theirs).fails(
                    1,
                    &[
                        "a symlink leads out of it",
                        name,
                        "elsewhere",
                        "hint: copy the data to one directory without links that lead out, and name that\n",
                    ],
                );
                before[0].assert_unchanged(&theirs);
                before[1].assert_unchanged(&elsewhere);
                assert!(!ran.stderr().contains("in the template"), "{}", ran.stderr());
                // No server was started: there is no log of one.
                assert_eq!(names(&world.home().join("db/logs")), [""; 0]);
                fs::remove_file(part(name)).unwrap();
            }
            fs::rename(elsewhere.join(name), part(name)).unwrap();
        }
        world.nothing_left();
        // Whole again, it can be taken over, as those of the others can.
        if engine == Postgres {
            create(&world, engine, &theirs).succeeds();
        }
    }
}

#[test]
fn tables_outside_are_refused() {
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Postgres);
    std::os::unix::fs::symlink("/somewhere", theirs.join("pg_tblspc/16384")).unwrap();
    create(&world, Postgres, &theirs).fails(1, &["tablespace outside", "16384"]);
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Mariadb);
    fs::write(theirs.join("test/far.isl"), "/elsewhere/far.ibd").unwrap();
    create(&world, Mariadb, &theirs).fails(1, &["a table outside", "far.isl", "/elsewhere/far.ibd"]);
}

/// A FIFO in the place of a file is not waited for.
#[test]
fn what_is_no_file_is_refused() {
    for (engine, name) in [(Postgres, "postmaster.pid"), (Postgres, "postgresql.auto.conf"), (Mariadb, "ib_logfile0")] {
        let Some(world) = World::new() else { return };
        let theirs = directory(&world, engine);
        let _ = fs::remove_file(theirs.join(name));
        assert!(Command::new("mkfifo").arg("-m600").arg(theirs.join(name)).status().unwrap().success());
        create(&world, engine, &theirs).fails(1, &[name, "not a regular file"]);
        world.nothing_runs();
    }
}

#[test]
fn what_could_call_home_is_taken_out_and_told() {
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Postgres);
    let conf = "work_mem = '7MB'\narchive_mode = 'on'\narchive_command = 'touch /tmp/calve-test-called-home'\n\
        primary_conninfo = 'host=example.invalid'\n";
    fs::write(theirs.join("postgresql.auto.conf"), conf).unwrap();
    fs::write(theirs.join("standby.signal"), "").unwrap();
    let ran = create(&world, Postgres, &theirs).succeeds();
    for word in ["standby.signal", "archive_command = 'touch /tmp/calve", "archive_mode", "primary_conninfo"] {
        assert!(ran.stderr().contains(word), "{word}: {}", ran.stderr());
    }
    let server = world.db(["start", "new", "--json"]).succeeds().json();
    assert_eq!(world.query(Postgres, &server, "SELECT pg_is_in_recovery()"), "f");
    assert_eq!(world.query(Postgres, &server, "SHOW archive_mode"), "off");
    // Settings that contact no other machine stay.
    assert_eq!(world.query(Postgres, &server, "SHOW work_mem"), "7MB");
    world.db(["stop", "--all"]).succeeds();

    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Mariadb);
    fs::write(theirs.join("master.info"), "33\nlog\n4\nexample.invalid\n").unwrap();
    fs::write(theirs.join("relay-log.info"), "5\n").unwrap();
    let ran = create(&world, Mariadb, &theirs).succeeds();
    assert!(ran.stderr().contains("master.info") && ran.stderr().contains("relay-log.info"), "{}", ran.stderr());
    let server = world.db(["start", "new", "--json"]).succeeds().json();
    assert_eq!(world.query(Mariadb, &server, "SHOW ALL SLAVES STATUS"), "");
    assert_eq!(world.query(Mariadb, &server, "SELECT @@event_scheduler"), "OFF");
    world.db(["stop", "--all"]).succeeds();
}

#[test]
fn subscriptions_are_disabled_and_told() {
    let Some(world) = World::having(Postgres) else { return };
    // A data directory whose subscription is enabled, as a template's server would never start its worker.
    let sql = "CREATE SUBSCRIPTION news CONNECTION 'host=example.invalid' PUBLICATION p WITH (connect = false); \
        UPDATE pg_subscription SET subenabled = true";
    let words = ["template", "create", "sub", "--base", "t", "--", "psql", "-Xq", "-c", sql];
    world.db(words).succeeds();
    let data = world.home().join("db/templates/sub/data");
    let ran = world.db(["template", "create", "again", "--engine", "postgres", "--from"]).arg(data).succeeds();
    assert!(ran.stderr().contains("disabled the subscription `news`"), "{}", ran.stderr());
    let server = world.db(["start", "again", "--json"]).succeeds().json();
    assert_eq!(world.query(Postgres, &server, "SELECT subenabled FROM pg_subscription"), "f");
    world.db(["stop", "--all"]).succeeds();
}

#[test]
fn a_data_directory_without_the_superuser_says_how_to_make_it() {
    let Some(world) = World::having(Postgres) else { return };
    let make = |name: &str, statements: &[&str]| {
        let words = ["template", "create", name, "-q", "--base", "t", "--", "psql", "-Xq"];
        world.db(words).args(statements.iter().flat_map(|sql| ["-c", sql])).succeeds();
        world.home().join("db/templates").join(name).join("data")
    };
    // Made for another user.
    let theirs = world.path().join("theirs");
    let init = format!("$(ls -d /usr/lib/postgresql/*/bin | tail -1)/initdb -U owner -A trust -D {}", theirs.display());
    fs::create_dir(&theirs).unwrap();
    let script =
        format!("chown postgres {0}; exec setpriv --reuid=postgres --clear-groups sh -c '{init}'", theirs.display());
    if calve_testkit::is_root() {
        let made = Command::new("sh").args(["-ec", &script]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        let ran = create(&world, Postgres, &theirs).fails(
            1,
            &[
                "cannot be made a template: it has no superuser `postgres`\n",
                "hint: start its server, run `createuser --superuser postgres` there, shut it down cleanly, and try again\n",
            ],
        );
        assert!(
            ran.stderr().contains(&format!("`{}` cannot be made a template", theirs.display())),
            "{}",
            ran.stderr()
        );
    }
    // A default of all sessions is no obstacle.
    let read_only = make("careful", &["ALTER SYSTEM SET default_transaction_read_only = on"]);
    create(&world, Postgres, &read_only).succeeds();
    world.nothing_runs();
}

/// Settings that were removed are reported only if the template is made.
#[test]
fn what_is_taken_out_is_told_once_the_template_is_made() {
    let Some(world) = World::new() else { return };
    let theirs = directory(&world, Postgres);
    fs::write(theirs.join("standby.signal"), "").unwrap();
    let failed = create(&world, Postgres, &theirs).args(["--", "false"]).fails(1, &["the command failed"]);
    assert!(!failed.stderr().contains("in the template: "), "{}", failed.stderr());
    let made = create(&world, Postgres, &theirs).succeeds();
    assert!(made.stderr().contains("in the template: removed `standby.signal`"), "{}", made.stderr());
}

/// Times say which files are newer, unless the copy has got new ones in any order.
#[test]
fn what_was_left_out_of_two_kinds_of_files_is_told() {
    let Some(world) = World::having(Redis) else { return };
    // By copy, so that the files are where they seem to be.
    let server = world.db(["start", "t", "--name", "a", "--strategy", "copy", "--json"]).succeeds().json();
    world.set(&server, "appendonly", "yes");
    let data = PathBuf::from(server["data_directory"].as_str().unwrap());
    eventually(|| match data.join("appendonlydir/appendonly.aof.manifest").exists() {
        true => Ok(()),
        false => Err("no append-only files".to_owned()),
    });
    world.query(Redis, &server, Redis.add());
    let theirs = world.path().join("theirs");
    assert!(Command::new("cp").arg("-a").arg(&data).arg(&theirs).status().unwrap().success());
    world.stop("a");
    let taken = |dump: &str, append_only: &str| {
        let touch = format!("touch -d '{dump}' dump.rdb; touch -d '{append_only}' appendonlydir/*");
        assert!(Command::new("sh").args(["-c", &touch]).current_dir(&theirs).status().unwrap().success());
        let ran = create(&world, Redis, &theirs).arg("--rebuild").succeeds();
        let server = world.db(["start", "new", "--json"]).succeeds().json();
        (world.rows(Redis, &server), ran.stderr())
    };
    for (dump, append_only) in [("now + 60 seconds", "now + 60 seconds"), ("now + 61 seconds", "now + 60 seconds")] {
        let (rows, said) = taken(dump, append_only);
        assert!(rows == "1001" && said.contains("left out `dump.rdb`"), "{dump}: {rows} {said}");
    }
    let (rows, said) = taken("now", "2001-01-01");
    assert!(rows == "1000" && said.contains("left out the append-only files, which are older"), "{rows} {said}");
    fs::remove_file(theirs.join("dump.rdb")).unwrap();
    let said = create(&world, Redis, &theirs).arg("--rebuild").succeeds().stderr();
    assert!(said.contains("took the data from the append-only files\n"), "{said}");
    world.db(["stop", "--all"]).succeeds();
}

#[test]
fn a_root_password_is_no_obstacle() {
    for engine in matrix([Mariadb, Mysql].into_iter().filter(|engine| Engine::all().contains(engine))) {
        let Some(world) = World::having(engine) else { return };
        let sql = "ALTER USER root@localhost IDENTIFIED BY 'secret'";
        world.db(["template", "create", "closed", "--base", "t", "--"]).args(engine.client(sql)).succeeds();
        let data = world.home().join("db/templates/closed/data");
        world.db(["template", "create", "open", "--engine", engine.name(), "--from"]).arg(data).succeeds();
        let server = world.db(["start", "open", "--json"]).succeeds().json();
        assert_eq!(world.rows(engine, &server), "1000");
        world.db(["stop", "--all"]).succeeds();
    }
}
