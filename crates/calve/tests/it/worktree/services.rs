//! `[services.NAME]`: each worktree has a database of its own, with servers that come and go and data that stays.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use calve_testkit::{few_rounds, require_program};
use serde_json::{Value, json};

use super::repo::{Repo, git, with_environment};
use crate::program::{Calve, RunResult, RunningProgram, calve};

/// A repository with a service `db` of the template `shop`, which has a table `t` with three rows.
pub(super) struct Shop {
    pub(super) repo: Repo,
    engine: &'static str,
}

pub(super) const POSTGRES: &str = "postgres";
pub(super) const MARIADB: &str = "mariadb";
pub(super) const MYSQL: &str = "mysql";
const MYSQL_CLIENT: &str = "/usr/local/mysql/bin/mysql";

/// By engine, the homes that have the template, and what removes each of them when the tests end.
static MADE: Mutex<BTreeMap<&str, (tempfile::TempDir, Child)>> = Mutex::new(BTreeMap::new());

impl Shop {
    pub(super) fn new(engine: &'static str) -> Option<Self> {
        let programs: &[&str] = match engine {
            POSTGRES => &["postgres", "psql"],
            MARIADB => &["mariadbd", "mariadb"],
            _ => &[MYSQL_CLIENT],
        };
        if !programs.iter().all(|program| require_program(program)) {
            return None;
        }
        let repo = Repo::anywhere();
        // Servers of root's run as another user, who must get through.
        rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
        repo.write(".calve.toml", "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n");
        repo.commit("services");
        repo.settle();
        let shop = Self { repo, engine };
        shop.copy_template();
        Some(shop)
    }

