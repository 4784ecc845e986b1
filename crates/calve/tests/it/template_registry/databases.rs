//! `calve db template push` and `calve db template pull`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use calve_testkit::{Aspect, assert_same_except, matrix, require_program};
use serde_json::Value;

use super::server::{Answer, Asked, Server, answer};
use super::template as file_template;
use crate::program::{Calve, calve};
use crate::spot::{Spot, names};

pub(super) const POSTGRES: &str = "postgres";
pub(super) const MARIADB: &str = "mariadb";
pub(super) const REDIS: &str = "redis";

/// A registry, and homes of several machines.
pub(super) struct Machines {
    pub(super) server: Server,
    pub(super) spot: Spot,
    engine: &'static str,
}

impl Machines {
    /// One with a template `shop`, which is not pushed. `None` is a skip.
    pub(super) fn new(engine: &'static str, fill: &str) -> Option<Self> {
        Self::on(Spot::anywhere(), engine, fill)
    }

    pub(super) fn on(spot: Spot, engine: &'static str, fill: &str) -> Option<Self> {
        let programs = match engine {
            POSTGRES => ["postgres", "psql"],
            MARIADB => ["mariadbd", "mariadb"],
            _ => ["redis-server", "redis-cli"],
        };
        if !programs.iter().all(|program| require_program(program)) {
            return None;
        }
        let server = Server::new()?;
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(&*spot, 0o755.into()).unwrap();
        let machines = Self { server, spot, engine };
        machines.create(&["shop"], fill);
        Some(machines)
    }

    /// `calve db template create WORDS`, at home.
    pub(super) fn create(&self, words: &[&str], fill: &str) {
        let create = ["template", "create", "-q", "--engine", self.engine];
        self.db("home", &[&create, words, &["--"]].concat()).args(client(self.engine, fill)).succeeds();
    }

    /// `calve db WORDS`, on a machine of that name.
    pub(super) fn db(&self, home: &str, words: &[&str]) -> Calve {
        let nobody = self.spot.join("nobody");
        let command = calve(["db"].iter().chain(words)).within(&self.spot).env("CALVE_HOME", self.spot.join(home));
        command.env("HOME", &nobody).env("XDG_CONFIG_HOME", &nobody).env("XDG_RUNTIME_DIR", &nobody)
    }

    pub(super) fn push(&self) -> Calve {
        self.push_as_shop("shop")
    }

    /// Pushes another template to where `shop` was.
    pub(super) fn push_as_shop(&self, name: &str) -> Calve {
        let reference = format!("{}/shop", self.server.host);
        self.db("home", &["template", "push", "--plain-http", "--json", name, &reference])
    }

    pub(super) fn pull(&self, home: &str) -> Calve {
        self.db(home, &["template", "pull", "--plain-http", "--json", &format!("{}/shop", self.server.host)])
    }

    /// Asks a server on a clone of the template.
    #[track_caller]
    pub(super) fn ask(&self, home: &str, query: &str) -> String {
        let asked = self.db(home, &["run", "-q", "shop", "--"]).args(client(self.engine, query)).succeeds();
        asked.stdout.trim_end().to_owned()
    }

    /// The files of a template are those of one made here, and have the same owners.
    #[track_caller]
    pub(super) fn has_same_files(&self, home: &str, other: &str) {
        let [here, there] = [("home", other), (home, "shop")]
            .map(|(home, name)| self.spot.join(home).join("db/templates").join(name).join("data"));
        assert_same_except(here, there, &[Aspect::Times, Aspect::Holes]);
    }

    /// The templates on that machine, without what hidden parts there may be of others.
    #[track_caller]
    pub(super) fn templates(&self, home: &str) -> Vec<Value> {
        let listed = self.db(home, &["template", "list", "--json"]).succeeds().json();
        let servers = self.spot.join(home).join("db/servers");
        let servers = if servers.exists() { names(servers) } else { Vec::new() };
        assert!(!servers.iter().any(|name| name.starts_with(".building")), "{servers:?}");
        listed["templates"].as_array().unwrap().clone()
    }
}

