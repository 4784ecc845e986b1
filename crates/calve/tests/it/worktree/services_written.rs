//! Data goes unasked with its worktree as long as nothing was written to it, whatever else was done with it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use calve_testkit::{SplitMix64, few_rounds, matrix, require_program, rounds};
use serde_json::{Value, json};

use super::services::{MARIADB, MYSQL, POSTGRES, Shop, kill};
use crate::program::Calve;
use crate::spot::eventually;
use crate::terminal::Terminal;

pub(super) const HINT: &str = "keep the worktree, or lose its data: add `--lose-data` to this command";

/// The statements that change something, one of each kind.
const WRITING: &[&str] = &[
    "INSERT INTO t VALUES (9)",
    "COPY t FROM PROGRAM 'echo 9'",
    "CREATE TABLE u (a int)",
    "CREATE DATABASE u",
    "SELECT nextval('numbers')",
    "SELECT lo_create(0)",
    "ALTER SYSTEM SET work_mem = '8MB'",
];

/// The statements that change nothing.
const READING: &[&str] =
    &["SELECT * FROM t", "VACUUM", "CHECKPOINT", "SHOW work_mem", "SELECT last_value FROM numbers"];

/// Kills the server of a worktree together with its supervisor.
pub(super) fn kill_server(shop: &Shop, worktree: &Path) {
    let name = shop.status(worktree)[0]["server"].clone();
    let server = shop.servers().into_iter().find(|server| server["name"] == name).unwrap();
    kill(&server["pid"]);
}

#[test]
fn reading_changes_nothing_on_postgres() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    // Of a server that has used a number of the sequence since its last checkpoint.
    shop.sql(main, "CREATE SEQUENCE numbers; SELECT nextval('numbers')");
    let read = shop.repo.added("read");
    for again in 0..4 {
        shop.within(&read, &["up", "-q"]).succeeds();
        READING.iter().for_each(|statement| _ = shop.sql(&read, statement));
        shop.remove(&read, &["-n"]).succeeds();
        if again == 1 {
            // As a reboot without warning leaves it: what it has can be told when a server has recovered it.
            kill_server(&shop, &read);
            continue;
        }
        shop.within(&read, &["down", "-q"]).succeeds();
        shop.remove(&read, &["-n"]).succeeds();
    }
    // A clone of it has nothing either.
    shop.repo.adding("third").args(["--data-from", "read"]).succeeds();
    let third = shop.repo.spot.join("proj.third");
    shop.remove(&read, &[]).succeeds();
    shop.rows(&third);
    shop.remove(&third, &[]).succeeds();
    for (number, statement) in matrix(WRITING).enumerate() {
        let written = shop.repo.added(&format!("written-{number}"));
        shop.sql(&written, statement);
        let whose = format!("`{}` has the data of the service `db`, which may have changes", written.display());
        shop.remove(&written, &["-n"]).fails(1).says(&[&whose, HINT]);
        shop.within(&written, &["down", "-q"]).succeeds();
        shop.remove(&written, &[]).fails(1).says(&[&whose, HINT]);
        shop.remove(&written, &["--lose-data"]).succeeds().says(&["lost the data of the service `db`"]);
    }
    // Nothing else is lost by it.
    let dirty = shop.repo.added("dirty");
    shop.sql(&dirty, WRITING[0]);
    fs_err::write(dirty.join("new"), "").unwrap();
    shop.remove(&dirty, &["--lose-data"]).fails(1).says(&["uncommitted changes"]);
    assert_eq!(shop.rows(&dirty), [1, 2, 3, 9]);
}

/// The path of the socket is known before the server is started, and a client may wait there to be the first.
#[test]
fn what_the_first_client_writes_counts() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.rows(&shop.repo.path);
    for round in 0..rounds(6) {
        let one = shop.repo.added(&format!("one-{round}"));
        let url = shop.status(&one)[0]["url"].as_str().unwrap().to_owned();
        let script = "until psql -Xq \"$0\" -c 'INSERT INTO t VALUES (9)' 2>/dev/null; do :; done";
        let first = std::process::Command::new("sh").args(["-c", script, &url]).spawn();
        shop.within(&one, &["up", "-q"]).succeeds();
        assert!(first.unwrap().wait().unwrap().success());
        shop.remove(&one, &["-n"]).fails(1).says(&[HINT]);
        shop.within(&one, &["down", "-q"]).succeeds();
        shop.remove(&one, &[]).fails(1);
    }
}

