//! What a new worktree is.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use calve_testkit::{FileSystem, assert_same, require_program, write_program};

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, opened_by_status, write};
use crate::spot::nothing_left;

#[test]
fn a_worktree_has_everything_and_is_clean() {
    for file_system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
        let Some(repo) = Repo::on(file_system) else { return };
        let path = repo.add(["feature/x"]);
        assert_eq!(path, repo.spot.join("proj.feature-x"));
        assert_eq!(git(&path, ["symbolic-ref", "HEAD"]).trim(), "refs/heads/feature/x");
        assert_eq!(repo.worktrees(), [repo.path.clone(), path.clone()]);
        if require_program("strace") {
            assert_eq!(opened_by_status(&path), Vec::<String>::new());
        }
        is_clean(&path);
        is_as_git_makes_it(&repo, &path);
        for carried in ["node_modules", "target"] {
            assert_same(repo.join(carried), path.join(carried));
        }
        assert_eq!(fs_err::read_to_string(path.join(".env")).unwrap(), "SECRET=1\n");
        git(&path, ["fsck", "--strict"]);
        // It is a worktree like any other: git commits, moves and removes it.
        write(&path.join("new"), "x");
        git(&path, ["add", "new"]);
        git(&path, ["commit", "-q", "-m", "two"]);
        is_clean(&repo.path);
        let moved = repo.spot.join("moved");
        repo.git(["worktree", "move", path.to_str().unwrap(), moved.to_str().unwrap()]);
        repo.git(["worktree", "remove", "--force", moved.to_str().unwrap()]);
        assert_eq!(repo.worktrees(), std::slice::from_ref(&repo.path));
        nothing_left(&repo.spot);
    }
}

#[test]
fn files_that_git_converts_are_as_git_writes_them() {
    let repo = Repo::anywhere();
    repo.write(".gitattributes", "*.crlf text eol=crlf\n*.auto text=auto\n*.up filter=up\n*.id ident\n*.bin -text\n");
    repo.git(["config", "filter.up.smudge", "tr a-z A-Z"]);
    repo.git(["config", "filter.up.clean", "tr A-Z a-z"]);
    for (path, text) in [
        ("a.crlf", "one\ntwo\n"),
        ("b.auto", "one\r\ntwo\r\n"),
        ("c.up", "Mixed\n"),
        ("d.id", "$Id$\n"),
        ("e.bin", "one\r\n"),
        ("f.auto", "plain\n"),
        ("mode", "not for others\n"),
    ] {
        repo.write(path, text);
    }
    fs_err::set_permissions(repo.join("mode"), std::fs::Permissions::from_mode(0o600)).unwrap();
    repo.commit("conversions");
    repo.settle();
    is_clean(&repo.path);
    let path = repo.add(["x"]);
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
    let written = repo.calve(["add", "--json", "y"]).succeeds().json();
    let cloned = written["tracked"]["cloned"].as_u64().unwrap();
    assert!(cloned > 5, "files without a conversion are cloned: {written}");
}

#[test]
fn another_commit_is_checked_out_as_it_was() {
    let repo = Repo::anywhere();
    repo.git(["branch", "old"]);
    repo.write("src/main.ts", "export const two = 2\n");
    repo.write("only-new/file", "x\n");
    repo.git(["rm", "-q", "--cached", "link"]);
    fs_err::remove_file(repo.join("link")).unwrap();
    repo.write("link/is/a/directory", "now\n");
    repo.commit("two");
    repo.settle();
    let path = repo.add(["old"]);
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
    assert!(!path.join("only-new").exists());
    let newer = repo.add(["--base", "main", "newer"]);
    is_clean(&newer);
    is_as_git_makes_it(&repo, &newer);
    // Without a branch.
    let path = repo.add(["--detach", "HEAD", "--path", "../loose"]);
    assert_eq!(path, repo.spot.join("loose"));
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "HEAD"]).trim(), "HEAD");
    is_clean(&path);
}

