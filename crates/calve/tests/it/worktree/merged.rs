//! `calve worktree prune --merged`: only what exists elsewhere too goes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_testkit::SplitMix64;

use super::repo::{Repo, git, write};
use crate::terminal::Terminal;

fn path(value: &serde_json::Value) -> PathBuf {
    PathBuf::from(value.as_str().unwrap())
}

#[test]
fn merged_worktrees_are_listed_and_removed_when_that_is_wanted() {
    let repo = Repo::anywhere();
    let (done, own) = (repo.add(["done"]), repo.add(["own"]));
    git(&done, ["commit", "-q", "--allow-empty", "-m", "done"]);
    git(&own, ["commit", "-q", "--allow-empty", "-m", "own"]);
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "done"]);
    let prune = |words: &[&str]| repo.calve(["prune", "--merged"]).args(words);
    let line = format!("`{}`: branch `done`, all in `main`, ", done.display());
    prune(&["-n"]).succeeds().says(&[&format!("would remove {line}")]);
    let planned = prune(&["-n", "--json"]).succeeds().json();
    assert_eq!((planned["merged"].as_array().unwrap().len(), &planned["merged"][0]["removed"]), (1, &false.into()));
    prune(&["-n", "--older-than", "1h"]).succeeds().says(&["no worktree is merged"]);
    for wrong in ["1", "d", "-1d", "1y", "99999999999999999999d"] {
        prune(&["-n", "--older-than", wrong]).run().ended(2);
    }
    repo.calve(["prune", "--yes"]).run().ended(2);
    // Nobody is there to answer.
    prune(&[]).fails(3).says(&["to remove:"]).hints();
    assert!(done.exists());
    let removed = prune(&["--yes", "--json"]).succeeds().json();
    assert_eq!((path(&removed["merged"][0]["path"]), &removed["merged"][0]["removed"]), (done.clone(), &true.into()));
    assert_eq!(
        (&removed["merged"][0]["branch"], &removed["merged"][0]["merged_into"]),
        (&"done".into(), &"main".into())
    );
    assert_eq!(repo.worktrees(), [repo.path.clone(), own]);
    assert!(!done.exists() && !repo.git(["branch", "--list", "done"]).is_empty());
}

#[test]
fn on_a_terminal_it_asks() {
    let repo = Repo::anywhere();
    let done = repo.add(["done"]);
    for (answer, stays) in [("\n", true), ("\u{3}", true), ("y\n", false)] {
        let mut terminal = Terminal::new(&repo.calve(["prune", "--merged"]).command());
        terminal.after("[y/N]", answer);
        assert_eq!(terminal.end().0, Some(0));
        assert_eq!(done.exists(), stays, "{answer:?}");
    }
}

#[test]
fn a_worktree_that_is_in_use_stays() {
    let repo = Repo::anywhere();
    let [here, inside, locked, dirty] = ["here", "inside", "locked", "dirty"].map(|branch| repo.add([branch]));
    repo.git(["worktree", "lock", "--reason", "mine", locked.to_str().unwrap()]);
    write(&dirty.join("new"), "1");
    let mut sleeper =
        Command::new("sleep").arg("600").current_dir(inside.join("src")).stdin(Stdio::null()).spawn().unwrap();
    let ran = repo.calve(["prune", "--merged", "--yes", "--json"]).within(&here).succeeds();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let ran = ran.says(&["you are in it", "is inside", "locked", "not committed"]);
    let document = ran.json();
    let mut kept: Vec<_> = document["kept"].as_array().unwrap().iter().map(|kept| path(&kept["path"])).collect();
    kept.sort();
    assert_eq!(kept, [dirty, here, inside, locked]);
    assert!(document.get("merged").is_none() && kept.iter().all(|path| path.exists()));
}

#[test]
fn pushed_commits_are_elsewhere_too() {
    let repo = Repo::anywhere();
    let remote = repo.spot.join("remote");
    repo.git(["init", "-q", "--bare", remote.to_str().unwrap()]);
    repo.git(["remote", "add", "origin", remote.to_str().unwrap()]);
    let [pushed, ahead] = ["pushed", "ahead"].map(|branch| repo.add([branch]));
    for path in [&pushed, &ahead] {
        git(path, ["commit", "-q", "--allow-empty", "-m", "one"]);
        git(path, ["push", "-q", "-u", "origin", "HEAD"]);
    }
    git(&ahead, ["commit", "-q", "--allow-empty", "-m", "two"]);
    let document = repo.calve(["prune", "--merged", "--yes", "--json"]).succeeds().json();
    assert_eq!(document["merged"][0]["merged_into"], "origin/pushed");
    assert!(!pushed.exists() && ahead.exists());
}

/// A thing that may be done to a worktree, and whether it leaves something that exists nowhere else.
const DEEDS: [(&str, bool); 14] = [
    ("true", false),
    ("git merge -q --ff-only main", false),
    ("touch src/main.ts", false),
    ("mkdir empty", false),
    ("echo 1 >node_modules/dep/more.js", false),
    ("git tag tagged-$PPID-$RANDOM", false),
    ("echo 1 >>src/main.ts", true),
    ("echo 1 >new", true),
    ("echo 1 >new && git add new", true),
    ("git commit -q --allow-empty -m own", true),
    ("git checkout -q --detach && git commit -q --allow-empty -m nowhere", true),
    ("git rm -q run.sh", true),
    (
        "git init -q node_modules/own-repo && git -C node_modules/own-repo commit -q --allow-empty -m $RANDOM$RANDOM",
        true,
    ),
    ("git update-index --skip-worktree run.sh && echo 2 >>run.sh", true),
];

#[test]
fn whatever_exists_nowhere_else_is_never_removed() {
    let states: u64 = std::env::var("CALVE_PRUNE_STATES").map_or(60, |states| states.parse().unwrap());
    let mut random = SplitMix64::new(190);
    for _ in 0..states.div_ceil(20) {
        let repo = Repo::anywhere();
        let made: Vec<(PathBuf, Vec<&str>, bool)> = (0..20)
            .map(|number| {
                let path = repo.add([format!("w{number}")]);
                let done: Vec<_> = (0..=random.below(2)).map(|_| DEEDS[random.below(14) as usize]).collect();
                let deeds = done.iter().map(|(deed, _)| *deed).collect();
                let mut holds = false;
                for (deed, own) in done {
                    holds |= has_succeeded(&path, deed) && own;
                }
                (path, deeds, holds)
            })
            .collect();
        repo.calve(["prune", "--merged", "--yes"]).succeeds();
        for (path, deeds, holds) in made {
            assert_eq!(path.exists(), holds, "{deeds:?}");
        }
    }
}

fn has_succeeded(at: &Path, deed: &str) -> bool {
    let mut command = Command::new("bash");
    command.args(["-c", deed]).current_dir(at).env("GIT_CONFIG_GLOBAL", "/dev/null").stderr(Stdio::null());
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "A").env(format!("{name}_EMAIL"), "a@example.org");
    }
    command.status().unwrap().success()
}
