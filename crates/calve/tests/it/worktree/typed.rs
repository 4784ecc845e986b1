//! What people type: names of commits, of worktrees, and short forms.

use super::repo::{Repo, git, is_clean, write};
use crate::spot::eventually_nothing_left;

#[test]
fn a_tag_or_an_abbreviated_commit_is_checked_out_without_a_branch() {
    let repo = Repo::anywhere();
    repo.git(["tag", "v1"]);
    repo.git(["tag", "-a", "-m", "annotated", "release/2"]);
    repo.write("src/main.ts", "two\n");
    repo.commit("two");
    repo.settle();
    let first = repo.git(["rev-parse", "v1"]).trim().to_owned();
    let described = format!("v1-0-g{}", &first[..10]);
    let branches = repo.git(["branch", "--list"]);
    for name in ["v1", "release/2", &first[..9], &first, &described] {
        let planned = repo.calve(["add", "-n", "--json", name]).succeeds().says(&["detached"]).json();
        assert_eq!(
            (&planned["branch"], &planned["head"]),
            (&serde_json::Value::Null, &first.as_str().into()),
            "{name}"
        );
        let ran = repo.calve(["add", name]).succeeds().says(&["detached", "git switch -c"]);
        let path = ran.stdout.trim_end();
        assert_eq!(git(path.as_ref(), ["rev-parse", "HEAD"]).trim(), first, "{name}");
        assert_eq!(git(path.as_ref(), ["branch", "--show-current"]), "", "{name}");
        is_clean(path.as_ref());
        // The command that it names.
        git(path.as_ref(), ["switch", "-q", "-c", "made"]);
        repo.calve(["remove", "-D", "made"]).succeeds();
        repo.calve(["add", "--base", "HEAD", name]).succeeds().says(&["on the new branch"]);
        repo.calve(["remove", "-D", name]).succeeds();
    }
    assert_eq!(repo.git(["branch", "--list"]), branches);
    // A name that only looks like a commit is a branch.
    assert_eq!(git(&repo.add(["beef"]), ["branch", "--show-current"]), "beef\n");
}

#[test]
fn a_dash_is_the_branch_that_was_checked_out_before() {
    let repo = Repo::anywhere();
    repo.calve(["add", "-"])
        .fails(1)
        .says(&["name the branch; `git branch` lists them", "no branch was checked out before"]);
    repo.git(["switch", "-q", "-c", "topic/before"]);
    repo.git(["switch", "-q", "main"]);
    let path = repo.add(["-"]);
    assert_eq!(path, repo.spot.join("proj.topic-before"));
    assert_eq!(git(&path, ["branch", "--show-current"]), "topic/before\n");
    repo.calve(["add", "-"]).fails(1).says(&[
        "work there, or name another branch; `--detach` checks out the commit without the branch",
        "`topic/before` is checked out in",
    ]);
}

#[test]
fn several_worktrees_are_removed_and_this_one_without_a_name() {
    let repo = Repo::anywhere();
    let paths = ["a", "b", "c", "d"].map(|name| repo.add([name]));
    write(&paths[1].join("new"), "work\n");
    let ran = repo.calve(["rm", "a", "b", "nobody", "c"]).fails(1);
    ran.says(&["removed `", "uncommitted changes", "no worktree of the branch or at the path `nobody`"]).hints();
    assert_eq!(paths.each_ref().map(|path| path.exists()), [false, true, false, true]);
    let ran = repo.calve(["remove", "-f", "--json", "b"]).succeeds();
    assert_eq!(ran.json()["schema"], "calve.worktree-remove/1");
    let [kept, gone] = ["e", "f"].map(|name| repo.add([name]));
    let ran = repo.calve(["remove", "--json"]).args([&kept, &gone]).succeeds().json();
    assert_eq!((&ran["schema"], ran["removed"].as_array().unwrap().len()), (&"calve.worktree-removals/1".into(), 2));
    let ran = repo.calve(["remove", "-q"]).within(paths[3].join("src")).succeeds();
    // Where to go from a directory that is not there any more.
    assert_eq!((ran.stdout, ran.stderr), (format!("{}\n", repo.path.display()), String::new()));
    assert!(!paths[3].exists() && !repo.worktrees().contains(&paths[3]));
    let [inner, other] = ["inner", "other"].map(|name| repo.add([name]));
    let ran = repo.calve(["rm", ".", "../proj.other"]).within(&inner).succeeds();
    assert_eq!(ran.stdout, format!("{}\n", repo.path.display()));
    assert!(!inner.exists() && !other.exists());
    // The one with the shell in it comes last.
    let [inner, other] = ["inner2", "other2"].map(|name| repo.add([name]));
    let ran = repo.calve(["rm", "../proj.other2", "."]).within(&inner).succeeds();
    assert_eq!(ran.stdout, format!("{}\n", repo.path.display()));
    assert!(!inner.exists() && !other.exists());
    repo.calve(["remove"]).fails(1).says(&["is the main worktree"]).hints();
    repo.calve(["remove"]).within(repo.join("src")).fails(1).says(&["is the main worktree"]).hints();
    // Outside of a repository, a path names it.
    let [one, two, three] = ["one", "two", "three"].map(|name| repo.add([name]));
    repo.calve(["remove", one.to_str().unwrap()]).within(&repo.spot).succeeds();
    repo.calve(["remove", "proj.two", three.to_str().unwrap()]).within(&repo.spot).succeeds();
    assert!(!one.exists() && !two.exists() && !three.exists());
    repo.calve(["remove", "nothing"]).within(&repo.spot).fails(1).says(&["not in a git repository"]).hints();
    eventually_nothing_left(&repo.spot);
}

