//! Which ignored entries are carried.

use std::os::unix::net::UnixListener;

use calve_testkit::{SplitMix64, require_root, rounds};

use super::repo::{Repo, git, is_clean, with_environment, write};
use super::whole_spares::{GROUNDS, repo_on, spares};
use crate::program::{Reachable, calve};

/// The reasons by path, of the receipt of `calve worktree add --json`.
fn left(repo: &Repo, arguments: &[&str]) -> Vec<(String, String)> {
    let receipt = repo.calve(["add", "--json"]).args(arguments).succeeds().json();
    let all = receipt["left"].as_array().unwrap().iter();
    all.map(|left| (left["path"].as_str().unwrap().into(), left["reason"].as_str().unwrap().into())).collect()
}

/// The files that git lists, without those that people keep secrets in if `secrets_stay`.
fn listed(repo: &Repo, arguments: &[&str], secrets_stay: bool) -> Vec<String> {
    let listed = repo.git(["ls-files", "--others", "--exclude-standard"].iter().chain(arguments));
    let is_secret = |path: &str| {
        let mut own = path.split('/').take_while(|name| *name != "node_modules");
        own.any(|name| [".env", "k.pem", "secrets"].contains(&name))
    };
    listed.lines().filter(|path| !secrets_stay || !is_secret(path)).map(str::to_owned).collect()
}

#[test]
fn random_trees_are_carried_as_git_sees_their_files() {
    const DIRECTORIES: [&str; 6] = ["new", "src", "a", "b", "node_modules", "secrets"];
    const FILES: [&str; 6] = ["x.ts", "y", "x.log", ".env", "k.pem", "z.own"];
    for (seed, ground) in (0..rounds(10) as u64).flat_map(|seed| GROUNDS.map(|ground| (seed, ground))) {
        let Some(repo) = repo_on(ground) else { return };
        let mut random = SplitMix64::new(seed * 4 + GROUNDS.iter().position(|one| *one == ground).unwrap() as u64);
        let secrets_stay = random.below(2) == 0;
        repo.write(".calve.toml", if secrets_stay { "[worktree]\nsecrets = \"leave\"\n" } else { "" });
        repo.commit("configuration");
        for _ in 0..40 {
            let depth = random.below(4);
            let mut path: Vec<&str> = (0..depth).map(|_| *random.pick(&DIRECTORIES)).collect();
            // If all in it is ignored, git lists no such directory.
            if let Some(at) = path.iter().position(|name| *name == "secrets") {
                repo.write(&[&path[..=at], &["y"]].concat().join("/"), "");
            }
            path.push(*random.pick(&FILES));
            repo.write(&path.join("/"), &random.next_u64().to_string());
        }
        if random.below(2) == 0 {
            spares(&repo, &["add", "-q", "--worktree"]).succeeds();
            spares(&repo, &["pause", "-q", "."]).succeeds();
        }
        let first = random.below(4);
        for options in (0..4).map(|at| (first + at) % 4) {
            let (is_dirty, has_ignored) = (options & 1 == 0, options & 2 == 0);
            // The rules go along with the files that they are about.
            if is_dirty {
                repo.write("new/.gitignore", "*.own\n");
            }
            let mut expected = Vec::new();
            if is_dirty {
                expected.extend(listed(&repo, &[], secrets_stay));
            }
            if has_ignored {
                expected.extend(listed(&repo, &["--ignored"], secrets_stay));
            }
            let name = format!("x{options}");
            let mut add = repo.calve(["add", "--json", &name]).env("CALVE_HOME", repo.spot.join("home"));
            for option in [is_dirty.then_some("--dirty"), (!has_ignored).then_some("--no-ignored")] {
                add = add.args(option);
            }
            let receipt = add.succeeds().json();
            let mut found: Vec<String> = git(&repo.spot.join(format!("proj.{name}")), ["ls-files", "--others"])
                .lines()
                .map(str::to_owned)
                .collect();
            expected.sort();
            found.sort();
            assert_eq!(
                found, expected,
                "seed {seed}, {ground:?}, {is_dirty}, {has_ignored}, {secrets_stay}: {receipt:#}"
            );
            if is_dirty {
                fs_err::remove_file(repo.join("new/.gitignore")).unwrap();
            }
        }
    }
}