    /// Copies the template from where it was made once for all tests.
    fn copy_template(&self) {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, _) = made.entry(self.engine).or_insert_with(|| {
            let home = tempfile::tempdir().unwrap();
            rustix::fs::chmod(home.path(), 0o755.into()).unwrap();
            // Nothing drops it. This process has the only other end of that pipe, and however it ends, the directory goes.
            let script = "trap '' HUP INT TERM; cat >/dev/null; chmod -R u+w \"$0\"; rm -rf \"$0\"";
            let cleaner = Command::new("sh").args(["-c", script]).arg(home.path()).stdin(Stdio::piped()).spawn();
            let sql = "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)";
            self.create(home.path(), "shop", sql);
            (home, cleaner.unwrap())
        });
        let templates = self.home().join("db/templates");
        fs_err::create_dir_all(&templates).unwrap();
        let copied = Command::new("cp").arg("-a").arg(made.path().join("db/templates/shop")).arg(templates).output();
        assert!(copied.as_ref().is_ok_and(|output| output.status.success()), "{copied:?}");
    }

    pub(super) fn template(&self, name: &str, sql: &str) {
        self.create(&self.home(), name, sql);
    }

    fn create(&self, home: &Path, name: &str, sql: &str) {
        let client = client(self.engine, sql);
        let words = ["db", "template", "create", name, "--engine", self.engine, "--"];
        with_environment(calve(words).args(client)).env("CALVE_HOME", home).succeeds();
    }

    pub(super) fn home(&self) -> PathBuf {
        self.repo.spot.join("home")
    }

    /// `calve WORDS…` in a worktree.
    pub(super) fn within(&self, worktree: impl AsRef<Path>, words: &[&str]) -> Calve {
        with_environment(calve(words)).within(worktree).env("CALVE_HOME", self.home())
    }

    /// Runs a statement by `calve exec`, which starts the server.
    #[track_caller]
    pub(super) fn sql(&self, worktree: impl AsRef<Path>, sql: &str) -> String {
        self.client(worktree, sql).succeeds().stdout.trim_end().to_owned()
    }

    /// Runs statements, each in a transaction of its own, in the background.
    fn writing(&self, worktree: impl AsRef<Path>, statements: &str) -> RunningProgram {
        match self.engine {
            // Those of one `-c` would be one transaction.
            POSTGRES => {
                let program = "printf %s \"$0\" | psql -XqAt -v ON_ERROR_STOP=1 \"$DATABASE_URL\"";
                self.within(worktree, &["exec", "--", "sh", "-c", program, statements]).start()
            }
            _ => self.client(worktree, statements).start(),
        }
    }

    /// Asks until a number is as wanted.
    pub(super) fn until(&self, worktree: impl AsRef<Path>, sql: &str, is_wanted: impl Fn(u32) -> bool) {
        while !is_wanted(self.sql(&worktree, sql).parse().unwrap()) {}
    }

    pub(super) fn client(&self, worktree: impl AsRef<Path>, sql: &str) -> Calve {
        let (program, option) = self.program();
        self.within(worktree, &["exec", "--", "sh", "-c", &format!("{program} {option} \"$0\""), sql])
    }

    /// Starts a client that stays connected, outside of the worktree. Returns once it has run the statements.
    pub(super) fn session(&self, worktree: impl AsRef<Path>, statements: &str) -> Child {
        let url = self.status(worktree)[0]["url"].as_str().unwrap().to_owned();
        let mut client = Command::new("sh");
        client.args(["-c", &format!("exec {}", self.program().0)]).env("DATABASE_URL", url).stdin(Stdio::piped());
        let mut client = client.stdout(Stdio::piped()).spawn().unwrap();
        writeln!(client.stdin.as_mut().unwrap(), "{statements}; SELECT 'done';").unwrap();
        let mut said = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line == "done"));
        client
    }

    /// Returns a client that reads statements, and its option for one statement.
    fn program(&self) -> (&'static str, &'static str) {
        match self.engine {
            POSTGRES => ("psql -XqAt -v ON_ERROR_STOP=1 \"$DATABASE_URL\"", "-c"),
            MARIADB => ("mariadb --no-defaults -nBN -u root -S \"${DATABASE_URL#*socket=}\" test", "-e"),
            _ => ("/usr/local/mysql/bin/mysql --no-defaults -nBN -u root -S \"${DATABASE_URL#*socket=}\" test", "-e"),
        }
    }

    #[track_caller]
    pub(super) fn rows(&self, worktree: impl AsRef<Path>) -> Vec<u32> {
        self.sql(worktree, "SELECT a FROM t ORDER BY a").lines().map(|line| line.parse().unwrap()).collect()
    }

    pub(super) fn status(&self, worktree: impl AsRef<Path>) -> Value {
        self.within(worktree, &["status", "--json"]).succeeds().json()["services"].clone()
    }

    pub(super) fn state(&self, worktree: impl AsRef<Path>) -> String {
        self.status(worktree)[0]["state"].as_str().unwrap().to_owned()
    }

    pub(super) fn servers(&self) -> Vec<Value> {
        let document = self.within(&self.repo.path, &["db", "list", "--json"]).succeeds().json();
        document["servers"].as_array().unwrap().clone()
    }

    /// Returns the services that exist, also half-made ones.
    pub(super) fn data(&self) -> Vec<String> {
        let entries = fs_err::read_dir(self.home().join("db/services")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        // Removed data is deleted in the background.
        let mut names: Vec<String> = names.filter(|name| !calve_core::internal::is_trash(name.as_bytes())).collect();
        names.sort();
        names
    }

    pub(super) fn remove(&self, worktree: impl AsRef<Path>, words: &[&str]) -> Calve {
        self.within(&self.repo.path, &["worktree", "remove"]).args(words).arg(worktree.as_ref())
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let listed = self.within(&self.repo.path, &["db", "list", "--json"]).run().stdout;
        let document: Value = serde_json::from_str(&listed).unwrap_or_default();
        for server in document["servers"].as_array().into_iter().flatten() {
            self.within(&self.repo.path, &["db", "stop", "-q", server["name"].as_str().unwrap()]).run();
        }
    }
}