/// A worktree, whether something was written to its data, and whether its server was killed since it last ran.
struct Known {
    path: PathBuf,
    is_written: bool,
    is_killed: bool,
}

/// Data that has something of its own is never lost unasked, and data that has nothing of its own never needs to be asked for.
#[test]
fn any_sequence_of_uses_tells_what_was_written() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let mut random = SplitMix64::new(43);
    let main = &shop.repo.path;
    shop.sql(main, "CREATE SEQUENCE numbers");
    let mut all: Vec<Known> = Vec::new();
    for round in 0..rounds(40) {
        if all.len() < 2 {
            let path = shop.repo.added(&format!("b{round}"));
            all.push(Known { path, is_written: false, is_killed: false });
            continue;
        }
        let at = random.below(all.len() as u64) as usize;
        let Known { path, is_written, is_killed } = &mut all[at];
        let what = random.below(8);
        match what {
            0 => _ = shop.within(&*path, &["up", "-q"]).succeeds(),
            1 => _ = shop.within(&*path, &["down", "-q"]).succeeds(),
            2 | 3 => _ = shop.sql(&*path, READING[random.below(READING.len() as u64) as usize]),
            4 => {
                shop.client(&*path, WRITING[random.below(WRITING.len() as u64) as usize]).run();
                *is_written = true;
            }
            5 if shop.state(&*path) == "running" => kill_server(&shop, path),
            6 if !*is_written => {
                let from = path.file_name().unwrap().to_owned();
                shop.repo.adding(&format!("b{round}")).args(["--data-from".as_ref(), &*from]).succeeds();
                let path = shop.repo.spot.join(format!("proj.b{round}"));
                // What it was cloned from may not have been recovered.
                let is_written = *is_killed;
                all.push(Known { path, is_written, is_killed: false });
                continue;
            }
            _ => {
                let removed = shop.remove(&*path, &[]).run();
                assert_eq!(
                    removed.status.success(),
                    !*is_written && !*is_killed,
                    "round {round}, {path:?}: {}",
                    removed.stderr
                );
                if removed.status.success() {
                    all.remove(at);
                }
                continue;
            }
        }
        *is_killed = match what {
            5 => *is_killed || shop.state(&*path) != "running",
            0 | 2..=4 => false,
            _ => *is_killed,
        };
    }
}

/// A shop with these services, and the template `cache` of Redis or Valkey, which `fill` fills.
pub(super) fn with_cache(engine: &str, services: &str, fill: &str) -> Option<Shop> {
    let program = format!("{engine}-server");
    let installed = Path::new("/usr/local/valkey/bin").join(&program);
    if !installed.exists() && !require_program(&program) {
        return None;
    }
    let shop = Shop::new(POSTGRES)?;
    shop.repo.write(".calve.toml", services);
    shop.repo.commit("a cache");
    let create = ["db", "template", "create", "cache", "-q", "--engine", engine, "--", "sh", "-c", fill];
    shop.within(&shop.repo.path, &create).succeeds();
    Some(shop)
}

pub(super) fn keys(shop: &Shop, worktree: &Path, commands: &str) -> Calve {
    let program = "printf \"$0\" | redis-cli -s \"${REDIS_URL#unix://}\"";
    shop.within(worktree, &["exec", "--", "sh", "-c", program, commands])
}