#[test]
fn what_belongs_to_a_running_program_or_another_repository_stays() {
    let repo = Repo::anywhere();
    let _listener = UnixListener::bind(repo.join("target/daemon.socket")).unwrap();
    repo.write("target/server.pid", "17\n");
    repo.write("target/yarn.lock", "not a lock\n");
    repo.write("node_modules/sub/.git", "gitdir: ../../.git/modules/sub\n");
    repo.write("node_modules/sub/file", "x\n");
    git(&repo.join("node_modules"), ["init", "-q", "nested"]);
    repo.write("node_modules/nested/.git/worktrees/x/gitdir", "/elsewhere/.git\n");
    repo.git(["worktree", "add", "-q", ".worktrees/inner"]);
    repo.git(["worktree", "add", "-q", "target/deep"]);
    let left = left(&repo, &["x"]);
    let path = repo.spot.join("proj.x");
    is_clean(&path);
    for gone in [
        "target/daemon.socket",
        "target/server.pid",
        "target/deep",
        "node_modules/sub/.git",
        "node_modules/nested/.git/worktrees",
        ".worktrees/inner",
    ] {
        assert!(!path.join(gone).exists(), "{gone} is there");
        assert!(left.iter().any(|(path, _)| path == gone), "{gone} is not told: {left:?}");
    }
    for there in ["target/yarn.lock", "node_modules/sub/file", "node_modules/nested/.git/HEAD"] {
        assert!(path.join(there).exists(), "{there} is missing");
    }
}

#[test]
fn a_worktree_of_another_repository_is_not_carried() {
    let repo = Repo::anywhere();
    let other = repo.spot.join("other");
    repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
    git(&other, ["worktree", "add", "-q", repo.join("target/foreign").to_str().unwrap()]);
    let left = left(&repo, &["x"]);
    assert!(!repo.spot.join("proj.x/target/foreign").exists());
    assert!(left.contains(&("target/foreign".into(), "another worktree".into())), "{left:?}");
}

#[test]
fn lists_narrow_what_is_carried() {
    let repo = Repo::anywhere();
    repo.write("sub/.env.local", "L\n");
    repo.write("a.log", "log\n");
    repo.write(".worktreeinclude", "# needed\n.env*\n!.env.prod\ntarget/debug/\n");
    repo.write(".env.prod", "P\n");
    repo.write("target/release/x", "r\n");
    repo.commit("include");
    let path = repo.add(["x"]);
    is_clean(&path);
    for there in [".env", "sub/.env.local", "target/debug/out.o"] {
        assert!(path.join(there).exists(), "{there} is missing");
    }
    for gone in [".env.prod", "target/release", "node_modules", "a.log"] {
        assert!(!path.join(gone).exists(), "{gone} is there");
    }
    fs_err::remove_file(repo.join(".worktreeinclude")).unwrap();
    repo.write(".calve.toml", "[worktree]\nexclude = [\"*.log\", \"/target/release\"]\nsecrets = \"leave\"\n");
    repo.commit("exclude");
    let path = repo.add(["y"]);
    for (name, is_there) in
        [("node_modules", true), ("target/debug", true), ("target/release", false), ("a.log", false), (".env", false)]
    {
        assert_eq!(path.join(name).exists(), is_there, "{name}");
    }
    let none = repo.add(["--no-ignored", "z"]);
    is_clean(&none);
    assert!(!none.join("node_modules").exists());
}