fn client(engine: &str, sql: &str) -> Vec<String> {
    let words: &[&str] = match engine {
        POSTGRES => &["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", sql],
        MARIADB => &["mariadb", "-BN", "-e", sql],
        _ => &[MYSQL_CLIENT, "-BN", "-e", sql],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn path_of(ran: &RunResult) -> PathBuf {
    PathBuf::from(ran.stdout.trim_end())
}

#[test]
fn a_worktree_has_data_of_its_own_until_it_is_removed() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = path_of(&shop.repo.adding("one").succeeds().says(&["service: DATABASE_URL="]));
    let two = shop.repo.added("two");
    assert_eq!((shop.state(&one), shop.servers().len()), ("stopped".into(), 0), "data is cloned, and nothing started");
    let environment = shop.within(&one, &["env"]).succeeds().stdout;
    assert!(environment.starts_with("export DATABASE_URL='"), "{environment}");
    let url = environment.trim_end().trim_start_matches("export DATABASE_URL=").trim_matches('\'');
    shop.within(&one, &["up", "nosuch"]).fails(1).says(&["this worktree has no service `nosuch`"]).hints();
    shop.within(&one, &["up", "db"]).succeeds().says(&[&format!("started `db`: {url}")]);
    shop.within(&one, &["up"]).succeeds().says(&[&format!("`db` is already running: {url}")]);
    let server = shop.servers().remove(0);
    let port = shop.within(&one, &["db", "url", server["name"].as_str().unwrap(), "--format", "tcp"]).fails(1);
    port.says(&["hint: services listen on sockets only"]);
    assert_eq!(shop.state(&one), "running");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    shop.sql(&two, "DELETE FROM t WHERE a = 1");
    shop.within(&one, &["down"]).succeeds().says(&["stopped `db`"]);
    shop.within(&one, &["down", "db"]).succeeds().says(&["`db` was not running"]);
    shop.within(&one, &["down", "-q"]).succeeds();
    assert_eq!(shop.state(&one), "stopped");
    // What it was, with the same URL, also when the server was killed in the meantime.
    shop.within(&one, &["up", "-q"]).succeeds();
    assert_eq!(shop.within(&one, &["env"]).succeeds().stdout, environment);
    assert_eq!(shop.rows(&one), [1, 2, 3, 4]);
    shop.sql(&one, "INSERT INTO t VALUES (5)");
    let pid =
        shop.servers().iter().find(|server| server["name"] == shop.status(&one)[0]["server"]).unwrap()["pid"].clone();
    kill(&pid);
    assert_eq!(shop.rows(&one), [1, 2, 3, 4, 5]);
    assert_eq!(shop.rows(&two), [2, 3]);
    // The main worktree has its own too, made when it is wanted.
    assert_eq!(shop.state(&shop.repo.path), "absent");
    assert_eq!(shop.rows(&shop.repo.path), [1, 2, 3]);
    shop.within(&one, &["logs"]).succeeds();
    for worktree in [&one, &two] {
        shop.remove(worktree, &[])
            .fails(1)
            .says(&["the data of the service `db`, which may have changes found nowhere else"])
            .hints();
        assert_eq!(shop.state(worktree), "running", "a refusal ends nothing");
        shop.remove(worktree, &["-f"]).succeeds();
    }
    assert_eq!(shop.data().iter().filter(|name| name.starts_with("db-")).count(), 1);
    assert_eq!(shop.rows(&shop.repo.path), [1, 2, 3]);
    assert_eq!(shop.servers().len(), 1);
}

fn branches(engine: &'static str) {
    let Some(shop) = Shop::new(engine) else { return };
    let main = &shop.repo.path;
    shop.sql(main, "INSERT INTO t VALUES (4)");
    // Of a server that runs, under a writer: the confirmed rows are there, and no others.
    let statements = (100..2100).map(|row| format!("INSERT INTO t VALUES ({row});")).collect::<String>();
    let writer = shop.writing(main, &statements);
    shop.until(main, "SELECT COUNT(*) FROM t WHERE a >= 100", |count| count > 0);
    let before = shop.rows(main);
    let one = shop.repo.added("one");
    let after = shop.rows(main);
    let rows = shop.rows(&one);
    assert!(rows.starts_with(&before) && after.starts_with(&rows), "{before:?}\n{rows:?}\n{after:?}");
    writer.wait().ended(0);
    assert_eq!(shop.rows(main).len(), 2004, "the source goes on");
    // Of one that does not.
    shop.within(&one, &["down"]).succeeds();
    shop.repo.adding("two").args(["--data-from", "one"]).succeeds();
    assert_eq!(shop.rows(shop.repo.spot.join("proj.two")), rows);
    shop.repo.adding("three").args(["--data-from", "template"]).succeeds();
    assert_eq!(shop.rows(shop.repo.spot.join("proj.three")), [1, 2, 3]);
    shop.repo.adding("four").args(["--data-from", "none"]).succeeds();
    let four = shop.repo.spot.join("proj.four");
    assert_eq!(shop.state(&four), "absent");
    shop.repo
        .adding("five")
        .args(["--data-from", "four"])
        .fails(1)
        .says(&["has no data for the service `db`", "run `calve up` there, or leave `--data-from` out"]);
    shop.repo.adding("five").args(["--data-from", "nowhere"]).fails(1).hints();
    assert!(!shop.repo.spot.join("proj.five").exists());
    assert_eq!(shop.rows(&four), [1, 2, 3]);
}

#[test]
fn data_is_branched_from_a_worktree_whose_server_runs_on_postgres() {
    branches(POSTGRES);
}

#[test]
fn data_is_branched_from_a_worktree_whose_server_runs_on_mariadb() {
    if !few_rounds() {
        branches(MARIADB);
    }
}

/// The supervisor is not asked: the server goes with it, as when the machine stops.
pub(super) fn kill(pid: &Value) {
    let server = pid.as_u64().unwrap();
    let text = fs_err::read_to_string(format!("/proc/{server}/stat")).unwrap();
    let supervisor: i32 = text[text.rfind(')').unwrap() + 2..].split(' ').nth(1).unwrap().parse().unwrap();
    let supervisor = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn servers_write_to_the_disk_before_they_confirm() {
    for engine in [POSTGRES, MARIADB, MYSQL].into_iter().take(if few_rounds() { 2 } else { 3 }) {
        let Some(shop) = Shop::new(engine) else { continue };
        let settings: &[(&str, &str)] = match engine {
            POSTGRES => &[("fsync", "on"), ("synchronous_commit", "on"), ("full_page_writes", "on")],
            MARIADB => &[("innodb_flush_log_at_trx_commit", "1"), ("innodb_doublewrite", "1")],
            _ => &[
                ("innodb_flush_log_at_trx_commit", "1"),
                ("innodb_flush_method", "fsync"),
                ("innodb_doublewrite", "ON"),
            ],
        };
        for (name, value) in settings {
            let shown = match engine {
                POSTGRES => shop.sql(&shop.repo.path, &format!("SHOW {name}")),
                _ => shop.sql(&shop.repo.path, &format!("SELECT @@{name}")),
            };
            assert_eq!(shown, *value, "{engine}: {name}");
        }
    }
}

#[test]
fn what_git_has_removed_goes_with_the_next_prune_but_for_data_that_is_nowhere_else() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (read, written) = (shop.repo.added("read"), shop.repo.added("written"));
    assert_eq!(shop.rows(&read), [1, 2, 3]);
    shop.sql(&written, "UPDATE t SET a = 7 WHERE a = 3");
    let kept = shop.data().into_iter().filter(|name| name.starts_with("db-")).count();
    assert_eq!(kept, 2);
    shop.repo.git(["worktree", "remove", "--force", read.to_str().unwrap()]);
    fs_err::remove_dir_all(&written).unwrap();
    shop.remove(&written, &[]).fails(1).says(&[
        "`calve worktree prune` forgets it, and keeps the data for `calve worktree add --data-from NAME`; `--lose-data` discards it",
    ]);
    let prune = || shop.within(&shop.repo.path, &["worktree", "prune"]).succeeds();
    let planned = shop.within(&shop.repo.path, &["worktree", "prune", "--merged", "-n", "--json"]).succeeds().json();
    let data = |worktree: &Path, server: &Value, removed: bool| json!([{ "worktree": worktree, "service": "db", "server": server, "removed": removed }]);
    assert_eq!(planned["data"], data(&read, &planned["data"][0]["server"], false));
    let whose = |worktree: &Path| format!("the data of the service `db` of `{}`, which is gone", worktree.display());
    prune().says(&[
        &format!("removed {}\n", whose(&read)),
        &format!("kept {}: it may have changes found nowhere else", whose(&written)),
    ]);
    let left: Vec<String> = shop.data().into_iter().filter(|name| name.starts_with("db-")).collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(shop.within(&shop.repo.path, &["db", "list", "--json"]).succeeds().json()["servers"], json!([]));
    let hint = format!("`calve worktree add --data-from {}` gives it to a new worktree, and `calve", left[0]);
    prune().says(&[&hint, "`calve worktree prune --lose-data` removes it"]);
    // Also after it was cloned.
    shop.repo.adding("heir").args(["--data-from", &left[0]]).succeeds();
    let all = shop.within(&shop.repo.path, &["worktree", "prune", "--lose-data", "--json"]).succeeds();
    assert_eq!(all.json()["data"], data(&written, &json!(left[0]), true));
    all.says(&[&format!("removed {}", whose(&written))]);
    assert!(!prune().stderr.contains("data of"));
}

/// The last copy of data does not go unasked, wherever it is.
#[test]
fn data_of_another_worktree_goes_unasked_only_while_that_has_it() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let from = |donor: &str, name: &str| {
        shop.repo.adding(name).args(["--data-from", donor]).succeeds();
        shop.repo.spot.join(format!("proj.{name}"))
    };
    let donor = shop.repo.added("donor");
    shop.sql(&donor, "UPDATE t SET a = 7 WHERE a = 3");
    let of_running = from("donor", "of-running");
    shop.within(&donor, &["down"]).succeeds();
    let of_stopped = from("donor", "of-stopped");
    let third = from("of-stopped", "third");
    for worktree in [&of_running, &of_stopped, &third] {
        shop.remove(worktree, &["-n"]).succeeds();
    }
    let last = from("donor", "last");
    shop.sql(&donor, "UPDATE t SET a = 8 WHERE a = 7");
    shop.remove(&last, &["-n"]).fails(1).says(&["may have changes found nowhere else"]);
    shop.remove(&last, &["-f"]).succeeds();
    shop.within(&donor, &["down"]).succeeds();
    let last = from("donor", "lasting");
    shop.remove(&last, &["-n"]).succeeds();
    shop.within(&donor, &["reset", "--yes"]).succeeds();
    for worktree in [&of_running, &of_stopped, &last] {
        shop.remove(worktree, &[]).fails(1).says(&["may have changes found nowhere else"]);
    }
    shop.within(&last, &["reset"]).fails(3);
    shop.remove(&of_stopped, &["-f"]).succeeds();
    shop.remove(&third, &[]).fails(1);
    assert_eq!(shop.rows(&third), [1, 2, 7]);
}