#[test]
fn reading_changes_nothing_on_redis_and_valkey() {
    for engine in matrix(["redis", "valkey"]) {
        let services = "[services.cache]\ntemplate = 'cache'\nenv = 'REDIS_URL'\n";
        let Some(shop) = with_cache(engine, services, "redis-cli -s \"$REDIS_SOCKET\" SET a 1") else { continue };
        keys(&shop, &shop.repo.path, "SET b 2\\n").succeeds();
        for (name, from) in [("running", "main"), ("template", "template")] {
            shop.repo.adding(name).args(["--data-from", from]).succeeds();
            let one = shop.repo.spot.join(format!("proj.{name}"));
            for again in 0..3 {
                keys(&shop, &one, "GET a\\nSCAN 0\\nSAVE\\n").succeeds();
                shop.remove(&one, &["-n"]).succeeds();
                if again == 1 {
                    kill_server(&shop, &one);
                } else {
                    shop.within(&one, &["down", "-q"]).succeeds();
                }
            }
            for (number, commands) in
                ["SET a 1\\n", "EXPIRE a 60\\n", "CONFIG SET appendonly no\\nDEL a\\n"].iter().enumerate()
            {
                shop.repo.adding(&format!("{name}-{number}")).args(["--data-from", name]).succeeds();
                let written = shop.repo.spot.join(format!("proj.{name}-{number}"));
                keys(&shop, &written, commands).succeeds();
                shop.remove(&written, &["-n"]).fails(1).says(&["service `cache`", HINT]);
                shop.within(&written, &["down", "-q"]).succeeds();
                shop.remove(&written, &[]).fails(1);
            }
            shop.remove(&one, &[]).succeeds();
        }
    }
}

#[test]
fn what_is_committed_after_a_copy_counts() {
    let open = ("BEGIN; INSERT INTO t VALUES (9)", "COMMIT");
    let prepared = ("XA START 'x'; INSERT INTO t VALUES (9); XA END 'x'; XA PREPARE 'x'", "XA COMMIT 'x'");
    let mysql = (!few_rounds()).then_some(MYSQL);
    for engine in [POSTGRES, MARIADB].into_iter().chain(mysql) {
        for transaction in [open, prepared].into_iter().take(if engine == POSTGRES { 1 } else { 2 }) {
            for is_promoted in [true, false] {
                let Some(shop) = Shop::new(engine) else { continue };
                commits_after_a_copy(&shop, transaction, is_promoted);
            }
        }
    }
}

/// The copy lacks what was not committed yet.
fn commits_after_a_copy(shop: &Shop, (begun, commit): (&str, &str), is_promoted: bool) {
    let written = shop.repo.added("written");
    shop.rows(&written);
    let mut session = shop.session(&written, begun);
    // A later transaction ends first.
    shop.sql(&written, "INSERT INTO t VALUES (8)");
    if is_promoted {
        shop.within(&shop.repo.path, &["db", "promote", "--yes", "written"]).succeeds();
    } else {
        shop.repo.adding("copy").args(["--data-from", "written"]).succeeds();
    }
    writeln!(session.stdin.take().unwrap(), "{commit};").unwrap();
    assert!(session.wait().unwrap().success());
    shop.remove(&written, &["-n"]).fails(1).says(&[HINT]);
    assert_eq!(shop.rows(&written), [1, 2, 3, 8, 9]);
    shop.within(&written, &["down", "-q"]).succeeds();
    shop.remove(&written, &[]).fails(1).says(&[HINT]);
    if is_promoted {
        shop.within(&shop.repo.path, &["db", "promote", "--yes", "written"]).succeeds();
        shop.remove(&written, &[]).succeeds();
    }
}

/// A clone of an unchanged clone has nothing that its donor's donor lacks.
#[test]
fn a_clone_of_a_clone_goes_unasked() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.sql(&shop.repo.path, "INSERT INTO t VALUES (4)");
    let (one, from_one) = (shop.repo.added("one"), ["--data-from", "one"]);
    for branch in ["two", "three"] {
        shop.repo.adding(branch).args(from_one).succeeds();
    }
    let [two, three] = ["two", "three"].map(|name| shop.repo.spot.join(format!("proj.{name}")));
    shop.remove(&two, &[]).succeeds();
    shop.remove(&one, &[]).succeeds();
    // Without the one between.
    shop.remove(&three, &["-n"]).succeeds();
    shop.sql(&shop.repo.path, "INSERT INTO t VALUES (5)");
    shop.remove(&three, &["-n"]).fails(1).says(&[HINT]);
}

