//! Repositories that lack something: objects, an index, an owner whom git trusts.

use std::path::PathBuf;

use calve_testkit::require_root;

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, with_environment, write};
use crate::program::{RunResult, calve};
use crate::spot::nothing_left;

/// A clone without contents of a repository whose branches have different ones.
fn clone(repo: &Repo, arguments: &[&str]) -> PathBuf {
    repo.write(".gitattributes", "* text=auto\n");
    repo.write("docs/.gitattributes", "*.md text\n");
    for number in 0..20 {
        repo.write(&format!("src/{number}"), &format!("{number}\n"));
        repo.write(&format!("docs/{number}"), &format!("docs {number}\n"));
    }
    repo.commit("two");
    repo.git(["switch", "-q", "-c", "other"]);
    for number in 0..20 {
        repo.write(&format!("src/{number}"), &format!("other {number}\n"));
        repo.write(&format!("docs/{number}"), &format!("other docs {number}\n"));
    }
    repo.commit("three");
    repo.git(["switch", "-q", "main"]);
    repo.git(["config", "uploadpack.allowFilter", "true"]);
    repo.git(["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let url = format!("file://{}", repo.path.display());
    git(&repo.spot, ["clone", "-q", "--filter=blob:none"].iter().chain(arguments).chain(&[url.as_str(), "part"]));
    repo.spot.join("part")
}

/// `calve worktree add` there, and how many times git fetched meanwhile.
#[track_caller]
fn add(repo: &Repo, at: &PathBuf, branch: &str) -> (RunResult, usize) {
    let log = repo.spot.join("trace");
    let calve = with_environment(calve(["worktree", "add", branch])).within(at).env("GIT_TRACE2", &log);
    let ran = calve.succeeds();
    let text = fs_err::read_to_string(&log).unwrap();
    fs_err::remove_file(&log).unwrap();
    (ran, text.matches("cmd_name fetch ").count())
}

#[test]
fn what_a_partial_clone_lacks_is_fetched_at_once_or_said_to_be_on_the_remote() {
    let repo = Repo::anywhere();
    let part = clone(&repo, &[]);
    let away = repo.spot.join("away");
    fs_err::rename(&repo.path, &away).unwrap();
    let refused = with_environment(calve(["worktree", "add", "other"])).within(&part).fails(1).hints();
    refused.says(&["the contents of 40 files are still on `origin`", "connect to the network, and run it again"]);
    assert!(!repo.spot.join("part.other").exists());
    assert_eq!(git(&part, ["worktree", "list"]).lines().count(), 1);
    // What it has is enough for its own branch.
    assert_eq!(add(&repo, &part, "same").1, 0);
    fs_err::rename(&away, &repo.path).unwrap();
    // All of the rest is fetched at once.
    let (ran, fetches) = add(&repo, &part, "other");
    assert_eq!(fetches, 1, "{}", ran.stderr);
    is_clean(&repo.spot.join("part.other"));
    assert_eq!(fs_err::read_to_string(repo.spot.join("part.other/docs/7")).unwrap(), "other docs 7\n");
    let local = Repo { path: part, ..repo };
    is_as_git_makes_it(&local, &local.spot.join("part.other"));
}

#[test]
fn a_plan_does_without_rules_that_are_still_on_the_remote() {
    let repo = Repo::anywhere();
    repo.git(["switch", "-q", "-c", "rules"]);
    repo.write("src/.gitignore", "# other rules\n");
    repo.commit("rules");
    repo.git(["switch", "-q", "main"]);
    let part = clone(&repo, &[]);
    write(&part.join("a.log"), "");
    fs_err::rename(&repo.path, repo.spot.join("away")).unwrap();
    let plan = with_environment(calve(["worktree", "add", "-n", "--json", "rules"])).within(&part).succeeds().json();
    assert_eq!(plan["carried"], serde_json::json!(["a.log"]));
}

#[test]
fn what_a_sparse_partial_clone_does_not_show_is_not_fetched() {
    let repo = Repo::anywhere();
    let part = clone(&repo, &["--sparse"]);
    git(&part, ["sparse-checkout", "set", "src"]);
    let missing = || git(&part, ["rev-list", "--objects", "--missing=print", "main"]).matches("\n?").count();
    let before = missing();
    assert!(before >= 20, "{before}");
    let (ran, fetches) = add(&repo, &part, "same");
    assert_eq!((fetches, missing()), (0, before), "{}", ran.stderr);
    is_clean(&repo.spot.join("part.same"));
    let (ran, fetches) = add(&repo, &part, "other");
    assert_eq!((fetches, missing()), (1, before), "{}", ran.stderr);
    let other = repo.spot.join("part.other");
    is_clean(&other);
    assert!(!other.join("docs").exists());
    assert_eq!(fs_err::read_to_string(other.join("src/7")).unwrap(), "other 7\n");
}

#[test]
fn where_nothing_was_checked_out_git_writes_all() {
    let repo = Repo::anywhere();
    let bare = repo.spot.join("bare");
    repo.git(["clone", "-q", "--no-checkout", ".", bare.to_str().unwrap()]);
    let path = with_environment(calve(["worktree", "add", "x"])).within(&bare).succeeds().stdout;
    is_clean(path.trim().as_ref());
    is_as_git_makes_it(&repo, path.trim().as_ref());
    // A commit of nothing.
    let empty = repo.spot.join("empty");
    git(&repo.spot, ["init", "-q", "-b", "main", "empty"]);
    git(&empty, ["commit", "-q", "--allow-empty", "-m", "nothing"]);
    write(&empty.join(".git/info/exclude"), "kept\n");
    write(&empty.join("kept"), "");
    let path = with_environment(calve(["worktree", "add", "x"])).within(&empty).succeeds().stdout;
    is_clean(path.trim().as_ref());
    assert!(repo.spot.join("empty.x/kept").exists());
}

#[test]
fn a_repository_of_somebody_else_is_refused_with_gits_remedy() {
    if !require_root("giving a repository to somebody else") {
        return;
    }
    let repo = Repo::anywhere();
    let linked = repo.add(["linked"]);
    repo.give_away();
    let is_refused = || {
        for path in [&repo.path, &linked] {
            repo.calve(["add", "x"]).within(path).fails(1).says(&[&format!("`{}` is in another user's repository", path.display()), "hint: if you trust its owner, run `git config --global --add safe.directory DIRECTORY`, the directory that has `.git` in it\n"]);
        }
    };
    is_refused();
    nothing_left(&repo.spot);
    // As one tells git in a container, where there is no configuration.
    let trusting = repo.calve(["add", "x"]).env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.directory");
    trusting.env("GIT_CONFIG_VALUE_0", "*").succeeds();
    assert!(repo.spot.join("proj.x/src/main.ts").exists());
    repo.write(".git/config", "[broken");
    is_refused();
}