#[test]
fn what_the_new_commit_does_not_ignore_does_not_make_it_dirty() {
    let repo = Repo::anywhere();
    repo.git(["switch", "-q", "-c", "strict"]);
    repo.write(".gitignore", "node_modules/\n");
    repo.git(["commit", "-q", "-a", "-m", "ignores less"]);
    repo.git(["switch", "-q", "main"]);
    // Directories that ignore themselves, as virtual environments do. The second is ignored by a tracked rule too.
    let rules = fs_err::read_to_string(repo.join(".gitignore")).unwrap();
    repo.write(".gitignore", &format!("{rules}.ruff_cache/\n"));
    repo.commit("ignores more");
    repo.write(".venv/.gitignore", "*\n");
    repo.write(".venv/bin/python", "#!/bin/sh\n");
    repo.write(".ruff_cache/.gitignore", "# Automatically created by ruff.\n*\n");
    repo.write(".ruff_cache/x", "");
    // One whose rules are not tracked.
    repo.write("scratch/.gitignore", "*.tmp\n");
    repo.write("scratch/x.tmp", "t\n");
    let plan = repo.calve(["add", "-n", "--json", "strict"]).succeeds().json();
    let made = repo.calve(["add", "--json", "strict"]).succeeds().json();
    assert_eq!(plan["carried"], made["carried"]);
    assert!(repo.spot.join("proj.strict/.venv/bin/python").exists());
    // The hook that completes a worktree of git's.
    let by_git = repo.spot.join("by-git");
    repo.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "strict"]);
    with_environment(calve(["hook", "worktree-setup"])).within(&by_git).succeeds();
    for path in [repo.spot.join("proj.strict"), by_git] {
        is_clean(&path);
        for there in ["node_modules/dep/index.js", ".ruff_cache/x"] {
            assert!(path.join(there).exists(), "{there} is missing in {}", path.display());
        }
        for gone in [".env", "target", "scratch"] {
            assert!(!path.join(gone).exists(), "{gone} is there");
        }
    }
    for report in [plan, made] {
        let left = report["left"].as_array().unwrap().iter().find(|left| left["path"] == ".env");
        assert!(left.is_some_and(|left| left["reason"].as_str().unwrap().starts_with("not ignored")), "{report}");
    }
}

#[test]
fn a_plan_and_the_hook_leave_what_adding_leaves() {
    let repo = Repo::anywhere();
    let rules = fs_err::read_to_string(repo.join(".gitignore")).unwrap();
    let packages = r#"{ "lockfileVersion": 3, "packages": { "node_modules/dep": { "version": "1" } } }"#;
    repo.write("package-lock.json", packages);
    repo.write(".gitignore", &format!("{rules}build/\nout/\n__pycache__/\nmixed/\nwhite/\nkept/\n*.tmp\n"));
    repo.write("sub/tracked", "");
    repo.commit("rules");
    repo.git(["switch", "-q", "-c", "other"]);
    repo.write(
        ".gitignore",
        &format!("{}build/\nout/*\n*.pyc\n*.o\nkept/*\n!kept/x\n", rules.replace("node_modules/\n", "")),
    );
    // git reads no rules through a link, nor its text as one.
    fs_err::create_dir(repo.join("links")).unwrap();
    fs_err::os::unix::fs::symlink("*.tmp", repo.join("links/.gitignore")).unwrap();
    repo.write("build/tracked", "");
    repo.write("mixed/tracked", "");
    repo.write("white/.gitignore", "*\n!*/\n!*.c\n!.gitignore\n");
    repo.git(["add", "-f", ".gitignore", "links", "build", "mixed", "white"]);
    repo.git(["commit", "-q", "-m", "other rules"]);
    repo.git(["switch", "-q", "main"]);
    for path in [
        "build/made",
        "out/made",
        "__pycache__/a.pyc",
        "links/x.tmp",
        "mixed/a.o",
        "mixed/b",
        "white/a.c",
        "kept/x",
        "kept/y",
    ] {
        repo.write(path, "");
    }
    // Rules that are ignored, and carried too.
    write(&repo.join(".git/info/exclude"), "sub/.gitignore\n");
    repo.write("sub/.gitignore", "*.own\n");
    repo.write("sub/x.own", "");
    repo.write("node_modules/.package-lock.json", packages);
    let plan = repo.calve(["add", "-n", "--json", "other"]).succeeds().json();
    let made = repo.calve(["add", "--json", "other"]).succeeds().json();
    for list in ["carried", "left", "dependencies"] {
        assert_eq!(plan[list], made[list], "{list}");
    }
    assert_eq!(made["dependencies"], serde_json::json!([]), "of what is left");
    let by_git = repo.spot.join("by-git");
    repo.git(["worktree", "add", "-q", "--detach", by_git.to_str().unwrap(), "other"]);
    with_environment(calve(["hook", "worktree-setup"])).within(&by_git).succeeds();
    let by_calve = repo.spot.join("proj.other");
    is_clean(&by_git);
    // The hook leaves directories as they are.
    let mut names = crate::spot::paths_below(&by_calve);
    names.retain(|name| !["build/made", "mixed/a.o", "kept", "kept/y"].contains(&name.as_str()));
    assert_eq!(crate::spot::paths_below(&by_git), names);
    for (path, is_there) in [
        ("build/made", true),
        ("out/made", true),
        ("__pycache__/a.pyc", true),
        ("links/x.tmp", false),
        ("mixed/a.o", true),
        ("mixed/b", false),
        ("white/a.c", false),
        ("kept/x", false),
        ("kept/y", false),
        ("sub/x.own", true),
        ("node_modules", false),
    ] {
        assert_eq!(by_calve.join(path).exists(), is_there, "{path}");
    }
}

