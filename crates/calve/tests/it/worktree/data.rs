//! `calve db promote`: the data of worktrees, beside their templates and as the new ones.

use std::path::Path;

use calve_testkit::require_program;
use serde_json::{Value, json};

use super::services::{MARIADB, POSTGRES, Shop};
use crate::terminal::Terminal;

/// Returns in what a worktree differs from its template: kind and name, and the numbers of rows on both sides.
fn differing(document: &Value) -> Vec<(String, Value, Value)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |found: &Value| {
        let name = format!("{} {}", text(&found["kind"]), text(&found["name"]));
        (name, found["before"]["rows"].clone(), found["after"]["rows"].clone())
    };
    document["templates"][0]["differences"].as_array().unwrap().iter().map(one).collect()
}

fn is_compared_and_promoted(engine: &'static str) {
    let Some(shop) = Shop::new(engine) else { return };
    let main = &shop.repo.path;
    let db = |words: &[&str]| shop.within(main, &[&["db"], words].concat());
    let diff = |branch: &str| differing(&db(&["promote", "-n", "--json", branch]).succeeds().json());
    let [one, two, old] = ["one", "two", "old"].map(|branch| shop.repo.added(branch));
    let schema = if engine == POSTGRES { "public." } else { "" };
    let table = |name: &str| format!("table {schema}{name}");
    assert_eq!(diff("one"), []);
    db(&["promote", "-n", "one"]).succeeds().says(&["no table differs"]);
    // In use, and as many rows as before.
    shop.sql(&one, "UPDATE t SET a = 4 WHERE a = 3");
    assert_eq!(diff("one"), [(table("t"), json!(3), json!(3))]);
    shop.sql(&one, "UPDATE t SET a = 3 WHERE a = 4");
    assert_eq!(diff("one"), [], "neither order nor history counts");
    shop.sql(&one, "INSERT INTO t VALUES (9)");
    shop.sql(&one, "CREATE TABLE u (b int NOT NULL)");
    shop.sql(&one, "CREATE VIEW v AS SELECT a FROM t");
    shop.sql(&two, "ALTER TABLE t ADD COLUMN c float");
    shop.within(&two, &["down"]).succeeds();
    let view = format!("view {schema}v");
    let new = [(table("t"), json!(3), json!(4)), (table("u"), Value::Null, json!(0)), (view, Value::Null, Value::Null)];
    assert_eq!(diff("one"), new);
    let said = db(&["promote", "-n", "two"]).succeeds().stderr;
    assert!(said.contains(".t: rows differ, 3 in each; definition differs\n  "), "{said}");
    assert!(["+c double precision", "+  `c` float"].iter().any(|column| said.contains(column)), "{said}");
    assert_eq!(shop.state(&one), "running");
    // What changes is shown, and nothing changes without a yes.
    let added = |branch: &str| {
        shop.repo.adding(branch).args(["--data-from", "template"]).succeeds();
        shop.rows(shop.repo.spot.join(format!("proj.{branch}")))
    };
    db(&["promote", "-n", "one"]).succeeds().says(&[".t: rows differ, 3 and 4", ".u: only in `one` (0 rows)"]);
    db(&["promote", "one"]).fails(3).says(&[".t: rows differ"]).hints();
    for (answer, is_promoted) in [("\n", false), ("y\n", true)] {
        assert_eq!(added(&format!("before-{is_promoted}")), [1, 2, 3]);
        let mut terminal = Terminal::new(&db(&["promote", "one"]).command());
        terminal.after("Replace the template `shop`? [y/N]", answer);
        let (code, said) = terminal.end();
        assert_eq!(
            (code, said.contains("the template `shop` has the data of `one` now")),
            (Some(0), is_promoted),
            "{said}"
        );
    }
    assert_eq!(added("after"), [1, 2, 3, 9]);
    assert_eq!((shop.rows(&old), shop.rows(&one)), (vec![1, 2, 3], vec![1, 2, 3, 9]));
    let promoted = db(&["promote", "--yes", "--json", "one"]).succeeds().says(&["no table differs"]).json();
    assert_eq!(promoted["templates"], json!([{ "template": "shop", "promoted": true, "differences": [] }]));
    // It is no result of a command, and no command replaces it by accident.
    let create = ["template", "create", "shop", "--engine", engine];
    let hint = "remove it with `calve db template remove shop`, or replace it with --rebuild";
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
fn data_is_compared_and_promoted_on_postgres() {
    is_compared_and_promoted(POSTGRES);
}

#[test]
fn data_is_compared_and_promoted_on_mariadb() {
    is_compared_and_promoted(MARIADB);
}

/// Statements for MariaDB and MySQL, and what is said of each.
const OF_MARIADB: [(&str, &str); 5] = [
    ("CREATE DATABASE other", "database other: only in"),
    ("CREATE PROCEDURE p() SELECT 1", "procedure test.p: only in"),
    ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "trigger test.g: only in"),
    ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "event test.e: only in"),
    ("CREATE TABLE `odd``name` (`b\\` float)", "table test.odd`name: only in"),
];

