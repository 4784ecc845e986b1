//! Directories of dependencies come from the worktree in which they fit the lockfile.

use std::process::Command;

use calve_testkit::require_program;

use super::repo::{Repo, is_clean, write};

/// What npm writes, and leaves in `node_modules`, with one package in this version.
fn lockfile(version: u32) -> String {
    let package = serde_json::json!({ "version": version.to_string() });
    serde_json::json!({ "lockfileVersion": 3, "packages": { "node_modules/dep": package } }).to_string()
}

#[test]
fn dependencies_come_from_where_they_fit_the_lockfile() {
    let repo = Repo::anywhere();
    repo.write("Cargo.lock", "one\n");
    repo.write("package-lock.json", &lockfile(1));
    repo.commit("cargo");
    let old = repo.add(["old"]);
    write(&old.join("node_modules/dep/index.js"), "module.exports = 'old'\n");
    write(&old.join("node_modules/.package-lock.json"), &lockfile(1));
    write(&old.join("target/debug/old.o"), "old\n");
    repo.write("package-lock.json", &lockfile(2));
    repo.write("Cargo.lock", "two\n");
    repo.commit("new locks");
    repo.write("node_modules/dep/index.js", "module.exports = 'new'\n");
    repo.write("node_modules/.package-lock.json", &lockfile(2));
    repo.settle();

    let receipt = repo.calve(["add", "--json", "--base", "old", "like-old"]).succeeds().json();
    let path = repo.spot.join("proj.like-old");
    is_clean(&path);
    assert_eq!(fs_err::read_to_string(path.join("node_modules/dep/index.js")).unwrap(), "module.exports = 'old'\n");
    assert!(path.join("target/debug/old.o").exists());
    for dependency in receipt["dependencies"].as_array().unwrap() {
        assert_eq!(dependency["from"], old.to_str().unwrap(), "{receipt}");
        assert_eq!(dependency["install_needed"], false);
    }
    let path = repo.add(["like-new"]);
    assert_eq!(fs_err::read_to_string(path.join("node_modules/dep/index.js")).unwrap(), "module.exports = 'new'\n");

    repo.git(["switch", "-q", "-c", "third"]);
    repo.write("package-lock.json", &lockfile(3));
    repo.commit("a third lock");
    repo.git(["switch", "-q", "main"]);
    let ran = repo.calve(["add", "-q", "third"]).succeeds();
    ran.says(&["warning: `node_modules` does not fit `package-lock.json`: run `npm ci`"]);
}

#[test]
fn a_package_linked_in_an_npm_workspace_is_the_new_worktrees_own() {
    if !require_program("npm") {
        return;
    }
    let repo = Repo::anywhere();
    repo.write("package.json", "{\"name\": \"root\", \"private\": true, \"workspaces\": [\"packages/*\"]}\n");
    repo.write("packages/a/package.json", "{\"name\": \"a\", \"version\": \"1.0.0\", \"main\": \"i.js\"}\n");
    repo.write("packages/a/i.js", "module.exports = __filename\n");
    let package =
        "{\"name\": \"b\", \"version\": \"1.0.0\", \"main\": \"i.js\", \"dependencies\": {\"a\": \"1.0.0\"}}\n";
    repo.write("packages/b/package.json", package);
    repo.write("packages/b/i.js", "console.log(require('a'))\n");
    fs_err::remove_file(repo.join("package-lock.json")).unwrap();
    fs_err::remove_dir_all(repo.join("node_modules")).unwrap();
    let mut install = Command::new("npm");
    install.args(["install", "--offline", "--no-audit", "--no-fund"]).current_dir(&repo.path);
    let installed = install.output().unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    repo.commit("workspace");
    repo.settle();
    let path = repo.add(["x"]);
    is_clean(&path);
    let printed = Command::new("node").arg("packages/b").current_dir(&path).output().unwrap();
    let shown = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(shown.trim(), path.join("packages/a/i.js").to_str().unwrap());
}