#[test]
fn data_that_nobody_wrote_to_goes_with_its_worktree_whoever_removes_it() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    assert_eq!(shop.data().len(), 1);
    shop.repo.git(["worktree", "remove", "--force", one.to_str().unwrap()]);
    assert!(!shop.repo.join(".git/worktrees").exists());
    let prune = |more: &[&str]| shop.within(&shop.repo.path, &["worktree", "prune"]).args(more).succeeds();
    let its_data = format!("its data goes too: service `db` of `{}`, which is gone", one.display());
    prune(&["--merged", "-n"]).says(&[&its_data]);
    assert_eq!(shop.data().len(), 1);
    prune(&[]).says(&["removed the data of the service `db`"]);
    assert!(shop.data().is_empty());
    // By Calve itself, with or without having been read.
    let never = shop.repo.added("never");
    shop.remove(&never, &[]).succeeds();
    let read = shop.repo.added("read");
    assert_eq!(shop.rows(&read), [1, 2, 3]);
    shop.remove(&read, &["-n"]).succeeds();
    shop.within(&read, &["down"]).succeeds();
    shop.within(&read, &["up"]).succeeds();
    shop.remove(&read, &[]).succeeds();
    assert!(shop.data().iter().all(|name| !name.starts_with("db-")), "{:?}", shop.data());
}

