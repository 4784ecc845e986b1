//! Workspaces: packages that are not in the directory at the top.

use serde_json::json;

use super::yarn::yarn;
use super::{Installer, Packages, Project, pnpm};
use crate::worktree::repo::Repo;

/// A package may have a directory of its own for what it needs in another version.
#[test]
fn packages_that_only_one_of_a_workspace_needs_are_looked_for() {
    let npm = json!({ "lockfileVersion": 3, "packages": {
        "packages/q": { "version": "1.0.0" },
        "node_modules/q": { "resolved": "packages/q", "link": true },
        "node_modules/a": { "version": "1.0.0" },
        "packages/q/node_modules/a": { "version": "2.0.0" },
        "../lib/node_modules/a": { "version": "2.0.0" },
    } });
    let yarn = "#\n\n__metadata:\n  version: 8\n\n\"a@npm:1\":\n  resolution: \"a@npm:1\"\n\n\"x@workspace:.\":\n  resolution: \"x@workspace:.\"\n  dependencies:\n    a: \"npm:1\"\n";
    let state = "\"a@npm:1\":\n  locations:\n    - \"node_modules/a\"\n    - \"packages/q/node_modules/a\"\n    - \"../lib/node_modules/a\"\n";
    for (lockfile, text, witness, installed) in [
        ("package-lock.json", npm.to_string(), ".package-lock.json", npm.to_string()),
        ("yarn.lock", yarn.to_owned(), ".yarn-state.yml", state.to_owned()),
    ] {
        let repo = Repo::anywhere();
        repo.git(["rm", "-q", "package-lock.json"]);
        repo.write(lockfile, &text);
        repo.write("packages/q/package.json", "{}\n");
        repo.commit("workspace");
        repo.write("node_modules/a/index.js", "1\n");
        repo.write("packages/q/node_modules/a/index.js", "2\n");
        repo.write(&format!("node_modules/{witness}"), &installed);
        let is_needed = || {
            let plan = repo.calve(["add", "-n", "--json", "x"]).succeeds().json();
            plan["dependencies"][0]["install_needed"].as_bool()
        };
        assert_eq!(is_needed(), Some(false), "{lockfile}");
        fs_err::remove_dir_all(repo.join("packages/q/node_modules")).unwrap();
        assert_eq!(is_needed(), Some(true), "{lockfile}");
    }
}

impl Packages {
    fn workspace(&self, _: u32) -> Vec<(&'static str, String)> {
        let needs = |version| {
            format!(r#""version":"1.0.0","dependencies":{{"p0":"file:{}/p0-{version}.0.0.tgz"}}"#, self.0.display())
        };
        vec![
            ("package.json", format!(r#"{{"name":"x","private":true,"workspaces":["packages/*"],{}}}"#, needs(1))),
            ("pnpm-workspace.yaml", "packages:\n  - packages/*\n".into()),
            ("packages/q/package.json", format!(r#"{{"name":"q",{}}}"#, needs(2))),
        ]
    }
}

#[test]
fn the_directories_of_a_workspaces_packages_are_compared_too() {
    const PNPM: [&str; 4] = ["pnpm", "install", "--offline", "--store-dir=PACKAGES/store"];
    const HOISTED: [&str; 5] = [PNPM[0], PNPM[1], PNPM[2], PNPM[3], "--config.node-linker=hoisted"];
    for installer in [pnpm(&PNPM), pnpm(&HOISTED), yarn()] {
        let Some(project) = Project::of(Installer { files: Packages::workspace, ..installer }) else { continue };
        let main = &project.repo.path;
        let (own, away) = (main.join("packages/q/node_modules"), main.join("away"));
        let Installer { install, command, .. } = project.installer;
        let is_fit = || project.planned("main")["install_needed"] == false;
        assert!(is_fit(), "{install:?}");
        fs_err::rename(&own, &away).unwrap();
        project.is_expected(&project.planned("main"), main, Some(command));
        fs_err::rename(&away, &own).unwrap();
        assert!(is_fit(), "{install:?}");
        // yarn notes the directory alone.
        if install[0] == "pnpm" {
            fs_err::rename(own.join("p0"), &away).unwrap();
            assert!(!is_fit(), "{install:?}");
        }
        if *install == PNPM {
            project.repo.git(["rm", "-rq", "packages/q"]);
            fs_err::remove_dir_all(main.join("packages")).unwrap();
            project.repo.commit("without q");
            assert!(is_fit(), "pnpm installs this lockfile without q, too");
        }
    }
}
