//! With `--json`, a command that fails prints one `calve.error/1` document.

use std::path::Path;

use calve_testkit::git;
use serde_json::{Value, json};

use crate::program::{calve, keys};
use crate::spot::Spot;

const KEYS: [&str; 10] =
    ["code", "errno", "errno_name", "hint", "message", "operation", "path", "refused", "remedy", "schema"];

#[track_caller]
fn fails(spot: &Spot, line: &str, code: i32) -> Value {
    let ran = calve(line.split(' ')).env("CALVE_HOME", spot.join("home")).within(spot).fails(code);
    let error = ran.json();
    assert_eq!((keys(&error), &error["schema"]), (KEYS.to_vec(), &json!("calve.error/1")), "{line}");
    // People read the same sentence.
    assert!(ran.stderr.contains(error["message"].as_str().unwrap()), "{line}: {}", ran.stderr);
    assert!(ran.stderr.contains(error["hint"].as_str().unwrap()), "{line}: {}", ran.stderr);
    error
}

#[test]
fn a_failing_command_prints_its_error_as_json_too() {
    let spot = Spot::anywhere();
    spot.tree("").file("a", b"1").file("b", b"2").dir("tree");
    let exists = fails(&spot, "cp --json -T a b", 1);
    assert_eq!(
        (&exists["code"], &exists["path"], &exists["remedy"]),
        (&json!("ERR_CALVE_DESTINATION_EXISTS"), &json!("b"), &json!("choose_another_destination_or_replace"))
    );
    for line in ["cp --json none new", "rm --json none", "probe --json none"] {
        let missing = fails(&spot, line, 1);
        assert_eq!(
            (&missing["code"], &missing["errno_name"]),
            (&json!("ERR_CALVE_MISSING"), &json!("ENOENT")),
            "{line}"
        );
    }
    let refused = fails(&spot, "cp --json --strategy snapshot a new", 3);
    assert_eq!(refused["refused"][0]["strategy"], "snapshot");
    assert_eq!(fails(&spot, "git clone --json none new", 2)["code"], "ERR_CALVE_USAGE");
    assert_eq!(fails(&spot, "cp --json a", 2)["code"], "ERR_CALVE_USAGE");
    for (line, exit_code, code, remedy) in [
        ("worktree list --json", 1, "ERR_CALVE_GIT", "enter_repository"),
        ("git clone --json nonsense://x new", 2, "ERR_CALVE_USAGE", "give_url"),
        ("db start --json none", 1, "ERR_CALVE_DB", "create_template"),
        ("db start --json ../x", 2, "ERR_CALVE_USAGE", "read_help"),
        ("template pull --json Bad", 2, "ERR_CALVE_USAGE", "name_image"),
        ("volume create --json .x --size 1G", 2, "ERR_CALVE_USAGE", "correct_name"),
    ] {
        let document = fails(&spot, line, exit_code);
        assert_eq!((&document["code"], &document["remedy"]), (&json!(code), &json!(remedy)), "{line}: {document}");
    }
    // It prints one document.
    let ran = calve(["cp", "--json", "a", "none", "tree"]).within(&spot).fails(1);
    assert_eq!(ran.json()["schema"], "calve.clones/1");
    let ran = calve(["rm", "--json", "none", "a"]).within(&spot).fails(1);
    assert_eq!(ran.json()["removed"].as_array().unwrap().len(), 1);
    let ran = calve(["cp", "none", "new"]).within(&spot).fails(1);
    assert_eq!(ran.stdout, "");
}

#[test]
fn an_error_of_a_repositorys_clone_has_its_kind_and_path() {
    let spot = Spot::anywhere();
    git(&spot, ["init", "-q", "source"]);
    spot.tree("").file("full/a", b"1");
    let url = format!("file://{}", spot.join("source").display());
    let exists = fails(&spot, &format!("git clone --json {url} full"), 1);
    assert_eq!((&exists["code"], &exists["path"]), (&json!("ERR_CALVE_DESTINATION_EXISTS"), &json!("full")));
    assert_eq!(exists["errno_name"], "EEXIST");
    let missing = fails(&spot, &format!("git clone --json {url}/none new"), 1);
    assert_eq!(missing["code"], "ERR_CALVE_GIT");
}

#[test]
fn a_home_that_cannot_be_made_is_named() {
    let spot = Spot::anywhere();
    spot.tree("").file("file", b"").dir("tree");
    for (words, below) in [(&["run", "--json", "--", "true"][..], "runs"), (&["spares", "list", "--json"], "")] {
        let home = spot.join("file/home");
        let error = calve(words.iter().copied()).env("CALVE_HOME", &home).within(spot.join("tree")).fails(1).json();
        assert_eq!((&error["errno_name"], &error["operation"]), (&json!("ENOTDIR"), &json!("create directory")));
        let path = error["path"].as_str().unwrap();
        assert!(Path::new(path).starts_with(&home) && path.ends_with(below), "{error}");
    }
}