/// Each statement changes one thing that is named.
#[test]
fn what_a_database_holds_is_told_apart() {
    for (engine, changes) in [
        (
            POSTGRES,
            &[
                ("CREATE DATABASE other", "database other: only in"),
                ("CREATE SCHEMA shelf", "schema postgres.shelf: only in"),
                ("CREATE TYPE mood AS ENUM ('good')", "type postgres.public.mood: only in"),
                ("CREATE DOMAIN odd AS int CHECK (value % 2 = 1)", "type postgres.public.odd: only in"),
                ("CREATE SEQUENCE s", "sequence postgres.public.s: only in"),
                ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function postgres.public.f(): only in"),
                ("CREATE INDEX ON t ((a + 1))", "table postgres.public.t: definition differs\n  +CREATE INDEX"),
                ("GRANT SELECT ON t TO PUBLIC", "table postgres.public.t: definition differs\n  +GRANTS"),
                ("COMMENT ON COLUMN t.a IS 'key'", "table postgres.public.t: definition differs\n  +COMMENT a 'key'"),
                ("CREATE MATERIALIZED VIEW m AS SELECT 1 AS a", "materialized view postgres.public.m: only in"),
                ("CREATE TABLE parts (a int) PARTITION BY LIST (a)", "table postgres.public.parts: only in"),
                (
                    "CREATE TABLE \"odd name\" (\"t\" int, \"calve rows\" int)",
                    "table postgres.public.\"odd name\": only in",
                ),
                ("SELECT lo_from_bytea(0, 'abc')", "large objects postgres.pg_largeobject: rows differ, 0 and 1"),
            ][..],
        ),
        (MARIADB, &OF_MARIADB[..]),
    ] {
        let Some(shop) = Shop::new(engine) else { continue };
        let one = shop.repo.added("one");
        for (change, _) in changes {
            shop.sql(&one, change);
        }
        let said = shop.within(&one, &["db", "promote", "-n", "one"]).succeeds().stderr;
        for (change, found) in changes {
            let wanted = found.split("\n  ").all(|part| said.contains(part));
            assert!(wanted, "{change}: {found:?} is not in\n{said}");
        }
    }
}

#[test]
fn what_has_no_data_is_told() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    let db = |words: &[&str]| shop.within(&one, &[&["db"], words].concat());
    let nothing = ["`main` has no data of any service", "`calve up` in that worktree"];
    db(&["promote", "--yes", "main"]).fails(1).says(&nothing);
    db(&["promote", "-n", "nowhere"]).fails(1).hints();
    db(&["promote", "-n", "--service", "cache", "one"]).fails(1).says(&["no data of a service `cache`"]).hints();
    // A template that was removed is made anew.
    db(&["template", "remove", "shop"]).succeeds();
    db(&["promote", "--yes", "one"]).succeeds().says(&["table postgres.public.t: only in `one` (3 rows)"]);
    assert_eq!(shop.rows(shop.repo.added("two")), [1, 2, 3]);
}