/// A killed `add` leaves this, if it had made the worktree and not its data.
#[test]
fn a_worktree_without_its_data_gets_that_which_it_was_to_get() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.sql(&shop.repo.path, "INSERT INTO t VALUES (4)");
    let word = fs_err::read(shop.repo.join(".git/calve-services")).unwrap();
    for (branch, word, rows, said) in [
        ("one", &word[..], &[1, 2, 3, 4][..], ""),
        ("two", b"nobody", &[1, 2, 3], "is gone, so the data comes from the template"),
    ] {
        let path = PathBuf::from(shop.repo.adding(branch).args(["--data-from", "none"]).succeeds().stdout.trim_end());
        let note = shop.repo.join(format!(".git/worktrees/proj.{branch}/calve-data-from"));
        fs_err::write(&note, word).unwrap();
        let up = shop.within(&path, &["up"]).succeeds();
        assert!(up.stderr.contains(said), "{}", up.stderr);
        assert_eq!(shop.rows(&path), rows);
        assert!(!note.exists());
        shop.within(&path, &["down", "-q"]).succeeds();
    }
}

#[test]
fn a_template_that_is_unknown_or_of_an_image_stops_nothing_but_the_data() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let file = shop.home().join("db/templates/shop/template.json");
    let template = fs_err::read(&file).unwrap();
    let mut of_image: Value = serde_json::from_slice(&template).unwrap();
    of_image["image"] = json!({ "runtime": "/usr/bin/podman", "volumes": [], "name": "postgres", "id": "1" });
    let directory = file.parent().unwrap();
    fs_err::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs_err::write(&file, of_image.to_string()).unwrap();
    let hint = "name a template that was made without an image";
    shop.repo.adding("image").succeeds().says(&["the template `shop` runs from an image", hint]);
    shop.within(&shop.repo.path, &["up"]).fails(1);
    fs_err::write(&file, template).unwrap();
    shop.repo.write(".calve.toml", "[services.db]\ntemplate = 'shoes'\n[services.shop]\n");
    shop.repo.commit("services");
    shop.repo
        .adding("one")
        .succeeds()
        .says(&["the service `db` has no data: there is no template `shoes`", "SHOP_URL="]);
    // Who names the template cannot do without it.
    shop.repo.adding("two").args(["--data-from", "template"]).fails(1).hints();
    assert_eq!(shop.repo.worktrees().len(), 3);
    shop.within(&shop.repo.path, &["up"]).fails(1).says(&["started `shop`"]);
    shop.within(&shop.repo.path, &["up"]).fails(1).says(&["there is no template `shoes`"]).hints();
}

