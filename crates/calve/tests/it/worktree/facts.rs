//! The lines that `calve worktree add` ends with, where much has to be said, and the same facts for programs and agents.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::mcp::Session;
use super::ports::number;
use super::services::{POSTGRES, Shop};

/// The subjects, and words about each, the most important first.
const SAID: [(&str, &str); 15] = [
    ("files", "added `"),
    ("dependencies", "`node_modules` does not fit `package-lock.json`: run `npm ci`"),
    ("services", "data: `db` from `"),
    ("services", "the service `cache` has no data: there is no template `nosuch`"),
    ("services", "service: DATABASE_URL=postgresql://"),
    ("ports", "ports: WEB_PORT="),
    ("other_values", "`.env` sets DATABASE_URL too"),
    ("branch", "warning: the server of `origin` could not be asked whether it has a branch `"),
    ("warning", "warning: git's hook post-checkout failed"),
    ("references", "references to other worktrees: 1 repaired, 0 dropped"),
    ("references", "`node_modules/out` still names `"),
    ("uncommitted", "1 uncommitted change stays in `"),
    ("left", "left out `a.log`: excluded by .calve.toml"),
    ("env_files", "wrote the variables to `.env.local`"),
    ("cloning", "the project proposes spares, for which new worktrees need not wait"),
];

#[test]
fn everything_at_once_is_said_in_eight_lines_to_people_programs_and_agents() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let repo = &shop.repo;
    let services = "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n[services.cache]\ntemplate = 'nosuch'\n";
    let worktree = "[worktree]\nexclude = ['*.log']\nspares = 1\nenv-file = '.env.local'\n";
    repo.write(".calve.toml", &format!("{worktree}[ports]\nweb = {}\n{services}", number(320)));
    repo.write("package-lock.json", "{\"lockfileVersion\": 3, \"packages\": {}}\n");
    repo.commit("all of it");
    repo.settle();
    repo.write(".env", "DATABASE_URL=postgresql://localhost/shared\n");
    repo.write("a.log", "");
    repo.write("src/main.ts", "export {} // changed\n");
    // One leads to another place in the donor, and one to a file that the new worktree lacks.
    symlink(repo.join("src"), repo.join("node_modules/in")).unwrap();
    symlink(repo.join("a.log"), repo.join("node_modules/out")).unwrap();
    let hook = repo.join(".git/hooks/post-checkout");
    fs_err::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs_err::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    // A clone that follows one branch, of a server that is gone.
    repo.git(["config", "remote.origin.url", repo.spot.join("away").to_str().unwrap()]);
    repo.git(["config", "remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main"]);
    shop.within(&repo.path, &["up", "db", "-q"]).run();

    let added = repo.adding("one").arg("--json").succeeds();
    let facts = added.json()["facts"].clone();
    let facts: Vec<(&str, &str)> =
        facts.as_array().unwrap().iter().map(|fact| (word(fact, "about"), word(fact, "text"))).collect();
    let lines: Vec<&str> = added.stderr.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 8, "{}", added.stderr);
    assert!(lines[0].starts_with("added `") && !lines[0].contains("; "), "{}", added.stderr);
    assert_eq!(facts.len(), SAID.len(), "{facts:#?}");
    for ((about, text), (wanted, words)) in facts.iter().zip(SAID) {
        assert!(*about == wanted && text.contains(words), "{about}: {text}: {wanted}: {words}");
        assert!(added.stderr.contains(text), "{text}: {}", added.stderr);
    }

    let session = Session::with(&shop.home(), &[&repo.path]);
    let made = session.call("create_worktree", json!({"branch": "two"})).unwrap();
    let notes: Vec<&str> = made["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (_, words) in SAID {
        assert!(notes.iter().any(|note| note.contains(words)), "{words}: {notes:#?}");
    }
}

fn word<'f>(fact: &'f Value, name: &str) -> &'f str {
    fact[name].as_str().unwrap()
}