#[test]
fn what_the_donor_has_changed_stays_there_or_comes_along() {
    let repo = Repo::anywhere();
    repo.write("src/main.ts", "changed\n");
    repo.write("untracked/file", "u\n");
    repo.write("staged", "s\n");
    repo.git(["add", "staged"]);
    fs_err::remove_file(repo.join("run.sh")).unwrap();
    let clean = repo.add(["clean"]);
    is_clean(&clean);
    is_as_git_makes_it(&repo, &clean);
    let dirty = repo.add(["--dirty", "dirty"]);
    assert_eq!(git(&dirty, ["status", "--porcelain"]), " D run.sh\n M src/main.ts\n?? staged\n?? untracked/\n");
    assert_eq!(fs_err::read_to_string(dirty.join("src/main.ts")).unwrap(), "changed\n");

    repo.git(["stash", "-q", "-u"]);
    repo.write("src/main.ts", "committed\n");
    repo.commit("two");
    repo.write("src/main.ts", "changed again\n");
    repo.calve(["add", "--dirty", "--base", "HEAD~1", "conflict"])
        .fails(1)
        .says(&["commit or stash the change, or leave `--dirty` out", "src/main.ts"]);
    assert!(!repo.spot.join("proj.conflict").exists());
}

/// Such a worktree would be called clean, with contents that no commit has.
#[test]
fn a_change_that_settings_hide_from_git_is_not_cloned() {
    for setting in ["core.trustCtime=false", "core.checkStat=minimal"] {
        let repo = Repo::anywhere();
        let (name, value) = setting.split_once('=').unwrap();
        repo.settle();
        repo.git(["config", name, value]);
        // git compares change times by the second.
        std::thread::sleep(Duration::from_millis(1_100));
        repo.write("src/main.ts", "import {}\n");
        repo.settle();
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{setting}");
        let one = repo.add(["one"]);
        is_clean(&one);
        is_as_git_makes_it(&repo, &one);
        assert_eq!(fs_err::read_to_string(one.join("src/main.ts")).unwrap(), "export {}\n", "{setting}");
    }
}

#[test]
fn branches_of_remotes_and_pull_requests_are_found() {
    let repo = Repo::anywhere();
    let other = repo.spot.join("other");
    repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
    for branch in ["theirs", "group/theirs"] {
        git(&other, ["switch", "-q", "-c", branch, "main"]);
        write(&other.join("file"), branch);
        git(&other, ["add", "-A"]);
        git(&other, ["commit", "-q", "-m", branch]);
    }
    git(&other, ["update-ref", "refs/pull/7/head", "theirs"]);
    repo.git(["remote", "add", "origin", other.to_str().unwrap()]);
    repo.git(["fetch", "-q", "origin"]);

    let path = repo.add(["origin/group/theirs"]);
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "HEAD", "@{upstream}"]), "group/theirs\norigin/group/theirs\n");
    let path = repo.add(["theirs"]);
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "@{upstream}"]).trim(), "origin/theirs");

    let path = repo.add(["pr/7"]);
    assert_eq!(git(&path, ["rev-parse", "HEAD"]), git(&other, ["rev-parse", "theirs"]));
    assert!(!path.join(".env").exists(), "a pull request gets no secrets");
    assert!(path.join("node_modules/dep/index.js").exists());
    assert_eq!(repo.git(["for-each-ref", "refs/calve"]), "");
    repo.calve(["remove", "pr/7", "-D"]).succeeds();
    let path = repo.add(["--trust", "pr/7"]);
    assert!(path.join(".env").exists());
    repo.calve(["add", "pr/8"]).fails(1).says(&["'refs/pull/*/head' 'refs/merge-requests/*/head'` lists them"]);
    assert_eq!(repo.worktrees().len(), 4);
    // A remote may have capitals in its name, and fetching leaves nothing.
    git(&other, ["branch", "capitals"]);
    git(&other, ["update-ref", "refs/pull/9/head", "main"]);
    repo.git(["remote", "add", "UpStream", other.to_str().unwrap()]);
    repo.git(["fetch", "-q", "UpStream"]);
    let path = repo.add(["UpStream/capitals"]);
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "HEAD", "@{upstream}"]), "capitals\nUpStream/capitals\n");
    repo.add(["pr/9"]);
    assert_eq!(repo.git(["for-each-ref", "refs/calve"]), "");
    // Of one that was killed while it fetched, and of one that is at it: this process.
    let fetched = |process: u32| format!("refs/calve/pull/7-{process}");
    let gone =
        std::process::Command::new("true").spawn().map(|mut child| (child.id(), child.wait().unwrap())).unwrap().0;
    repo.git(["update-ref", &fetched(gone), "main"]);
    repo.git(["update-ref", &fetched(std::process::id()), "main"]);
    repo.calve(["prune"]).succeeds();
    assert_eq!(repo.git(["for-each-ref", "--format=%(refname)", "refs/calve"]).trim(), fetched(std::process::id()));
}

