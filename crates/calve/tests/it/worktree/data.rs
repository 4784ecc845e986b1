//! `calve db promote`: the data of worktrees as new templates.

use std::path::Path;

use calve_testkit::{matrix, require_program};
use serde_json::json;

use super::repo::git;
use super::services::{MARIADB, POSTGRES, Shop};
use super::services_written::{keys, with_cache};
use crate::terminal::Terminal;

fn is_promoted(engine: &'static str) {
    let Some(shop) = Shop::new(engine) else { return };
    let main = &shop.repo.path;
    let db = |words: &[&str]| shop.within(main, &[&["db"], words].concat());
    let [one, old] = ["one", "old"].map(|branch| shop.repo.added(branch));
    // In use.
    shop.sql(&one, "INSERT INTO t VALUES (9)");
    assert_eq!(shop.state(&one), "running");
    // Nothing changes without a yes.
    let added = |branch: &str| {
        shop.repo.adding(branch).args(["--data-from", "template"]).succeeds();
        shop.rows(shop.repo.spot.join(format!("proj.{branch}")))
    };
    let planned = db(&["promote", "-n", "--json", "one"]).succeeds();
    assert_eq!(planned.json()["templates"], json!([{ "template": "shop", "promoted": false }]));
    planned.says(&["would make the data of `db` in `one` the template `shop`"]);
    db(&["promote", "one"]).fails(3).says(&["needs confirmation, but there is no terminal"]).hints();
    for (answer, is_promoted) in [("\n", false), ("y\n", true)] {
        assert_eq!(added(&format!("before-{is_promoted}")), [1, 2, 3]);
        let mut terminal = Terminal::new(&db(&["promote", "one"]).command());
        terminal.after("Replace the template `shop` by the data of `db` in `one`? [y/N]", answer);
        let (code, said) = terminal.end();
        assert_eq!(
            (code, said.contains("the template `shop` has the data of `one` now")),
            (Some(0), is_promoted),
            "{said}"
        );
    }
    assert_eq!(added("after"), [1, 2, 3, 9]);
    assert_eq!((shop.rows(&old), shop.rows(&one)), (vec![1, 2, 3], vec![1, 2, 3, 9]));
    let promoted = db(&["promote", "--yes", "--json", "one"]).succeeds().json();
    assert_eq!(promoted["templates"], json!([{ "template": "shop", "promoted": true }]));
    // It is no result of a command, and no command replaces it by accident.
    let create = ["template", "create", "shop", "--engine", engine];
    let hint = "remove it with `calve db template remove shop`, or replace it with `--rebuild`";
    db(&create).fails(1).says(&["holds the data of a worktree", hint]);
    if engine == POSTGRES {
        // Its data is in the template.
        shop.within(main, &["worktree", "remove", "one"]).succeeds();
    }
    db(&[&create[..], &["--rebuild"]].concat()).succeeds();
    db(&["gc"]).succeeds();
    let left: Vec<String> = shop.data().into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn data_is_promoted() {
    matrix([POSTGRES, MARIADB]).for_each(is_promoted);
}

/// Once the template is another one or gone, the data that it got is nowhere else.
#[test]
fn promoted_data_stays_when_its_template_does_not() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    let [one, two] = ["one", "two"].map(|branch| shop.repo.added(branch));
    shop.sql(&one, "INSERT INTO t VALUES (11)");
    shop.sql(&two, "INSERT INTO t VALUES (22)");
    let promote = |branch: &str| shop.within(main, &["db", "promote", "--yes", branch]).succeeds();
    let remove = |branch: &str| shop.within(main, &["worktree", "remove", branch]);
    let stays = |branch: &str| remove(branch).fails(1).says(&["may have changes found nowhere else"]).hints();
    promote("one");
    // It has the same, and nothing of its own.
    shop.repo.adding("three").args(["--data-from", "template"]).succeeds();
    promote("two");
    stays("one");
    stays("three");
    assert_eq!((shop.rows(&one), shop.rows(&two)), (vec![1, 2, 3, 11], vec![1, 2, 3, 22]));
    shop.within(main, &["db", "template", "remove", "shop"]).succeeds();
    stays("two");
    promote("two");
    remove("two").succeeds();
}

#[test]
fn rows_without_a_log_are_in_a_template_only_if_the_server_was_stopped() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    let one = shop.repo.added("one");
    let promote = || shop.within(main, &["db", "promote", "--yes", "one"]).succeeds();
    let lacks =
        "warning: the template lacks the rows of UNLOGGED tables, which are kept only if the server is stopped first";
    shop.sql(&one, "CREATE UNLOGGED TABLE u (a int)");
    assert!(!promote().stderr.contains(lacks));
    shop.sql(&one, "INSERT INTO u VALUES (1)");
    promote().says(&[lacks]);
    shop.within(main, &["worktree", "remove", "one"]).fails(1).says(&["may have changes found nowhere else"]);
    shop.within(&one, &["down"]).succeeds();
    assert!(!promote().stderr.contains(lacks));
    shop.within(main, &["worktree", "remove", "one"]).succeeds();
}