/// A client of the engine that finds its server by the environment.
fn client(engine: &str, query: &str) -> Vec<String> {
    let words: &[&str] = match engine {
        POSTGRES => {
            // Each in a transaction of its own.
            let queries = query.split("; ").flat_map(|query| ["-c", query]);
            let psql = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"];
            return psql.into_iter().chain(queries).map(str::to_owned).collect();
        }
        MARIADB => &["mariadb", "-BN", "-e", query],
        _ => &["sh", "-c", "redis-cli -s \"$REDIS_SOCKET\" $0", query],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Some megabytes that hardly compress. The first one to read a row would change it otherwise.
const ROWS: &str = "CREATE TABLE t (a int, b text); \
    INSERT INTO t SELECT n, md5(n::text) || md5((-n)::text) FROM generate_series(1, 40000) n; \
    VACUUM FREEZE";

#[test]
fn a_database_is_the_same_after_a_push_and_a_pull() {
    let Some(machines) = Machines::new(POSTGRES, ROWS) else { return };
    let pushed = machines.push().succeeds().json();
    assert_eq!(pushed["sent_bytes"], pushed["image_bytes"]);
    let pulled = machines.pull("other").succeeds().json();
    let here = &machines.templates("home")[0];
    for field in ["name", "engine", "version", "key", "files", "bytes"] {
        assert_eq!(pulled[field], here[field], "{field}");
    }
    assert_eq!((&pulled["reused_bytes"], &pulled["up_to_date"]), (&0.into(), &false.into()));
    machines.has_same_files("other", "shop");
    let sum = "SELECT count(*), sum(hashtext(t::text)) FROM t";
    assert_eq!(machines.ask("other", sum), machines.ask("home", sum));
    // Neither of them again.
    assert_eq!(machines.push().succeeds().json()["sent_bytes"], 0);
    let again = machines.pull("other").succeeds().says(&["is up to date"]).json();
    assert_eq!((&again["up_to_date"], &again["fetched_bytes"]), (&true.into(), &0.into()));
    // Neither kind of template is taken for the other.
    let reference = format!("{}/shop", machines.server.host);
    file_template(&machines.spot, "other", &["pull", "--plain-http", &reference])
        .fails(1)
        .says(&["is a template of a database, not of files", "pull it with `calve db template pull`"]);
    let tree = machines.spot.join("tree");
    fs_err::create_dir(&tree).unwrap();
    fs_err::write(tree.join("file"), "text").unwrap();
    let reference = format!("{}/files", machines.server.host);
    file_template(&machines.spot, "home", &["create", "files", tree.to_str().unwrap()]).succeeds();
    file_template(&machines.spot, "home", &["push", "--plain-http", "files", &reference]).succeeds();
    machines
        .db("other", &["template", "pull", "--plain-http", &reference])
        .fails(1)
        .says(&["is a template of files, not of a database", "pull it with `calve template pull`"]);
}

/// A template belongs to one server program, also one whose image has not changed.
#[test]
fn a_program_that_moved_or_is_named_is_looked_at_again() {
    let Some(machines) = Machines::new(POSTGRES, "CREATE TABLE t AS SELECT 1 AS a") else { return };
    // No image of these files was pushed.
    fs_err::write(machines.spot.join("schema"), "1").unwrap();
    let missing = [
        "there is no template for these files: `",
        "hint: create the template, then run `calve db template push --key` with the same files in the same order\n",
    ];
    let refused = machines.pull("other").args(["--if-key", "schema"]).fails(3).says(&missing).json();
    assert_eq!(refused["remedy"], "push_database_with_key");
    machines.push().succeeds();
    machines.pull("other").succeeds();
    machines.pull("other").args(["--server-bin", "/nowhere"]).fails(1).says(&["cannot find `postgres`"]).hints();
    let document = machines.spot.join("other/db/templates/shop/template.json");
    let mut template: Value = serde_json::from_slice(&fs_err::read(&document).unwrap()).unwrap();
    let program = std::mem::replace(&mut template["program"], "/gone/postgres".into());
    fs_err::write(&document, template.to_string()).unwrap();
    assert_eq!(machines.pull("other").succeeds().json()["up_to_date"], false);
    assert_eq!(machines.ask("other", "SELECT count(*) FROM t"), "1");
    let named = Path::new(program.as_str().unwrap()).parent().unwrap();
    let again = machines.pull("other").arg("--server-bin").arg(named).succeeds().json();
    assert_eq!(again["up_to_date"], true);
}

#[test]
fn every_engine_travels() {
    let rows = "CREATE TABLE test.t (a int PRIMARY KEY); INSERT INTO test.t VALUES (1), (2), (3)";
    for (engine, fill, query, answer) in matrix([
        (REDIS, "SET greeting hello", "GET greeting", "hello"),
        (MARIADB, rows, "SELECT count(*), sum(a) FROM test.t", "3\t6"),
    ]) {
        let Some(machines) = Machines::new(engine, fill) else { continue };
        machines.push().succeeds();
        machines.pull("other").succeeds();
        assert_eq!(machines.ask("other", query), answer);
    }
}

/// A template `next` that was made of `shop`, with a few pages changed.
fn next(machines: &Machines) {
    machines.create(&["next", "--base", "shop"], "UPDATE t SET b = 'new' WHERE a IN (7, 20000, 20001)");
}

fn has_range(asked: &Asked) -> bool {
    asked.head.to_ascii_lowercase().contains("range: bytes=")
}

/// Returns true for several parts.
pub(super) fn has_ranges(asked: &Asked) -> bool {
    has_range(asked)
        && asked.head.lines().any(|line| line.to_ascii_lowercase().starts_with("range:") && line.contains(','))
}

fn torn(_: &mut String, body: &mut Vec<u8>) {
    body.truncate(body.len() / 2);
}

/// The first part says that it is another one.
fn shifted(_: &mut String, body: &mut Vec<u8>) {
    let at = body.windows(6).position(|window| window == b"bytes ").unwrap() + 6;
    let other = if body[at] == b'9' { b'8' } else { b'9' };
    body.splice(at..=at, [other]);
}

/// All parts come twice.
fn doubled(head: &mut String, body: &mut Vec<u8>) {
    let end = body.windows(4).rposition(|window| window == b"\r\n--").unwrap();
    let all = [&body[..end], b"\r\n", &body[..]].concat();
    *head = head.replace(&format!("Content-Length: {}", body.len()), &format!("Content-Length: {}", all.len()));
    *body = all;
}

#[test]
fn of_a_newer_version_only_the_changed_chunks_are_fetched() {
    let Some(machines) = Machines::new(POSTGRES, ROWS) else { return };
    let server = &machines.server;
    machines.push().succeeds();
    for home in ["other", "damaged", "single", "later", "torn", "whole"] {
        machines.pull(home).succeeds();
    }
    next(&machines);
    let image = machines.push_as_shop("next").succeeds().json()["image_bytes"].as_u64().unwrap();
    server.asked();
    let pulled = machines.pull("other").succeeds().json();
    let asked: Vec<_> = server.asked().into_iter().filter(Asked::is_blob).collect();
    let parts = asked.iter().filter(|asked| has_range(asked)).count();
    assert!(asked.iter().any(has_ranges));
    let fetched = |pulled: &Value| pulled["fetched_bytes"].as_u64().unwrap();
    assert!(fetched(&pulled) < image / 8, "{} of {image}", fetched(&pulled));
    assert!(parts < 60 && asked.len() == parts + 1, "{parts} parts in {} requests", asked.len());
    let (reused, bytes) = (pulled["reused_bytes"].as_u64().unwrap(), pulled["bytes"].as_u64().unwrap());
    assert!(reused > bytes / 10 * 8, "{reused} of {bytes}");
    machines.has_same_files("other", "next");
    assert_eq!(machines.ask("other", "SELECT count(*) FROM t WHERE b = 'new'"), "3");
    // A changed file is not reused.
    let data = machines.spot.join("damaged/db/templates/shop/data");
    for path in ["global/pg_control", "base/1/1259"] {
        let zeros = vec![0; fs_err::metadata(data.join(path)).unwrap().len() as usize];
        fs_err::write(data.join(path), zeros).unwrap();
    }
    assert!(fetched(&machines.pull("damaged").succeeds().json()) > fetched(&pulled));
    machines.has_same_files("damaged", "next");
    // A registry that has one part in an answer.
    server.rule(|asked| {
        if has_ranges(asked) { Answer::Bytes(answer("416 Range Not Satisfiable", "", b"")) } else { Answer::Pass }
    });
    server.asked();
    let single = fetched(&machines.pull("single").succeeds().json());
    assert_eq!(server.asked().iter().filter(|asked| has_ranges(asked)).count(), 1);
    assert!(single < image / 6, "{single} of {image}");
    machines.has_same_files("single", "next");
    // One that has many of them only in its first answers.
    let count = AtomicUsize::new(0);
    server.rule(move |asked| match has_ranges(asked) && count.fetch_add(1, Ordering::SeqCst) > 0 {
        true => Answer::Bytes(answer("416 Range Not Satisfiable", "", b"")),
        false => Answer::Pass,
    });
    server.asked();
    machines.pull("later").succeeds();
    assert!(server.asked().iter().filter(|asked| has_ranges(asked)).count() > 1);
    machines.has_same_files("later", "next");
    // One that tears its answers of several parts, or sends other parts.
    let count = AtomicUsize::new(0);
    server.rule(move |asked| match has_ranges(asked) {
        true => Answer::Change([torn, shifted, doubled][count.fetch_add(1, Ordering::SeqCst) % 3]),
        false => Answer::Pass,
    });
    machines.pull("torn").succeeds();
    machines.has_same_files("torn", "next");
    // A registry that has no parts.
    let refused = || Answer::Bytes(answer("416 Range Not Satisfiable", "", b""));
    server.rule(move |asked| if has_range(asked) { refused() } else { Answer::Pass });
    assert!(fetched(&machines.pull("whole").succeeds().json()) > image / 8);
    machines.has_same_files("whole", "next");
}

#[test]
fn a_pull_replaces_only_what_was_pulled_from_there() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    machines.push().succeeds();
    machines
        .pull("home")
        .fails(1)
        .says(&["was not pulled from", "hint: pull it under another name with `--name NAME`"]);
    machines.pull("home").args(["--name", "pulled"]).succeeds();
    // Two at once: one makes it, and the other one finds it.
    let both = [(); 2].map(|()| machines.pull("other").start()).map(|running| running.wait());
    both.iter().for_each(|ran| ran.ended(0));
    let made = both.iter().filter(|ran| ran.json()["up_to_date"] == false).count();
    assert_eq!((made, machines.templates("other").len()), (1, 1));
    assert_eq!(machines.ask("other", "GET greeting"), "hello");
    // One that is damaged is brought back by the command that the hint names.
    fs_err::remove_dir_all(machines.spot.join("other/db/templates/shop/data")).unwrap();
    let hint = format!("calve db template pull --plain-http --name shop {}/shop:latest", machines.server.host);
    machines.db("other", &["start", "shop"]).fails(1).says(&["is damaged", &format!("hint: pull it again: {hint}\n")]);
    let words: Vec<&str> = hint.split(' ').skip(2).collect();
    machines.db("other", &words).succeeds();
    assert_eq!(machines.ask("other", "GET greeting"), "hello");
    // So is one whose program is gone.
    let directory = machines.spot.join("other/db/templates/shop");
    rustix::fs::chmod(&directory, 0o700.into()).unwrap();
    let document = directory.join("template.json");
    let mut template: Value = serde_json::from_slice(&fs_err::read(&document).unwrap()).unwrap();
    template["program"] = "/opt/former/redis-server".into();
    fs_err::write(&document, template.to_string()).unwrap();
    let said = "hint: install that version; if its directory is another one, pull it again: \
                calve db template pull --server-bin DIR --plain-http --name shop ";
    let said = format!("{said}{}/shop:latest\n", machines.server.host);
    machines.db("other", &["start", "shop"]).fails(1).says(&["is gone: ", &said]);
    machines.db("other", &words).succeeds();
    assert_eq!(machines.ask("other", "GET greeting"), "hello");
}

/// Holds the first of these requests until the test lets it go on.
pub(super) fn hold_first(server: &Server, is_one: fn(&Asked) -> bool) -> (mpsc::Receiver<()>, mpsc::Sender<()>) {
    let ((reach, reached), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let (reach, goes_on, is_first) = (Mutex::new(reach), Mutex::new(goes_on), AtomicBool::new(true));
    server.rule(move |asked| {
        if is_one(asked) && is_first.swap(false, Ordering::SeqCst) {
            reach.lock().unwrap().send(()).unwrap();
            goes_on.lock().unwrap().recv().unwrap();
        }
        Answer::Pass
    });
    (reached, go_on)
}

#[test]
fn a_tag_that_moves_meanwhile_does_not_mix_two_images_and_the_next_pull_has_the_newer_one() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    machines.push().succeeds();
    machines.create(&["next"], "SET greeting goodbye");
    let (reached, go_on) = hold_first(&machines.server, Asked::is_blob);
    let first = machines.pull("other").start();
    reached.recv().unwrap();
    // It waits for the first one. An image that it looked up before would be the older one.
    let second = machines.pull("other").start();
    thread::sleep(Duration::from_millis(300));
    machines.push_as_shop("next").succeeds();
    go_on.send(()).unwrap();
    let (first, second) = (first.wait(), second.wait());
    [&first, &second].iter().for_each(|ran| ran.ended(0));
    assert_ne!(first.json()["digest"], second.json()["digest"]);
    machines.has_same_files("other", "next");
    assert_eq!(machines.ask("other", "GET greeting"), "goodbye");
}

#[test]
fn a_template_that_is_replaced_while_it_is_sent_is_not_published() {
    let Some(machines) = Machines::new(REDIS, "SET greeting hello") else { return };
    let (reached, go_on) = hold_first(&machines.server, |asked| asked.line.starts_with("POST "));
    let pushing = machines.push().start();
    reached.recv().unwrap();
    machines.create(&["shop", "--rebuild"], "SET greeting goodbye");
    go_on.send(()).unwrap();
    let pushed = pushing.ends(1);
    pushed.says(&["was replaced while it was sent; nothing was published", "hint: try again later"]);
    machines.pull("other").fails(1).says(&["there is no such image"]);
    machines.push().succeeds();
    machines.pull("other").succeeds();
    assert_eq!(machines.ask("other", "GET greeting"), "goodbye");
}

#[test]
fn data_that_cannot_travel_are_refused_before_anything_is_sent() {
    let Some(machines) = Machines::new(REDIS, "PING") else { return };
    for (name, make, says) in [
        (
            "piped",
            "mkfifo",
            [
                "pipe` cannot be pushed: it is neither a file nor a directory",
                "hint: make the template again without it\n",
            ],
        ),
        // A hole.
        ("large", "truncate -s 400G", ["is too large for one image", "hint: make a template with less data\n"]),
    ] {
        let fill = format!("{make} \"$(redis-cli -s \"$REDIS_SOCKET\" CONFIG GET dir | tail -n 1)/pipe\"");
        machines.db("home", &["template", "create", "-q", name, "--engine", REDIS, "--", "sh", "-c", &fill]).succeeds();
        machines.push_as_shop(name).fails(1).says(&says);
    }
    assert_eq!(machines.server.count("POST"), 0);
}

#[test]
fn settings_that_would_run_programs_do_not_travel() {
    let settings = "ALTER SYSTEM SET archive_command = 'touch here'; ALTER SYSTEM SET jit_provider = '../here'; \
        ALTER SYSTEM SET work_mem = '7MB'";
    let Some(machines) = Machines::new(POSTGRES, settings) else { return };
    machines.push().succeeds();
    let taken = ["removed the setting `archive_command", "removed the setting `jit_provider"];
    let pulled = machines.pull("other").succeeds().says(&taken).json();
    assert_eq!(pulled["neutralised"].as_array().unwrap().len(), 2, "{pulled}");
    assert_eq!(
        machines.ask("other", "SELECT current_setting('jit_provider') || current_setting('work_mem')"),
        "llvmjit7MB"
    );
}
