//! Data of services after the program of the database was upgraded, or removed.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::services::{POSTGRES, Shop};

/// As after an upgrade of the system: of a program in a directory of its own, which is gone, and of one in the place of another version.
#[test]
fn data_of_another_version_of_the_engine_says_what_to_do_and_stays() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    shop.within(&one, &["down", "-q"]).succeeds();
    let data = PathBuf::from(shop.status(&one)[0]["data_directory"].as_str().unwrap());
    let with = |file: &Path, text: &str, words: &[&str]| {
        let before = fs_err::read_to_string(file).unwrap();
        fs_err::write(file, text).unwrap();
        let refused = shop.within(&one, &["up"]).fails(1).says(words);
        let refused = refused.says(&["the service `db` was not started: ", "calve reset db"]);
        refused.says(&["install that version again to keep the data; or rebuild the template `shop`"]);
        fs_err::write(file, before).unwrap();
        assert_eq!(shop.rows(&one), [1, 2, 3, 4]);
        shop.within(&one, &["down", "-q"]).succeeds();
    };
    with(
        &data.join("PG_VERSION"),
        "9\n",
        &["its data cannot be used: it was made by PostgreSQL 9, and the server is 1"],
    );
    let moved = |file: &Path| {
        let mut document: Value = serde_json::from_str(&fs_err::read_to_string(file).unwrap()).unwrap();
        document["program"] = json!("/usr/lib/postgresql/9/bin/postgres");
        document["version"] = json!("postgres (PostgreSQL) 9.6");
        document.to_string()
    };
    let gone =
        "`/usr/lib/postgresql/9/bin/postgres`, which made the template `shop`, is gone: postgres (PostgreSQL) 9.6";
    let service = data.with_file_name("service.json");
    with(&service, &moved(&service), &[gone]);
    // A template of that version is made again by the one that is installed.
    let template = shop.home().join("db/templates/shop/template.json");
    let directory = template.parent().unwrap();
    fs_err::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs_err::write(&template, moved(&template)).unwrap();
    let refused = shop.within(&one, &["db", "start", "shop"]).fails(1).says(&[gone]);
    refused.says(&["create it again: calve db template create shop --rebuild"]);
    let create = ["db", "template", "create", "shop", "-q", "--rebuild", "--engine", POSTGRES, "--", "psql", "-Xqc"];
    shop.within(&one, &create).arg("CREATE TABLE t (a int); INSERT INTO t VALUES (7)").succeeds();
    shop.within(&one, &["reset", "db", "--yes"]).succeeds();
    assert_eq!(shop.rows(&one), [7]);
}

/// The server of the original runs meanwhile, and its clients stay with it.
#[test]
fn a_copied_home_has_sockets_of_its_own() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let one = shop.repo.added("one");
    shop.sql(&one, "INSERT INTO t VALUES (4)");
    let url = shop.status(&one)[0]["url"].clone();
    let copy = shop.repo.spot.join("copy");
    // Also of files that the server changes meanwhile.
    let _ = std::process::Command::new("cp")
        .arg("-a")
        .args([&shop.home(), &copy])
        .stderr(std::process::Stdio::null())
        .status();
    let in_copy = |words: &[&str]| shop.within(&one, words).env("CALVE_HOME", &copy);
    in_copy(&["up", "-q"]).succeeds();
    let status = in_copy(&["status", "--json"]).succeeds().json();
    assert_ne!(status["services"][0]["url"], url);
    let again = in_copy(&["status", "--json"]).succeeds().json();
    assert_eq!(again["services"][0]["url"], status["services"][0]["url"]);
    in_copy(&["exec", "sh", "-c", "psql -Xqc 'DELETE FROM t' \"$DATABASE_URL\""]).succeeds();
    in_copy(&["down", "-q", "--force"]).succeeds();
    assert_eq!(shop.rows(&one), [1, 2, 3, 4]);
    assert_eq!(shop.status(&one)[0]["url"], url);
}