#[test]
fn what_has_no_data_and_what_was_promoted_before_a_failure_is_told() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    let db = |words: &[&str]| shop.within(&one, &[&["db"], words].concat());
    let nothing = ["`main` has no data of any service", "`calve up` in that worktree clones the data of its services"];
    db(&["promote", "--yes", "main"]).fails(1).says(&nothing);
    db(&["promote", "--yes", "nowhere"]).fails(1).hints();
    db(&["promote", "--yes", "--service", "cache", "one"]).fails(1).says(&["no data of a service `cache`"]).hints();
    // A template that was removed is made anew.
    db(&["template", "remove", "shop"]).succeeds();
    db(&["promote", "--yes", "one"]).succeeds();
    assert_eq!(shop.rows(shop.repo.added("two")), [1, 2, 3]);
    // A service whose data is broken does not hide that the one before it was promoted.
    shop.repo.write(".calve.toml", "[services.db]\ntemplate = 'shop'\n[services.jobs]\ntemplate = 'shop'\n");
    shop.repo.commit("two");
    shop.repo.settle();
    let one = shop.repo.added("three");
    let status = shop.status(&one);
    assert_eq!(status[1]["name"], "jobs", "{status}");
    fs_err::remove_dir_all(status[1]["data_directory"].as_str().unwrap()).unwrap();
    let ran = shop.within(&one, &["db", "promote", "--yes", "--json", "three"]).fails(1);
    assert_eq!(ran.json()["templates"], json!([{ "template": "shop", "promoted": true }]));
}

/// The file names another template since the data was made. Data becomes none that it was not made of: it lacks what that has.
#[test]
fn a_reset_takes_the_template_that_is_wanted_now_and_promotion_that_of_the_data() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    shop.template("other", "CREATE TABLE t (a int); INSERT INTO t VALUES (9)");
    shop.sql(main, "INSERT INTO t VALUES (4)");
    let wants = |line: &str| {
        shop.repo.write(".calve.toml", &format!("[services.db]\nenv = 'DATABASE_URL'\n{line}\n"));
        shop.repo.commit("other");
    };
    let planned = || {
        let planned = shop.within(main, &["db", "promote", "-n", "--json", "main"]).succeeds().json();
        planned["templates"][0]["template"].as_str().unwrap().to_owned()
    };
    let reset = || shop.within(main, &["reset", "--yes"]).succeeds();
    wants("template = 'other'");
    assert_eq!((shop.rows(main), planned()), (vec![1, 2, 3, 4], "shop".into()));
    reset();
    assert_eq!((shop.rows(main), planned()), (vec![9], "other".into()));
    wants("engine = 'postgres'");
    assert_eq!(planned(), "other");
    reset();
    assert!(planned().starts_with("db-"));
}

/// Its URL is another one then.
#[test]
fn a_reset_to_another_engine_asks_and_rewrites_files() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    if !require_program("redis-server") {
        return;
    }
    let config =
        |wanted: &str| format!("worktree.env-file = '.env.local'\n[services.db]\nenv = 'DATABASE_URL'\n{wanted}\n");
    shop.repo.write(".calve.toml", &config("template = 'shop'"));
    shop.repo.commit("a file of variables");
    let one = shop.repo.added("one");
    let has_url = |start: &str| {
        let file = fs_err::read_to_string(one.join(".env.local")).unwrap();
        assert!(file.contains(&format!("DATABASE_URL={start}")), "{file}");
    };
    has_url("postgres");
    fs_err::write(one.join(".calve.toml"), config("engine = 'redis'\n[services.more]\ntemplate = 'shop'")).unwrap();
    let before = shop.data();
    shop.within(&one, &["up"]).fails(3).says(&[
        "the service `db` was made with postgres, but .calve.toml now asks for redis",
        "to go on with its data, name its template or engine again; `calve reset db` discards the data",
    ]);
    assert_eq!(shop.data(), before, "nothing is made before it is refused");
    // Nothing was written to it.
    let refused = shop.within(&one, &["reset"]).fails(3).hints();
    refused.says(&["a reset would discard the postgres data of the service `db` of `"]);
    has_url("postgres");
    shop.within(&one, &["reset", "--yes"]).succeeds().says(&["reset `db`"]);
    has_url("unix://");
    let url = shop.status(&one)[0]["url"].as_str().unwrap().to_owned();
    shop.within(&one, &["exec", "--", "redis-cli", "-s", &url["unix://".len()..], "PING"]).succeeds();
    // A worktree with the other engine cannot use that data.
    let from =
        |branch: &str, base: &str| shop.repo.adding(branch).args(["--data-from", "one", "--base", base]).succeeds();
    from("two", "main").says(&["data: `db` from the template `shop`"]);
    // The file of the new worktree's own commit counts.
    git(&one, ["commit", "-qam", "redis"]);
    from("three", "one").says(&["proj.one`, whose server runs", "DATABASE_URL=unix:"]);
}