#[test]
fn keys_are_compared_and_promoted() {
    for engine in ["redis", "valkey"] {
        let program = format!("{engine}-server");
        let installed = Path::new("/usr/local/valkey/bin").join(&program);
        if !installed.exists() && !require_program(&program) {
            continue;
        }
        let Some(shop) = Shop::new(POSTGRES) else { return };
        let services = "[services.cache]\ntemplate = 'cache'\nenv = 'REDIS_URL'\n\
            [services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n";
        shop.repo.write(".calve.toml", services);
        shop.repo.commit("two services");
        let create = ["db", "template", "create", "cache", "-q", "--engine", engine, "--", "sh", "-c"];
        let fill = "printf 'SET session:1 a\\nSET session:2 b\\nSADD colours red green blue\\nHSET h a 1 b 2\\nSELECT 3\\nSET x y\\n' \
            | redis-cli -s \"$REDIS_SOCKET\"";
        shop.within(&shop.repo.path, &create).arg(fill).succeeds();
        let [one, two] = ["one", "two"].map(|branch| shop.repo.added(branch));
        let keys = |worktree: &Path, commands: &str| {
            let program = "printf \"$0\" | redis-cli -s \"${REDIS_URL#unix://}\"";
            shop.within(worktree, &["exec", "--", "sh", "-c", program, commands]).succeeds().stdout
        };
        let diff = |words: &[&str]| shop.within(&one, &[&["db", "promote", "-n"], words].concat()).succeeds().stderr;
        // The order does not count.
        keys(&one, "DEL colours\\nSADD colours blue green red\\n");
        let same = diff(&["one"]);
        assert!(
            ["cache", "shop"].iter().all(|name| same.contains(&format!("differs from the template `{name}`"))),
            "{same}"
        );
        keys(&one, "SET session:3 c\\nDEL session:1\\nHSET h a 2\\nSET cart:9 z\\n");
        shop.sql(&one, "INSERT INTO t VALUES (4)");
        assert_eq!(
            diff(&["one"]),
            "keys 0.*: rows differ, 2 in each\nkeys 0.cart:*: only in `one` (1 row)\nkeys 0.session:*: rows differ, 2 in each\n\
             table postgres.public.t: rows differ, 3 and 4\n"
        );
        keys(&two, "EXPIRE colours 1000\\nSELECT 3\\nFLUSHDB\\n");
        assert_eq!(
            diff(&["two", "--service", "cache"]),
            "keys 0.*: rows differ, 2 in each\nkeys 3.*: only in the template `cache` (1 row)\n"
        );
        shop.within(&one, &["db", "promote", "--yes", "--service", "cache", "one"])
            .succeeds()
            .says(&["keys 0.cart:*: only in `one` (1 row)"]);
        assert!(diff(&["one", "--service", "cache"]).contains("no table differs"));
        assert_eq!(keys(&shop.repo.added("three"), "GET cart:9\\n"), "z\n");
        for worktree in ["one", "two", "three"] {
            shop.within(shop.repo.spot.join(format!("proj.{worktree}")), &["down"]).succeeds();
        }
    }
}

/// A service whose data is broken does not hide that the one before it was promoted.
#[test]
fn what_was_promoted_before_a_failure_is_told() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    shop.repo.write(".calve.toml", "[services.db]\ntemplate = 'shop'\n[services.jobs]\ntemplate = 'shop'\n");
    shop.repo.commit("two");
    shop.repo.settle();
    let one = shop.repo.added("one");
    let status = shop.status(&one);
    assert_eq!(status[1]["name"], "jobs", "{status}");
    fs_err::remove_dir_all(status[1]["data_directory"].as_str().unwrap()).unwrap();
    let ran = shop.within(&one, &["db", "promote", "--yes", "--json", "one"]).fails(1);
    assert_eq!(ran.json()["templates"], json!([{ "template": "shop", "promoted": true, "differences": [] }]));
}
