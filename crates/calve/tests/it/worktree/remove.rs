//! Removing, listing, pruning.

use super::repo::{Repo, git, write};
use crate::spot::eventually_nothing_left;

#[test]
fn what_would_be_lost_is_not_removed_unless_forced() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let refused = |words: &[&str]| {
        repo.calve(["remove", "x"]).fails(1).says(words).hints();
        assert!(path.exists());
    };
    write(&path.join("new"), "n\n");
    refused(&["not committed", "new"]);
    fs_err::remove_file(path.join("new")).unwrap();
    write(&path.join("src/main.ts"), "changed\n");
    refused(&["not committed", "src/main.ts"]);
    git(&path, ["checkout", "-q", "."]);
    repo.git(["worktree", "lock", "--reason", "on a stick", path.to_str().unwrap()]);
    refused(&["is locked: on a stick"]);
    repo.git(["worktree", "unlock", path.to_str().unwrap()]);
    repo.calve(["remove", "main"])
        .fails(1)
        .says(&["name a linked worktree; `calve worktree list` shows them", "main worktree"]);
    repo.calve(["remove", "nobody"]).fails(1).says(&["there is no worktree"]).hints();
    repo.calve(["remove", "x"]).succeeds();
    assert!(!path.exists());
    assert_eq!(repo.worktrees(), std::slice::from_ref(&repo.path));
    assert_ne!(repo.git(["branch", "--list", "x"]), "", "the branch stays");
    eventually_nothing_left(&repo.spot);
}

#[test]
fn commits_that_nothing_else_has_are_not_lost() {
    let repo = Repo::anywhere();
    let path = repo.add(["--detach", "HEAD", "--path", "../loose"]);
    write(&path.join("new"), "n\n");
    git(&path, ["add", "new"]);
    git(&path, ["commit", "-q", "-m", "only here"]);
    repo.calve(["remove", "../loose"]).fails(1).says(&["no branch or tag has"]).hints();
    repo.git(["branch", "kept", git(&path, ["rev-parse", "HEAD"]).trim()]);
    repo.calve(["remove", "loose"]).succeeds();
    assert!(!path.exists());
}

#[test]
fn a_branch_goes_when_that_is_asked_for() {
    let repo = Repo::anywhere();
    let path = repo.add(["merged"]);
    repo.calve(["remove", "-d"]).arg(&path).succeeds();
    assert_eq!(repo.git(["branch", "--list", "merged"]), "");
    let path = repo.add(["ahead"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "more"]);
    repo.calve(["remove", "-d", "ahead"])
        .succeeds()
        .says(&["the branch `ahead` stays: it or its log has 1 commit that no other branch has"]);
    repo.add(["ahead"]);
    let receipt = repo.calve(["remove", "-D", "--json", "ahead"]).succeeds().json();
    assert_eq!((&receipt["schema"], &receipt["branch_deleted"]), (&"calve.worktree-remove/1".into(), &true.into()));
    assert_eq!(repo.git(["branch", "--list", "ahead"]), "");
    // From inside the one that goes.
    let path = repo.add(["inside"]);
    repo.calve(["remove", "-f", "inside"]).within(path.join("src")).run();
    repo.calve(["remove", "-f", "inside"]).run();
    assert!(!path.exists());
}

#[test]
fn the_list_tells_how_each_is() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "more"]);
    write(&path.join("new"), "n\n");
    let list = repo.calve(["list", "--json"]).succeeds().json();
    assert_eq!(list["schema"], "calve.worktrees/1");
    let (main, x) = (&list["worktrees"][0], &list["worktrees"][1]);
    assert_eq!((&main["main"], &main["current"], &main["dirty"]), (&true.into(), &true.into(), &false.into()));
    assert_eq!(
        (&x["branch"], &x["dirty"], &x["ahead"], &x["behind"]),
        (&"x".into(), &true.into(), &1.into(), &0.into())
    );
    assert_eq!(x["compared_with"], "main");
    assert!(x["age_s"].as_u64().unwrap() < 600);
    let text = repo.calve(["list"]).succeeds().stdout;
    assert!(text.lines().nth(1).unwrap().contains("dirty +1"), "{text}");
}

#[test]
fn what_is_gone_is_forgotten_unless_it_is_locked() {
    let repo = Repo::anywhere();
    let (gone, stick) = (repo.add(["gone"]), repo.add(["stick"]));
    repo.git(["worktree", "lock", stick.to_str().unwrap()]);
    for path in [&gone, &stick] {
        fs_err::remove_dir_all(path).unwrap();
    }
    let receipt = repo.calve(["prune", "--json"]).succeeds().json();
    assert_eq!(receipt["forgotten"], serde_json::json!([gone.to_str().unwrap()]));
    assert_eq!(repo.worktrees(), [repo.path.clone(), stick]);
    repo.add(["gone"]);
}

#[test]
fn a_relative_path_is_relative_to_where_one_is() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let given = repo.calve(["add", "y", "--from", "../../proj.x", "--path", "../../y"]).within(repo.join("src"));
    assert_eq!(given.succeeds().stdout.trim(), repo.spot.join("y").to_str().unwrap());
    repo.calve(["remove", "../../proj.x"]).within(repo.join("src")).succeeds();
    assert!(!path.exists());
    repo.calve(["remove", "../y"]).within(repo.join("src")).fails(1).says(&["there is no worktree"]).hints();
}

#[test]
fn commits_that_only_a_submodule_has_are_not_lost() {
    let repo = Repo::anywhere();
    let inner = repo.spot.join("inner");
    repo.git(["clone", "-q", ".", inner.to_str().unwrap()]);
    let allowed = ["-c", "protocol.file.allow=always"];
    repo.git(allowed.into_iter().chain(["submodule", "add", "-q", inner.to_str().unwrap(), "lib/sub"]));
    repo.commit("submodule");
    let path = repo.add(["x"]);
    let sub = path.join("lib/sub");
    git(&path, allowed.into_iter().chain(["submodule", "update", "-q", "--init"]));
    git(&sub, ["switch", "-q", "-c", "work"]);
    git(&sub, ["commit", "-q", "--allow-empty", "-m", "only here"]);
    // A changed submodule is a change, also where the project does not want to see it.
    git(&path, ["config", "submodule.lib/sub.ignore", "all"]);
    repo.calve(["remove", "x"]).fails(1).says(&[
        "commit, push, finish or copy what you need of it; `-f` loses all of it",
        "not committed",
        "lib/sub",
    ]);
    git(&path, ["commit", "-q", "-a", "-m", "newer submodule"]);
    git(&path, ["-c", "submodule.lib/sub.ignore=none", "add", "-f", "lib/sub"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "newer submodule"]);
    repo.calve(["remove", "x"]).fails(1).says(&["`lib/sub`", "none of its remotes has"]).hints();
    git(&sub, ["push", "-q", "origin", "work"]);
    repo.calve(["remove", "x"]).succeeds();
    assert!(!path.exists());
    eventually_nothing_left(&repo.spot);
}