#[test]
fn keys_are_promoted() {
    for engine in matrix(["redis", "valkey"]) {
        let services = "[services.cache]\ntemplate = 'cache'\nenv = 'REDIS_URL'\n\
            [services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n";
        let fill = "printf 'SET session:1 a\\nSET session:2 b\\nSADD colours red green blue\\nHSET h a 1 b 2\\nSELECT 3\\nSET x y\\n' \
            | redis-cli -s \"$REDIS_SOCKET\"";
        let Some(shop) = with_cache(engine, services, fill) else { continue };
        let one = shop.repo.added("one");
        let keys = |worktree: &Path, commands: &str| keys(&shop, worktree, commands).succeeds().stdout;
        keys(&one, "SET session:3 c\\nDEL session:1\\nSET cart:9 z\\n");
        shop.sql(&one, "INSERT INTO t VALUES (4)");
        shop.within(&one, &["db", "promote", "--yes", "--service", "cache", "one"]).succeeds();
        // Debugging commands could make a server read files.
        assert!(keys(&one, "DEBUG DIGEST\\n").contains("DEBUG command not allowed"));
        assert_eq!(keys(&shop.repo.added("three"), "GET cart:9\\n"), "z\n");
        for worktree in ["one", "three"] {
            shop.within(shop.repo.spot.join(format!("proj.{worktree}")), &["down"]).succeeds();
        }
    }
}

#[test]
fn an_engines_own_programs_find_its_only_service() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let main = &shop.repo.path;
    let exec = |words: &[&str], stdout: &str, stderr: &str| {
        let command = shop.within(main, &[&["exec"], words].concat()).env("PGHOST", "/nowhere");
        let exec = command.env("PGTZ", "Asia/Tokyo").succeeds();
        assert_eq!((&*exec.stdout, &*exec.stderr), (stdout, stderr));
    };
    exec(&["psql", "-XqAtc", "SELECT count(*) FROM t"], "3\n", "started `db`\n");
    shop.repo.write(".calve.toml", "services.db.template = 'shop'\nservices.other.template = 'shop'\n");
    let script = "echo $PGHOST $PGTZ; psql -XqAtc 'SELECT count(*) FROM t' $OTHER_URL";
    exec(&["sh", "-c", script], "\n3\n", "started `other`\n");
    shop.repo.write(".calve.toml", "hooks.post-add = 'echo at=$PGHOST'\nservices.db.template = 'shop'\n");
    shop.repo.commit("hook");
    let added = shop.within(main, &["worktree", "add", "--yes", "one"]).env("PGHOST", "/nowhere").succeeds();
    assert!(added.stderr.contains("at=/") && !added.stderr.contains("at=/nowhere"), "{}", added.stderr);
}

/// One of a removed worktree's services has kept its data, because only that was written to.
#[test]
fn data_that_was_kept_goes_to_a_new_worktree_and_its_siblings_are_made() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.repo.write(
        ".calve.toml",
        "[services.jobs]\ntemplate = 'shop'\n[services.db]\nenv = 'DATABASE_URL'\ntemplate = 'shop'\n",
    );
    shop.repo.commit("two");
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    shop.within(&one, &["down", "-q"]).succeeds();
    // Also of a repository that was moved.
    let moved = shop.repo.spot.join("moved");
    fs_err::rename(&shop.repo.path, &moved).unwrap();
    fs_err::remove_dir_all(&one).unwrap();
    let record = || {
        let kept = shop.data().into_iter().find(|name| name.starts_with("db-")).unwrap();
        fs_err::read_to_string(shop.home().join("db/services").join(kept).join("service.json")).unwrap()
    };
    let before = record();
    shop.within(&moved, &["worktree", "prune", "-n"]).succeeds();
    let words = ["worktree", "prune", "-n", "--lose-data"];
    shop.within(&moved, &words).succeeds().says(&["its data goes too: service `db`"]);
    assert_eq!(record(), before, "a dry run writes");
    shop.within(&moved, &["worktree", "prune"]).succeeds().says(&["kept the data of the service `db`"]);
    fs_err::rename(&moved, &shop.repo.path).unwrap();
    let kept = shop.data().into_iter().find(|name| name.starts_with("db-")).unwrap();
    let data = format!("data: `db` from the kept data `{kept}`, `jobs` from the template `shop`");
    for plan in [&["-n"][..], &[]] {
        shop.repo.adding("two").args(["--data-from", &kept]).args(plan).succeeds().says(&[&data]);
    }
    assert_eq!(shop.rows(shop.repo.spot.join("proj.two")), [1, 2, 3, 4]);
}