#[test]
fn without_the_function_of_the_shell_cd_says_how_to_get_it() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    for (shell, line) in
        [("/bin/zsh", "`eval \"$(calve shell-init zsh)\"`"), ("/usr/bin/fish", "`calve shell-init fish | source`")]
    {
        let said = repo.calve(["cd", "x"]).env("SHELL", shell).on_a_terminal().succeeds().stdout;
        assert!(said.contains(path.to_str().unwrap()) && said.contains(line), "{said}");
    }
    let said = repo.calve(["cd", "x"]).succeeds();
    assert_eq!((said.stdout, said.stderr), (format!("{}\n", path.display()), String::new()));
}

#[test]
fn a_dry_run_removes_nothing_and_says_what_would_be_refused() {
    let repo = Repo::anywhere();
    repo.write(".calve.toml", "[hooks]\npre-remove = 'touch ../ran'\n");
    repo.commit("hooks");
    let path = repo.add(["x"]);
    repo.calve(["remove", "-n", "-D", "x"]).succeeds().says(&["would remove", "and the branch `x`"]);
    let document = repo.calve(["remove", "-n", "--json", "x"]).succeeds().json();
    assert_eq!(document["schema"], "calve.worktree-remove-plan/1");
    write(&path.join("new"), "work\n");
    repo.calve(["remove", "-n", "x"]).fails(1).says(&["uncommitted changes"]).hints();
    repo.calve(["remove", "-n", "-f", "x"]).succeeds().says(&["would remove"]);
    assert!(path.join("new").exists() && repo.worktrees().contains(&path) && !repo.spot.join("ran").exists());
}

#[test]
fn a_worktree_that_is_gone_is_forgotten_and_its_branch_can_be_had_after_the_hint() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    fs_err::remove_dir_all(&path).unwrap();
    let ran = repo.calve(["add", "x"]).fails(1).says(&["`calve worktree prune` makes git forget it; if you moved the worktree, run `git worktree repair NEW-PATH` instead", "is gone", "`calve worktree prune`"]);
    assert!(!ran.stderr.contains("work there"), "{}", ran.stderr);
    repo.calve(["prune"]).succeeds();
    is_clean(&repo.add(["x"]));
    // It is forgotten, and not removed.
    fs_err::remove_dir_all(&path).unwrap();
    repo.calve(["remove", "-n", "x"]).succeeds().says(&["would forget"]);
    let ran = repo.calve(["remove", "x"]).succeeds().says(&["forgot", "was already gone"]);
    assert!(!ran.stderr.contains("removed"), "{}", ran.stderr);
    assert_eq!(repo.worktrees(), std::slice::from_ref(&repo.path));
}

#[test]
fn changes_that_stay_behind_are_told() {
    let repo = Repo::anywhere();
    let told = |arguments: &[&str]| repo.calve(["add"]).args(arguments).succeeds().stderr.contains("stay in");
    assert!(!told(&["a"]));
    repo.write("src/main.ts", "changed\n");
    repo.calve(["add", "b"]).succeeds().says(&["1 uncommitted change stays in", "--dirty"]);
    repo.write("new", "x\n");
    repo.calve(["add", "c"]).succeeds().says(&["2 uncommitted changes stay in"]);
    let receipt = repo.calve(["add", "--json", "d"]).succeeds().json();
    assert_eq!(receipt["uncommitted"], 2);
    assert!(!told(&["--dirty", "e"]) && !told(&["-q", "f"]));
}