#[test]
fn a_server_by_hand_takes_no_name_of_a_worktrees_data() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    let name = shop.status(&one)[0]["server"].as_str().unwrap().to_owned();
    shop.within(&one, &["db", "start", "shop", "--name", &name]).fails(1).says(&["already exists"]);
}

#[test]
fn a_service_that_does_not_start_leaves_the_worktree_and_names_its_log() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    let data = PathBuf::from(shop.status(&one)[0]["data_directory"].as_str().unwrap());
    fs_err::rename(data.join("PG_VERSION"), data.join("elsewhere")).unwrap();
    shop.within(&one, &["up"]).fails(1).says(&["the service `db` was not started", "read its log: calve logs db"]);
    shop.within(&one, &["exec", "--", "true"]).fails(1);
    assert!(shop.within(&one, &["logs", "db"]).succeeds().stdout.contains("PG_VERSION"));
    shop.within(&one, &["logs", "cache"]).fails(1).says(&["no data of a service `cache`"]).hints();
    assert!(one.join("src").is_dir());
    fs_err::rename(data.join("elsewhere"), data.join("PG_VERSION")).unwrap();
    assert_eq!(shop.rows(&one), [1, 2, 3]);
}

#[test]
fn the_file_of_a_pull_request_that_is_not_trusted_names_no_services() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.template("secret", "CREATE TABLE t (a int)");
    let repo = &shop.repo;
    repo.git(["switch", "-q", "-c", "theirs"]);
    repo.write(".calve.toml", "[services.db]\ntemplate = 'secret'\n[services.more]\ntemplate = 'secret'\n");
    repo.commit("theirs");
    repo.git(["update-ref", "refs/pull/1/head", "HEAD"]);
    repo.git(["switch", "-q", "main"]);
    repo.git(["remote", "add", "origin", "."]);
    let theirs = repo.added("pr/1");
    let services = shop.status(&theirs);
    assert_eq!(services.as_array().unwrap().len(), 1);
    assert_eq!((&services[0]["template"], &services[0]["variable"]), (&json!("shop"), &json!("DATABASE_URL")));
}

