//! What points out of a worktree: after a move, and against a tree that is named.

use std::path::Path;

use serde_json::Value;

use super::repo::{Repo, write};
use crate::program::Calve;

/// A virtual environment, as `python3 -m venv` makes it at that path.
fn environment(at: &Path) {
    let path = at.display();
    write(&at.join("pyvenv.cfg"), &format!("home = /usr/bin\ncommand = /usr/bin/python3 -m venv {path}\n"));
    write(&at.join("bin/activate"), &format!("deactivate () {{\n}}\nVIRTUAL_ENV=\"{path}\"\nexport VIRTUAL_ENV\n"));
    write(&at.join("bin/tool"), &format!("#!{path}/bin/python3\nprint(1)\n"));
    write(&at.join("bin/system"), "#!/usr/bin/python3\nprint(2)\n");
}

fn check(repo: &Repo, at: &Path) -> Calve {
    repo.calve(["check"]).within(at)
}

#[test]
fn a_moved_worktree_is_put_right() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", ".venv/\n");
    repo.commit("ignore");
    // The only worktree there is, and one of several.
    for (old, new) in [("before", "after"), ("linked", "moved")] {
        let (old, new) = (repo.spot.join(old), repo.spot.join(new));
        match old.ends_with("before") {
            true => drop(repo.git(["clone", "-q", ".", old.to_str().unwrap()])),
            false => drop(repo.add(["topic", "--path", old.to_str().unwrap()])),
        }
        environment(&old.join(".venv"));
        environment(&old.join("tools/py/.venv"));
        check(&repo, &old).succeeds().says(&["nothing in"]);
        fs_err::rename(&old, &new).unwrap();
        if old.ends_with("linked") {
            repo.git(["worktree", "repair", new.to_str().unwrap()]);
        }
        let found = check(&repo, &new).arg("--json").ends(1);
        let found = found.json();
        let paths: Vec<&str> =
            found["findings"].as_array().unwrap().iter().map(|finding| finding["path"].as_str().unwrap()).collect();
        let expected = ["bin/activate", "bin/tool", "pyvenv.cfg"];
        let expected: Vec<String> =
            [".venv", "tools/py/.venv"].iter().flat_map(|at| expected.map(|path| format!("{at}/{path}"))).collect();
        assert_eq!(paths, expected, "{found}");
        // The command that the summary names.
        check(&repo, &new).arg("--fix").succeeds();
        let tool = fs_err::read_to_string(new.join(".venv/bin/tool")).unwrap();
        assert!(tool.starts_with(&format!("#!{}/.venv/bin/python3\n", new.display())), "{tool}");
        assert_eq!(check(&repo, &new).arg("--json").succeeds().json()["findings"], Value::Array(Vec::new()));
    }
}

#[test]
fn only_a_path_at_which_there_is_nothing_is_a_former_one() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "venv/\n");
    repo.commit("ignore");
    // As if it had been made in `/usr`.
    write(&repo.join("venv/pyvenv.cfg"), "home = /usr/bin\n");
    write(&repo.join("venv/bin/activate"), "VIRTUAL_ENV=/usr/venv\n");
    write(&repo.join("venv/bin/tool"), "#!/usr/bin/python3\n");
    check(&repo, &repo.path).succeeds();
    check(&repo, &repo.path).arg("--fix").succeeds();
    assert_eq!(fs_err::read_to_string(repo.join("venv/bin/tool")).unwrap(), "#!/usr/bin/python3\n");
    let against = |tree: &str| check(&repo, &repo.path).args(["--against", tree, "."]);
    against("../nowhere").fails(2).says(&["`../nowhere` is not a directory", "--against"]).hints();
    against("package-lock.json").fails(2).says(&["`package-lock.json` is not a directory"]).hints();
    against("..").run().ended(0);
    // A deleted worktree can still be named.
    let gone = repo.spot.join("gone");
    repo.write("node_modules/.bin/tool", &format!("#!{}/node_modules/node\n", gone.display()));
    let ran = against("../gone").ends(1);
    assert!(ran.stdout.contains("shebang: node_modules/.bin/tool"), "{}", ran.stdout);
    against("../gone").arg("--fix").succeeds();
}

#[test]
fn a_link_by_whose_name_nothing_else_is_here_is_told_as_that() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "node_modules\n");
    repo.commit("ignore");
    repo.write("node_modules/x/index.js", "");
    let one = repo.add(["--no-ignored", "one"]);
    std::os::unix::fs::symlink(repo.join("node_modules"), one.join("node_modules")).unwrap();
    let ran = repo.calve(["add", "--from", one.to_str().unwrap(), "two"]).succeeds();
    let names = format!("warning: `node_modules` still names `{}/node_modules`: ", repo.path.display());
    ran.says(&[&names, ": only this link has that name here; remove it, then clone its target"]);
}