#[test]
fn a_linked_worktree_and_one_of_a_bare_repository_can_give_too() {
    let repo = Repo::anywhere();
    let first = repo.add(["first"]);
    write(&first.join(".env"), "FIRST\n");
    let second = repo.calve(["add", "second"]).within(&first).succeeds();
    assert_eq!(second.stdout.trim(), repo.spot.join("proj.second").to_str().unwrap());
    assert_eq!(fs_err::read_to_string(repo.spot.join("proj.second/.env")).unwrap(), "FIRST\n");
    let third = repo.add(["--from", "first", "third"]);
    assert_eq!(fs_err::read_to_string(third.join(".env")).unwrap(), "FIRST\n");

    let bare = repo.spot.join("b.git");
    repo.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    repo.calve(["add", "x"]).within(&bare).fails(1).says(&["run it inside a worktree, or name one with `--from`; in a bare repository make the first one with `git worktree add`", "worktree"]);
    git(&bare, ["worktree", "add", "-q", "../of-bare", "main"]);
    write(&repo.spot.join("of-bare/.env"), "BARE\n");
    let path = repo.calve(["add", "x"]).within(repo.spot.join("of-bare")).succeeds().stdout;
    assert_eq!(path.trim(), repo.spot.join("b.x").to_str().unwrap());
    is_clean(path.trim().as_ref());
    assert_eq!(fs_err::read_to_string(repo.spot.join("b.x/.env")).unwrap(), "BARE\n");
}

#[test]
fn gits_own_hook_runs_as_git_runs_it() {
    let repo = Repo::anywhere();
    let hook = repo.join(".git/hooks/post-checkout");
    fs_err::create_dir_all(repo.join(".git/hooks")).unwrap();
    write_program(&hook, "#!/bin/sh\npwd -P\necho \"$@\"\necho \"${GIT_DIR-no GIT_DIR}\"\nexit 3\n");
    let ran = repo.calve(["add", "x"]).succeeds();
    let head = repo.git(["rev-parse", "HEAD"]);
    let path = repo.spot.join("proj.x");
    let arguments = format!("{} {} 1", "0".repeat(40), head.trim());
    assert_eq!(ran.stdout.trim(), path.to_str().unwrap());
    ran.says(&[path.to_str().unwrap(), &arguments, "no GIT_DIR", "post-checkout failed"]);
    is_clean(&path);
    // One without a first line is for the shell, and one that cannot start does no harm.
    for (branch, text, words) in [
        ("shell", "echo it ran \"$3\" in \"$(pwd -P)\"\n", ["it ran 1 in", "proj.shell"]),
        ("y", "#!/nonexistent/interpreter\n", ["cannot run", "post-checkout failed"]),
    ] {
        write(&hook, text);
        fs_err::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ran = repo.calve(["add", branch]).succeeds();
        let path = repo.spot.join(format!("proj.{branch}"));
        assert_eq!(ran.stdout.trim(), path.to_str().unwrap());
        ran.says(&words);
        is_clean(&path);
    }
}