#[test]
fn several_worktrees_are_told_apart_and_pruned() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let [one, two] = ["one", "two"].map(|branch| shop.repo.added(branch));
    for worktree in [&one, &two] {
        shop.sql(worktree, WRITING[0]);
        shop.within(worktree, &["exec", "--", "git", "commit", "-q", "--allow-empty", "-m", "x"]).succeeds();
        shop.repo.git(["merge", "-q", worktree.file_name().unwrap().to_str().unwrap().trim_start_matches("proj.")]);
    }
    let both = shop.within(&shop.repo.path, &["worktree", "remove", "one", "two"]).fails(1);
    both.says(&["proj.one` has the data of the service `db`", "proj.two` has the data of the service `db`"]);
    let prune = |more: &[&str]| shop.within(&shop.repo.path, &["worktree", "prune", "--merged"]).args(more).succeeds();
    prune(&["--yes"]).says(&["kept `", "no merged worktree can be removed"]);
    prune(&["-n", "--lose-data"]).says(&["would lose the data of the service `db`"]);
    // One that cannot be judged stays, and the others go.
    let name = shop.status(&one)[0]["server"].as_str().unwrap().to_owned();
    shop.within(&one, &["down"]).succeeds();
    let document = shop.home().join("db/services").join(name).join("service.json");
    let good = fs_err::read_to_string(&document).unwrap();
    fs_err::write(&document, good.replace("\"postgres\"", "\"unheard-of\"")).unwrap();
    prune(&["--yes", "--lose-data"]).says(&["kept `", "unheard-of"]);
    assert_eq!(shop.repo.worktrees().len(), 2);
    fs_err::write(&document, good).unwrap();
    prune(&["--yes", "--lose-data"]);
    assert_eq!(shop.repo.worktrees().len(), 1);
}

#[test]
fn data_of_a_repository_that_is_gone_is_listed_given_and_removed() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    let other = shop.repo.spot.join("other");
    shop.repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
    shop.sql(&other, "INSERT INTO t VALUES (9)");
    shop.rows(main);
    let name = shop.status(&other)[0]["server"].as_str().unwrap().to_owned();
    let kept = shop.status(main)[0]["server"].as_str().unwrap().to_owned();
    let all = || shop.within(main, &["db", "list", "--all", "--json"]).succeeds().json()["services"].clone();
    let of =
        |name: &str| all().as_array().unwrap().iter().find(|data| data["name"] == name).cloned().unwrap_or_default();
    assert_eq!((&of(&name)["state"], &of(&name)["worktree"]), (&json!("running"), &json!(other)));
    fs_err::remove_dir_all(&other).unwrap();
    assert_eq!((&of(&name)["state"], &of(&name)["worktree"]), (&json!("orphaned"), &Value::Null));
    assert!(of(&name)["disk_bytes"].as_u64().unwrap() > 1_000_000);
    let listed = shop.within(main, &["db", "list", "--all"]).succeeds().stdout;
    assert!(
        listed.contains("orphaned  service `db` of `") && listed.contains("running  service `db` of `"),
        "{listed}"
    );
    let gc = |more: &[&str]| shop.within(main, &["db", "gc", "--json"]).args(more);
    let named = gc(&[]).succeeds();
    assert_eq!((&named.json()["orphans"][0]["name"], &named.json()["removed"]), (&json!(name), &json!([])));
    named.says(&[
        &format!("`{name}`  orphaned  service `db` of `{}`, not found, its server runs, ", other.display()),
        "if you moved the worktree, run `git worktree repair PATH…`, then `calve db gc` in the repository; `calve worktree add --data-from NAME`",
    ]);
    gc(&["--lose-data"]).fails(2).says(&["`--lose-data` discards only the data that you name"]);
    gc(&[&name]).fails(3).says(&[&format!("the server of `{name}` runs"), "if you moved the worktree"]);
    gc(&["--lose-data", &name, &kept]).fails(3).says(&[&format!("`{}`, which exists", main.display())]);
    assert_eq!(shop.servers().len(), 2, "nothing was ended");
    shop.repo.adding("heir").args(["--data-from", &name]).succeeds();
    let heir = shop.repo.spot.join("proj.heir");
    assert_eq!(shop.rows(&heir), [1, 2, 3, 9]);
    let removed = gc(&["--lose-data", &name]).succeeds();
    let receipt = removed.json();
    assert_eq!((&receipt["orphans"], &receipt["removed"]), (&json!([]), &json!([name])));
    removed.says(&[&format!("removed `{name}`, the data of the service `db` of `{}`\n", other.display())]);
    assert_eq!((of(&name), &of(&kept)["state"]), (Value::Null, &json!("running")));
    assert_eq!(shop.servers().len(), 2, "its server ended");
    // git still has the entry of a worktree that was deleted.
    let lost = shop.repo.added("lost");
    let unused = shop.status(&lost)[0]["server"].as_str().unwrap().to_owned();
    fs_err::remove_dir_all(&lost).unwrap();
    let note = main.join(".git/worktrees/proj.lost/calve-mount");
    let noted = fs_err::read(&note).unwrap();
    fs_err::write(&note, lost.to_str().unwrap()).unwrap();
    assert_eq!((&of(&unused)["worktree"], gc(&[]).succeeds().json()["orphans"].clone()), (&json!(lost), json!([])));
    gc(&[&unused]).fails(3);
    fs_err::write(&note, noted).unwrap();
    assert_eq!((&of(&unused)["state"], &of(&unused)["worktree"]), (&json!("orphaned"), &Value::Null));
    gc(&[]).succeeds().says(&[&format!("orphaned  service `db` of `{}`, not found, ", lost.display())]);
    // A template that is needed is named with those who need it.
    let removed = shop.within(main, &["db", "template", "remove", "shop"]).succeeds();
    assert!(!removed.stderr.contains("proj.lost"), "{}", removed.stderr);
    removed.says(&["`calve reset` needs the template `shop` in `", &format!("`{}`", main.display()), "proj.heir`"]);
    assert_eq!(gc(&[&unused]).succeeds().json()["removed"], json!([unused]), "it has no changes");
}