#[test]
fn what_cannot_be_read_is_left_and_told() {
    if !require_root("another user's directory") {
        return;
    }
    let repo = Repo::anywhere();
    repo.write("node_modules/of-root/secret", "x\n");
    repo.give_away();
    write(&repo.join("target/owned-by-root/x"), "x\n");
    rustix::fs::chmod(repo.join("target/owned-by-root"), 0o700.into()).unwrap();
    rustix::fs::chmod(repo.join("node_modules/of-root/secret"), 0o000.into()).unwrap();
    rustix::fs::chown(
        repo.join("node_modules/of-root/secret"),
        Some(rustix::fs::Uid::ROOT),
        Some(rustix::fs::Gid::ROOT),
    )
    .unwrap();
    let ran = repo.calve(["add", "x"]).by_somebody_else(&Reachable::new()).succeeds();
    let path = repo.spot.join("proj.x");
    assert!(path.join("node_modules/dep/index.js").exists());
    assert!(!path.join("target/owned-by-root").exists() && !path.join("node_modules/of-root/secret").exists());
    ran.says(&["left out `node_modules/of-root/secret` and 1 more: you may not read it"]);
}

#[test]
fn the_file_that_excludes_an_entry_is_named() {
    let repo = Repo::anywhere();
    repo.write("a.log", "log\n");
    for (file, name) in [(".calve.toml", "x"), (".calve.local.toml", "y")] {
        repo.write(file, "[worktree]\nexclude = [\"*.log\"]\n");
        repo.write(".git/info/exclude", ".calve*\n");
        assert!(left(&repo, &[name]).contains(&("a.log".into(), format!("excluded by {file}"))), "{file}");
        fs_err::remove_file(repo.join(file)).unwrap();
    }
}

#[test]
fn a_plan_leaves_what_cannot_be_read() {
    if !require_root("another user's files") {
        return;
    }
    let repo = Repo::anywhere();
    repo.give_away();
    for closed in [".env", "node_modules"] {
        rustix::fs::chmod(repo.join(closed), 0o000.into()).unwrap();
    }
    let reachable = Reachable::new();
    let planned = repo.calve(["add", "-n", "x"]).by_somebody_else(&reachable).succeeds();
    planned.says(&[
        "would carry `target`",
        "would leave `.env`: you may not read it",
        "would leave `node_modules`: you may not read it",
    ]);
    let made = repo.calve(["add", "x"]).by_somebody_else(&reachable).succeeds();
    made.says(&["left out `.env` and 1 more: you may not read it"]);
}

#[test]
fn a_plan_fails_where_nothing_could_be_made() {
    let Some(reachable) = Reachable::for_somebody_else() else { return };
    let repo = Repo::anywhere();
    repo.give_away();
    let planned = || repo.calve(["add", "-n", "x"]).by_somebody_else(&reachable);
    planned().succeeds();
    rustix::fs::chmod(&*repo.spot, 0o555.into()).unwrap();
    planned().fails(1).says(&["failed to create an entry in `", "Permission denied"]).hints();
    repo.calve(["add", "x"]).by_somebody_else(&reachable).fails(1).says(&["Permission denied"]);
    rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
    rustix::fs::chmod(repo.join(".git"), 0o555.into()).unwrap();
    planned().fails(1).says(&["Permission denied"]);
    rustix::fs::chmod(repo.join(".git"), 0o755.into()).unwrap();
}