#[test]
fn what_is_swept_stopped_or_reset_is_never_the_data_of_a_worktree() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (9)");
    let name = shop.status(&one)[0]["server"].as_str().unwrap().to_owned();
    for words in [&["db", "reset", &name][..], &["db", "mark", &name, "m"]] {
        let hint = "start a server of its own for that: calve db start TEMPLATE";
        shop.within(&one, words).fails(1).says(&["has durable data", hint]);
    }
    shop.within(&one, &["db", "stop", "--all"]).succeeds();
    assert_eq!(shop.state(&one), "running", "it ends by `calve down`");
    shop.within(&one, &["db", "stop", &name]).succeeds();
    shop.within(&one, &["db", "gc"]).succeeds();
    shop.within(&one, &["db", "template", "remove", "shop"]).succeeds();
    assert_eq!(shop.rows(&one), [1, 2, 3, 9]);
    let server = shop.servers()[0]["pid"].clone();
    kill(&server);
    shop.within(&one, &["db", "gc"]).succeeds();
    assert_eq!(shop.rows(&one), [1, 2, 3, 9]);
}

#[test]
fn a_moved_repository_keeps_its_data_and_a_copy_has_none() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    shop.sql(&shop.repo.path, "INSERT INTO t VALUES (5)");
    let moved = shop.repo.spot.join("moved");
    shop.repo.git(["worktree", "move", one.to_str().unwrap(), moved.to_str().unwrap()]);
    assert_eq!(shop.rows(&moved), [1, 2, 3, 4]);
    let copy = shop.repo.spot.join("copy");
    let status = std::process::Command::new("cp").arg("-a").args([&shop.repo.path, &copy]).status().unwrap();
    assert!(status.success());
    assert_eq!(shop.state(&copy), "absent");
    assert_eq!(shop.rows(&copy), [1, 2, 3]);
    assert_eq!(shop.rows(&shop.repo.path), [1, 2, 3, 5]);
    let elsewhere = shop.repo.spot.join("elsewhere");
    fs_err::rename(&copy, &elsewhere).unwrap();
    shop.sql(&elsewhere, "INSERT INTO t VALUES (6)");
    fs_err::rename(&elsewhere, &copy).unwrap();
    assert_eq!(shop.rows(&copy), [1, 2, 3, 6]);
}