#[test]
fn on_a_terminal_data_of_missing_worktrees_goes_after_a_question() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (main, gone) = (&shop.repo.path, shop.repo.spot.join("gone"));
    shop.repo.git(["clone", "-q", ".", gone.to_str().unwrap()]);
    shop.sql(&gone, "INSERT INTO t VALUES (9)");
    shop.rows(main);
    let name = shop.status(&gone)[0]["server"].as_str().unwrap().to_owned();
    fs_err::remove_dir_all(&gone).unwrap();
    let stopped = shop.within(main, &["db", "stop", "--all"]).succeeds();
    stopped.says(&["servers of missing worktrees are still running: `calve db gc` lists them\n"]);
    for (answer, servers) in [("n\n", 2), ("y\n", 1)] {
        let mut terminal = Terminal::new(&shop.within(main, &["db", "gc"]).command());
        let listed = terminal.after("Discard all of this data with its changes, and end its servers? [y/N]", answer);
        assert!(listed.contains(&format!("`{name}`  orphaned")), "{listed}");
        let (code, said) = terminal.end();
        assert_eq!((code, shop.servers().len()), (Some(0), servers), "{said}");
    }
    assert_eq!(shop.data().len(), 1);
    let silent = shop.within(main, &["db", "stop", "--all"]).succeeds();
    assert!(!silent.stderr.contains("missing"), "{}", silent.stderr);
}

