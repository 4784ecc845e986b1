//! npm and pnpm workspaces.

use super::Project;

/// Two packages, of which one needs the other; and a tool, which puts a script into `.bin`.
fn sources(project: &Project, workspaces: &str, needs: &str) {
    project
        .tree()
        .file(
            "package.json",
            format!(
                r#"{{"name":"root","private":true{workspaces},"dependencies":{{"b":"{needs}","tool":"{needs}"}}}}"#
            )
            .as_bytes(),
        )
        .file("packages/tool/package.json", br#"{"name":"tool","version":"1.0.0","bin":{"tool":"cli.js"}}"#)
        .file(
            "packages/tool/cli.js",
            b"#!/usr/bin/env node\nconsole.log(process.env.NODE_PATH || require('path').dirname(__filename))\n",
        )
        .file("packages/a/package.json", br#"{"name":"a","version":"1.0.0","main":"index.js"}"#)
        .file("packages/a/index.js", b"module.exports = __filename\n")
        .file(
            "packages/b/package.json",
            format!(r#"{{"name":"b","version":"1.0.0","main":"index.js","dependencies":{{"a":"{needs}"}}}}"#)
                .as_bytes(),
        )
        .file("packages/b/index.js", b"module.exports = [__filename, require('a')]\n")
        .file(".gitignore", b"node_modules\n");
}

const SHOW: &str = "for (const path of require('b')) console.log(path)";

#[test]
fn an_npm_workspace_uses_the_worktrees_own_packages() {
    let make = |project: &Project| {
        sources(project, r#","workspaces":["packages/*"]"#, "*");
        // As some tools make them, and `npm link` across projects does.
        project.run(&project.main(), "npm", ["install", "--no-audit", "--no-fund"]);
        let link = project.main().join("node_modules/linked");
        std::os::unix::fs::symlink(project.main().join("packages/a"), link).unwrap();
    };
    Project::each(&["node", "npm"], make, |project, new| {
        let shown = project.run(new, "node", ["-e", SHOW]);
        let expected = ["b", "a"].map(|name| format!("{}/packages/{name}/index.js\n", new.display()));
        assert_eq!(shown, expected.concat());
        let linked = project.run(new, "node", ["-p", "require('linked')"]);
        assert_eq!(linked, format!("{}/packages/a/index.js\n", new.display()));
        // The installation is complete for npm, too.
        project.run(new, "npm", ["ls", "--all"]);
        let tool = project.run(new, new.join("node_modules/.bin/tool"), [""; 0]);
        assert_eq!(tool, format!("{}/packages/tool\n", new.display()));
    });
}

#[test]
fn a_pnpm_project_is_installed_for_pnpm() {
    let make = |project: &Project| {
        sources(project, "", "workspace:*");
        project.tree().file("pnpm-workspace.yaml", b"packages:\n  - packages/*\n");
        let store = format!("--store-dir={}", project.spot().join("store").display());
        project.run(&project.main(), "pnpm", ["install", "--offline", &store]);
        let state = fs_err::read_to_string(project.main().join("node_modules/.pnpm-workspace-state-v1.json")).unwrap();
        assert!(state.contains(&project.main().display().to_string()), "pnpm does not note paths any more: {state}");
    };
    Project::each(&["node", "pnpm"], make, |project, new| {
        let shown = project.run(new, "node", ["-e", SHOW]);
        let expected = ["b", "a"].map(|name| format!("{}/packages/{name}/index.js\n", new.display()));
        assert_eq!(shown, expected.concat());
        let tool = project.run(new, new.join("node_modules/.bin/tool"), [""; 0]);
        assert!(tool.starts_with(&format!("{}/node_modules/.pnpm/", new.display())), "{tool}");
        assert!(!tool.contains(&format!("{}/node_modules", project.main().display())), "{tool}");
        // pnpm has nothing to do, and says so.
        let store = format!("--store-dir={}", project.spot().join("store").display());
        let again = project.run(new, "pnpm", ["install", "--offline", "--frozen-lockfile", &store]);
        assert!(again.contains("Already up to date"), "{again}");
    });
}