#[test]
fn a_dry_run_says_what_would_be_carried_and_makes_nothing() {
    let repo = Repo::anywhere();
    let ran = repo.calve(["add", "-n", "--json", "x"]).succeeds();
    let plan = ran.json();
    assert_eq!(plan["schema"], "calve.worktree-plan/1");
    assert_eq!(plan["carried"], serde_json::json!([".env", "node_modules", "target"]));
    assert_eq!(plan["secrets"], serde_json::json!([".env"]));
    ran.says(&["would carry `.env` (looks like a secret)"]);
    assert_eq!(repo.worktrees().len(), 1);
    assert_eq!(repo.git(["branch", "--list", "x"]), "");
    repo.spot.holds(&["proj"]);
    // Variables that name another repository do not count.
    let calve = repo.calve(["add", "x"]).env("GIT_DIR", "/nonexistent").env("GIT_INDEX_FILE", "/nonexistent/index");
    calve.env("GIT_WORK_TREE", "/").succeeds();
    is_clean(&repo.spot.join("proj.x"));
}

/// Paths and modes of all that git has checked out.
fn modes(worktree: &std::path::Path) -> Vec<String> {
    let find = ["-name", ".git", "-prune", "-o", "-printf", "%P %y %m\\n"];
    let output = std::process::Command::new("find").arg(worktree).args(find).output().unwrap();
    let mut lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn modes_are_those_of_a_checkout_under_any_umask_and_without_file_modes() {
    let repo = Repo::anywhere();
    let expect = |umask: &str, name: &str| {
        let reference = repo.spot.join(format!("{name}-by-git"));
        let by_git = format!("umask {umask}; git worktree add -q --detach '{}'", reference.display());
        assert!(
            std::process::Command::new("sh").args(["-c", &by_git]).current_dir(&repo.path).status().unwrap().success()
        );
        let before = format!("umask {umask};");
        repo.calve(["add", "--no-ignored", name]).in_shell(&before, "").succeeds();
        let path = repo.spot.join(format!("proj.{name}"));
        assert_eq!(modes(&path), modes(&reference), "{name}: umask {umask}");
        is_clean(&path);
    };
    for umask in ["077", "027", "022"] {
        expect(umask, &format!("umask-{umask}"));
    }
    // git looks at no modes here, and sets them all the same.
    repo.git(["config", "core.fileMode", "false"]);
    for (path, mode) in [("run.sh", 0o644), ("src/main.ts", 0o755), ("package-lock.json", 0o600)] {
        fs_err::set_permissions(repo.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
    repo.settle();
    expect("022", "no-modes");
    expect("077", "no-modes-077");
    // What the user has closed to others is not opened: what git ignores may be in there.
    fs_err::set_permissions(repo.join("src"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(fs_err::metadata(repo.add(["closed"]).join("src")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn the_receipt_says_why_no_tracked_file_was_cloned() {
    let repo = Repo::anywhere();
    let why = |name: &str, reason: &str, words: &[&str]| {
        let ran = repo.calve(["add", "--json", name]).succeeds().says(&["no tracked file was cloned: "]).says(words);
        let receipt = ran.json();
        let tracked = &receipt["tracked"];
        assert_eq!(tracked["cloned"], 0, "{name}");
        assert!(
            tracked["not_cloned"].as_array().unwrap().iter().any(|one| one["reason"] == reason),
            "{name}: {tracked}"
        );
        is_clean(&repo.spot.join(format!("proj.{name}")));
    };
    repo.git(["config", "core.splitIndex", "true"]);
    repo.git(["update-index", "--split-index"]);
    why("split", "split_index", &["git update-index --no-split-index"]);
    let remedy = "git config core.splitIndex false && git update-index --no-split-index";
    assert!(std::process::Command::new("sh").args(["-c", remedy]).current_dir(&repo.path).status().unwrap().success());
    let receipt = repo.calve(["add", "--json", "whole"]).succeeds().json();
    assert!(receipt["tracked"]["cloned"].as_u64().unwrap() > 4, "{receipt}");
    assert_eq!(receipt["tracked"]["not_cloned"], serde_json::json!([]));
    fs_err::remove_file(repo.join("link")).unwrap();
    repo.commit("no links");
    repo.git(["config", "core.autocrlf", "true"]);
    why("crlf", "converted", &["core.autocrlf"]);
}