#[test]
fn services_are_in_documents_files_and_hooks() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let text = "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n[services.jobs]\ntemplate = 'shop'\n\
        [hooks]\npost-add = 'echo $JOBS_URL >made.log'\n";
    shop.repo.write(".calve.toml", text);
    shop.repo.commit("two services and a hook");
    let added = shop.repo.adding("one").args(["--yes", "--json", "--env-file", ".env.local"]).succeeds().json();
    let one = PathBuf::from(added["path"].as_str().unwrap());
    let services = added["services"].as_array().unwrap();
    let urls: Vec<&str> = services.iter().map(|service| service["url"].as_str().unwrap()).collect();
    assert_ne!(urls[0], urls[1]);
    assert_eq!((services[1]["variable"].as_str(), services[1]["state"].as_str()), (Some("JOBS_URL"), Some("stopped")));
    let file = fs_err::read_to_string(one.join(".env.local")).unwrap();
    assert!(file.ends_with(&format!("DATABASE_URL={}\nJOBS_URL={}\n", urls[0], urls[1])), "{file}");
    assert_eq!(fs_err::read_to_string(one.join("made.log")).unwrap(), format!("{}\n", urls[1]));
    let document = shop.within(&one, &["env", "--json"]).succeeds().json();
    assert_eq!(&document["services"], &added["services"]);
    let fish = shop.within(&one, &["env", "--format", "fish"]).succeeds().stdout;
    assert!(fish.contains(&format!("set -gx JOBS_URL '{}'\n", urls[1])), "{fish}");
    let up = shop.within(&one, &["up", "--json"]).succeeds().json();
    assert_eq!((&up["services"][0]["state"], &up["services"][1]["state"]), (&json!("running"), &json!("running")));
    shop.within(&one, &["logs"]).fails(1).says(&["several services", "name one of them: db, jobs"]);
    let listed = shop.within(&one, &["worktree", "list"]).succeeds().stdout;
    let taken = |service: &str| {
        let text = listed.split_once(&format!("{service}:running (")).unwrap().1;
        let (memory, disk) = text[..text.find(')').unwrap()].split_once(", ").unwrap();
        memory.ends_with(" MB memory") && disk.ends_with(" disk")
    };
    assert!(taken("db") && taken("jobs"), "{listed}");
    let status = shop.within(&one, &["status"]).succeeds().stdout;
    assert!(status.contains(" MB memory, "), "{status}");
    let listed = shop.within(&one, &["worktree", "list", "--json"]).succeeds().json();
    assert_eq!(listed["worktrees"][1]["services"][1]["name"], "jobs");
    // Named no more, it has its data still, and goes with the worktree.
    git(&one, ["rm", "-qf", ".calve.toml"]);
    let services = shop.status(&one);
    assert_eq!((services[0]["state"].as_str(), &services[0]["variable"]), (Some("running"), &Value::Null));
    shop.within(&one, &["down", "--json"]).succeeds().json();
    shop.remove(&one, &["-f"]).succeeds();
    assert!(shop.data().iter().all(|name| name.starts_with('.')), "{:?}", shop.data());
}

#[test]
fn without_services_there_is_nothing_to_do() {
    let repo = Repo::anywhere();
    let within = |words: &[&str]| repo.within(&repo.path, words);
    for word in ["up", "down", "status"] {
        within(&[word]).succeeds().says(&["this worktree has no services"]);
    }
    within(&["logs"]).fails(1).says(&["name services in .calve.toml, then run `calve up`"]);
    within(&["up", "nosuch"]).fails(1).says(&["name services in .calve.toml, then run `calve up`"]);
    assert!(!repo.spot.join("home").exists());
}