#[test]
fn data_of_a_repository_that_was_moved_or_cannot_be_read_stays() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    let [was, now] = ["was", "now"].map(|name| shop.repo.spot.join(name));
    shop.repo.git(["clone", "-q", ".", was.to_str().unwrap()]);
    shop.sql(&was, "INSERT INTO t VALUES (9)");
    let name = shop.status(&was)[0]["server"].as_str().unwrap().to_owned();
    let gc = |more: &[&str]| shop.within(main, &["db", "gc", "--json"]).args(more);
    let orphans = || gc(&[]).succeeds().json()["orphans"].as_array().unwrap().len();
    // An error does not tell that a worktree is gone, for as long as it lasts.
    let (word, aside) = (was.join(".git/calve-services"), was.join(".git/aside"));
    fs_err::rename(&word, &aside).unwrap();
    fs_err::create_dir(&word).unwrap();
    assert_eq!(orphans(), 0);
    gc(&["--lose-data", &name]).fails(3).says(&["which cannot be read"]);
    assert!(shop.within(main, &["db", "list", "--all"]).succeeds().stdout.contains("which cannot be read"));
    fs_err::remove_dir(&word).unwrap();
    fs_err::rename(&aside, &word).unwrap();
    let server = shop.servers().into_iter().find(|server| server["name"] == *name).unwrap();
    fs_err::rename(&was, &now).unwrap();
    assert_eq!(orphans(), 1);
    gc(&["--lose-data"]).fails(2);
    gc(&[&name]).fails(3);
    kill(&server["pid"]);
    // The server's processes end a moment later.
    eventually("the server is gone", || shop.servers().iter().all(|server| server["name"] != *name));
    gc(&[&name]).fails(3).says(&["may have changes found nowhere else"]);
    shop.within(&now, &["env"]).succeeds();
    assert_eq!(orphans(), 0);
    assert_eq!(shop.rows(&now), [1, 2, 3, 9]);
}

/// A server that was killed is listed until its worktree is removed.
#[test]
fn a_server_that_ended_is_forgotten_with_its_worktree() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.rows(&one);
    let name = shop.status(&one)[0]["server"].as_str().unwrap().to_owned();
    kill_server(&shop, &one);
    let listed = || shop.within(&shop.repo.path, &["db", "list"]).succeeds().stdout;
    while !listed().contains(&format!("{name}  ended")) {}
    shop.remove(&one, &["--lose-data"]).succeeds();
    assert!(!listed().contains(&name));
    // A server that is ending is awaited before its data is judged.
    let one = shop.repo.added("one");
    shop.rows(&one);
    let name = shop.status(&one)[0]["server"].clone();
    let server = shop.servers().into_iter().find(|server| server["name"] == name).unwrap();
    // It waits for its children, which write what it has.
    let children = fs_err::read_to_string(format!("/proc/{0}/task/{0}/children", server["pid"])).unwrap();
    let signal = |signal| {
        for child in children.split_whitespace().map(|child| child.parse().unwrap()) {
            rustix::process::kill_process(rustix::process::Pid::from_raw(child).unwrap(), signal).unwrap();
        }
    };
    signal(rustix::process::Signal::STOP);
    let ending = shop.within(&one, &["down"]).start();
    eventually("its record is hidden", || shop.servers().iter().all(|server| server["name"] != name));
    let mut removal = shop.remove(&one, &["-n"]).start();
    let asked = std::time::Instant::now();
    while !removal.has_ended() && asked.elapsed().as_millis() < 1000 {}
    signal(rustix::process::Signal::CONT);
    removal.ends(0);
    ending.ends(0);
    shop.remove(&one, &[]).succeeds();
    // Two removals at once: the second says so.
    let one = shop.repo.added("one");
    let turn = shop.home().join("db/services").join(&shop.data()[0]).join("turn");
    let held = fs_err::File::open(&turn).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let removals = [0, 1].map(|_| shop.remove(&one, &[]).start());
    for removal in &removals {
        let waits = || {
            let open = fs_err::read_dir(format!("/proc/{}/fd", removal.id())).unwrap();
            open.flatten().any(|file| fs_err::read_link(file.path()).is_ok_and(|file| file == turn))
        };
        while !waits() {}
    }
    drop(held);
    let mut ended = removals.map(|removal| removal.wait());
    ended.sort_by_key(|ended| ended.status.code());
    let [first, second] = ended;
    first.ended(0);
    second.says(&["proj.one` is being removed by another calve"]).ended(1);
}

#[test]
fn a_reset_says_on_a_terminal_what_is_lost_and_what_comes_instead() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    let question = format!(
        "Discard everything written to the service `db` of `{}`? It becomes a new clone of the template `shop` (postgres). [y/N]",
        one.display()
    );
    for (answer, rows) in [("n\n", vec![1, 2, 3, 4]), ("y\n", vec![1, 2, 3])] {
        let mut terminal = Terminal::new(&shop.within(&one, &["reset"]).command());
        terminal.after(&question, answer);
        terminal.end();
        assert_eq!(shop.rows(&one), rows);
    }
}