#[test]
fn that_the_template_is_newer_is_told_of_clones_of_clones_too() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (main, repo) = (&shop.repo.path, &shop.repo);
    const NEWER: &str = "; the template is newer";
    shop.within(main, &["up", "-q"]).succeeds();
    let says = |branch: &str, from: &str| {
        let added = repo.adding(branch).args(["--from", from]).succeeds();
        let data = added.stderr.lines().find(|line| line.starts_with("data: ")).unwrap().to_owned();
        data.ends_with(NEWER)
    };
    assert!(!says("one", "main"));
    let sql = "CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (7)";
    let rebuild =
        ["db", "template", "create", "shop", "-q", "--rebuild", "--engine", POSTGRES, "--", "psql", "-Xqc", sql];
    shop.within(main, &rebuild).succeeds();
    // The clones are younger than the template, and their data is not.
    assert!(says("two", "main") && says("three", "two") && says("four", "three"));
    shop.within(repo.spot.join("proj.four"), &["reset", "--yes"]).succeeds();
    assert!(!says("five", "four") && !says("six", "five"));
    // A promoted template is that of the data that it was made from.
    shop.within(main, &["db", "promote", "--yes", "three"]).succeeds();
    assert!(!says("seven", "three") && says("eight", "five"));
    shop.within(main, &["down", "-q"]).succeeds();
}

#[test]
fn a_plan_says_where_the_data_would_come_from_and_makes_none() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let (main, repo) = (&shop.repo.path, &shop.repo);
    let planned = |words: &[&str]| repo.adding("topic").arg("-n").args(words);
    let none_there = format!("data: `db` from the template `shop` (`{}` has none to clone)\n", main.display());
    planned(&[]).succeeds().says(&[&none_there]);
    shop.within(main, &["up", "-q"]).succeeds();
    let from_main = format!("data: `db` from `{}`, whose server runs\n", main.display());
    planned(&[]).succeeds().says(&[&from_main]);
    planned(&["--data-from", "template"]).succeeds().says(&["data: `db` from the template `shop`\n"]);
    assert!(!planned(&["--data-from", "none"]).succeeds().stderr.contains("data: "));
    let data = shop.data();
    let receipt = planned(&["--json"]).succeeds().json();
    let service = &receipt["services"][0];
    assert_eq!(
        (&service["name"], &service["data_from"], &service["state"]),
        (&json!("db"), &json!(main), &json!("absent"))
    );
    repo.adding("bare").args(["--data-from", "none"]).succeeds();
    let refused = planned(&["--data-from", "bare"]).fails(1).hints();
    refused.says(&["`bare` has no data for the service `db`"]);
    // The file of the commit counts that would be checked out.
    repo.git(["rm", "-q", ".calve.toml"]);
    repo.commit("no services");
    assert!(!planned(&[]).succeeds().stderr.contains("data: "));
    planned(&["--base", "HEAD~1"]).succeeds().says(&[&from_main]);
    repo.write(
        ".calve.toml",
        "[services.db]\ntemplate = 'nosuch'\n[services.made]\nengine = 'postgres'\ncreate = 'x'\n",
    );
    repo.commit("other services");
    planned(&[]).succeeds().says(&[
        "the service `db` has no data: there is no template `nosuch`",
        "the service `made` has no data: its create command is not approved; `calve hook approve` shows it",
    ]);
    planned(&["--yes"]).succeeds().says(&["data: `made` from the template `made-", ", which is made first"]);
    repo.write(".calve.toml", "hooks.post-add = 'touch ran'\n[services.db]\ntemplate = 'nosuch'\n");
    repo.commit("hook");
    planned(&[]).fails(3).says(&[
        "would add `",
        "the post-add hook of this project is not approved",
        "the post-add hook is not approved; `calve hook approve` shows it",
    ]);
    assert!(!planned(&["--no-hooks"]).succeeds().stderr.contains("hook"));
    for dry in [&["-n"][..], &[]] {
        let refused = repo.adding("topic").args(["--yes", "--data-from", "template"]).args(dry).fails(1);
        refused.says(&["there is no template `nosuch`"]);
    }
    repo.write(".calve.toml", "[services.db\n");
    repo.commit("wrong");
    repo.git(["revert", "--no-edit", "HEAD"]);
    planned(&["--base", "HEAD~1", "--no-hooks"])
        .succeeds()
        .says(&["warning: no ports would be leased and no data cloned: `.calve.toml`"]);
    assert_eq!(shop.data(), data);
    shop.within(main, &["down", "-q"]).succeeds();
}
