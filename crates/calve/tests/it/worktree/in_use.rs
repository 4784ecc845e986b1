//! Databases that are written to while their files are copied: each command names what it could not copy as it was at one moment.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use calve_testkit::{FileSystem, require_program};
use serde_json::json;

use super::mcp::Session;
use super::repo::{Repo, with_environment};
use crate::program::{RunResult, calve};

/// Writes to a database when another file is opened, which a lease tells (fcntl(2), F_SETLEASE).
const CHECKPOINT: &str = "
import fcntl, os, signal, sys, time
opened = []
signal.signal(signal.SIGIO, lambda *_: opened.append(1))
leased = os.open(sys.argv[2], os.O_RDONLY)
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
while not opened: time.sleep(0.005)
with open(sys.argv[1], 'a') as database: database.write('checkpoint')
fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_UNLCK)
";

struct Checkpoint(Child);

impl Checkpoint {
    fn when_opened(file: &Path, database: &Path) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", CHECKPOINT]).args([database, file]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Self(process)
    }

    fn has_happened(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a repository with a database in a directory. It also has a name elsewhere: so it is not made a second time.
fn with_database(directory: &str) -> Option<Repo> {
    if !require_program("python3") {
        return None;
    }
    let repo = Repo::on(FileSystem::Ext4)?;
    repo.write("data/tracked", "");
    repo.write(".gitignore", "*.db\n*.db-wal\n.env*\n/ignored/\n");
    repo.commit("data");
    repo.write("ignored/other", "1");
    repo.write(&format!("{directory}/a.db"), "pages");
    repo.write(&format!("{directory}/a.db-wal"), "frames");
    fs_err::hard_link(repo.join(directory).join("a.db"), repo.spot.join("another name")).unwrap();
    Some(repo)
}

fn warning(first: &str) -> String {
    format!("warning: 2 entries of the source changed meanwhile (first: `{first}`)")
}

#[test]
fn a_database_that_is_written_to_between_the_copies_of_its_files_is_named() {
    let Some(repo) = with_database("ignored") else { return };
    let [database, log] = ["ignored/a.db", "ignored/a.db-wal"].map(|name| repo.join(name));
    let names = json!(["ignored/a.db", "ignored/a.db-wal"]);

    let checkpoint = Checkpoint::when_opened(&log, &database);
    let added = repo.calve(["add", "--json", "one"]).succeeds();
    checkpoint.has_happened();
    assert_eq!(added.json()["clone"]["changed"], names, "{}", added.stderr);
    assert!(added.stderr.contains(&warning("ignored/a.db")), "{}", added.stderr);

    let checkpoint = Checkpoint::when_opened(&log, &database);
    let copied = calve(["cp", "--json"]).args([&repo.path, &repo.spot.join("copy")]).succeeds();
    checkpoint.has_happened();
    assert_eq!(copied.json()["changed"], names, "{}", copied.stderr);
    assert!(copied.stderr.contains(&warning("ignored/a.db")), "{}", copied.stderr);

    let question = json!({"name": "three", "cwd": repo.path}).to_string();
    fs_err::write(repo.spot.join("question"), question).unwrap();
    let checkpoint = Checkpoint::when_opened(&log, &database);
    let hook = with_environment(calve(["hook", "worktree-create"])).in_shell("", "<question").within(&*repo.spot);
    let created = hook.env("CALVE_HOME", repo.spot.join("home")).succeeds();
    checkpoint.has_happened();
    assert!(created.stderr.contains(&warning("ignored/a.db")), "{}", created.stderr);

    let agent = Session::with(&repo.spot.join("home"), &[&repo.path]);
    let checkpoint = Checkpoint::when_opened(&log, &database);
    let made = agent.call("create_worktree", json!({"branch": "four"})).unwrap();
    checkpoint.has_happened();
    assert!(made["notes"].as_array().unwrap().contains(&json!(warning("ignored/a.db"))), "{made}");

    let quiet = repo.calve(["add", "--json", "quiet"]).succeeds();
    assert_eq!(quiet.json()["clone"]["changed"], json!([]), "{}", quiet.stderr);
    assert!(!quiet.stderr.contains("meanwhile"), "{}", quiet.stderr);
}

/// Makes a worktree with git, and carries the ignored files into it.
fn setup(repo: &Repo, name: &str) -> (RunResult, PathBuf) {
    let path = repo.spot.join(name);
    repo.git(["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    let line = ["hook", "worktree-setup", "--maker", "cursor"];
    let setup = with_environment(calve(line)).within(&path).env("CALVE_HOME", repo.spot.join("home"));
    (setup.succeeds(), path)
}

#[test]
fn a_database_whose_files_are_carried_one_by_one_is_named() {
    let Some(repo) = with_database("data") else { return };
    let checkpoint = Checkpoint::when_opened(&repo.join("ignored/other"), &repo.join("data/a.db"));
    let (changed, path) = setup(&repo, "changed");
    checkpoint.has_happened();
    assert!(path.join("data/a.db-wal").exists());
    assert!(changed.stderr.contains(&warning("data/a.db")), "{}", changed.stderr);
    let (quiet, _) = setup(&repo, "quiet");
    assert!(!quiet.stderr.contains("meanwhile"), "{}", quiet.stderr);
}

/// The journal appears while the database is carried, and is not ignored itself.
#[test]
fn a_database_that_is_carried_without_its_journals_is_named() {
    if !require_program("python3") {
        return;
    }
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    repo.write("data/tracked", "");
    repo.write(".gitignore", "*.db\n*.mdb\nodd\nplain\n/ignored/\n");
    repo.commit("data");
    repo.write("ignored/other", "1");
    repo.write("data/plain", "text");
    for (name, other) in [
        ("a.db", "a.db"),
        ("a.db", "a.db-journal"),
        ("a.db", "a.db-wal"),
        ("data.mdb", "data.mdb"),
        ("odd", "odd-journal"),
        ("odd", "odd"),
    ] {
        let database = repo.join("data").join(name);
        let mut pages = b"SQLite format 3\0".to_vec();
        pages.resize(1024, 0);
        fs_err::write(&database, pages).unwrap();
        let other_file = repo.join("data").join(other);
        let checkpoint = Checkpoint::when_opened(&repo.join("ignored/other"), &other_file);
        let (changed, _) = setup(&repo, &format!("{other}.changed"));
        checkpoint.has_happened();
        let warning = format!("warning: 1 entry of the source changed meanwhile (first: `data/{name}`)");
        assert!(changed.stderr.contains(&warning), "{other}: {}", changed.stderr);
        let (quiet, _) = setup(&repo, &format!("{other}.quiet"));
        assert!(!quiet.stderr.contains("meanwhile"), "{other}: {}", quiet.stderr);
        fs_err::remove_file(database).unwrap();
        let _ = fs_err::remove_file(other_file);
    }
}

/// A debug build pretends that the clock was set back once a file exists.
#[test]
fn a_clock_that_was_set_back_during_a_stable_clone_is_the_cause() {
    const { assert!(cfg!(debug_assertions), "no other build has this way in") };
    let Some(repo) = with_database("ignored") else { return };
    let clock = repo.spot.join("clock");
    let copy = |name: &str| {
        let line = calve(["cp", "--require", "stable"]).args([&repo.path, &repo.spot.join(name)]);
        line.env("CALVE_TEST_CLOCK", &clock)
    };
    let set_back = Checkpoint::when_opened(&repo.join("ignored/other"), &clock);
    let refused = copy("copy").fails(3);
    set_back.has_happened();
    refused.says(&["the clock was set back, so change times cannot be trusted"]);
    assert!(!repo.spot.join("copy").exists());
    copy("later").succeeds();
}
