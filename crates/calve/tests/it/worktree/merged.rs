//! `calve worktree prune --merged`: only what exists elsewhere too goes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use calve_testkit::{SplitMix64, rounds};

use super::repo::{Repo, git, write};
use super::services::{POSTGRES, Shop};
use crate::program::carry_environment;
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
    prune(&["-n", "--older-than", "1h"]).succeeds().says(&["no merged worktree"]);
    // As old as what git wrote when it was made.
    let made = repo.join(".git/worktrees/proj.done/commondir");
    assert!(Command::new("touch").args(["-d", "30 days ago"]).arg(made).status().unwrap().success());
    prune(&["-n", "--older-than", "31d"]).succeeds().says(&["no merged worktree"]);
    prune(&["-n", "--older-than", "14d"]).succeeds().says(&[&format!("would remove {line}")]);
    for wrong in ["1", "d", "-1d", "1y", "99999999999999999999d"] {
        prune(&["-n", "--older-than", wrong]).run().ended(2);
    }
    repo.calve(["prune", "--yes"]).run().ended(2);
    // There is no terminal to answer on.
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
fn ignored_files_that_are_moved_aside_are_named_before() {
    let repo = Repo::anywhere();
    let done = repo.add(["done"]);
    git(&done, ["commit", "-q", "--allow-empty", "-m", "done"]);
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "done"]);
    write(&done.join(".env.own"), "only here\n");
    let prune = |words: &[&str]| repo.calve(["prune", "--merged", "--json"]).args(words);
    for words in [&["-n"][..], &["--yes"]] {
        let said = prune(words).succeeds().says(&["would keep for 7 days", "`.env.own`"]).json();
        assert_eq!(said["merged"][0]["unsaved"][0]["paths"], serde_json::json!([".env.own"]));
    }
    assert!(!done.exists());
}

#[test]
fn a_branch_of_a_remote_that_was_merged_here_may_go_and_a_new_one_may_not() {
    let repo = Repo::anywhere();
    let origin = repo.spot.join("origin.git");
    let words = ["clone", "-q", "--bare", ".", origin.to_str().unwrap()];
    repo.git(words);
    repo.git(["remote", "add", "origin", origin.to_str().unwrap()]);
    repo.git(["checkout", "-q", "-b", "elsewhere"]);
    repo.git(["commit", "-q", "--allow-empty", "-m", "elsewhere"]);
    repo.git(["push", "-q", "origin", "elsewhere", "elsewhere:fresh"]);
    repo.git(["checkout", "-q", "main"]);
    repo.git(["branch", "-q", "-D", "elsewhere"]);
    repo.git(["fetch", "-q", "origin"]);
    let at = repo.spot.join("elsewhere");
    repo.git(["worktree", "add", "-q", "--track", "-b", "elsewhere", at.to_str().unwrap(), "origin/elsewhere"]);
    let prune = || repo.calve(["prune", "--merged", "-n"]).succeeds();
    prune().says(&["no commit was ever made"]);
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "elsewhere"]);
    let new = repo.add(["new"]);
    prune().says(&["would remove", "branch `elsewhere`", &format!("kept `{}`", new.display())]);
}

#[test]
fn on_a_terminal_it_asks() {
    let repo = Repo::anywhere();
    let done = repo.add(["done"]);
    for (answer, stays) in [("\n", true), ("\u{3}", true), ("y\n", false)] {
        let mut terminal = Terminal::new(&repo.calve(["prune", "--merged", "--older-than", "0h"]).command());
        terminal.after("[y/N]", answer);
        assert_eq!(terminal.end().0, Some(0));
        assert_eq!(done.exists(), stays, "{answer:?}");
    }
    // Worktrees that are gone are a part of the plan.
    let [gone, done] = ["gone", "done"].map(|branch| repo.add([branch]));
    fs_err::remove_dir_all(&gone).unwrap();
    let is_listed = || repo.git(["worktree", "list"]).contains("proj.gone");
    let prune = |words: &[&str]| repo.calve(["prune", "--merged", "--older-than", "0h"]).args(words);
    let planned = prune(&["-n", "--json"]).succeeds();
    let planned = planned.says(&[&format!("would forget `{}`, which is gone", gone.display())]).json();
    assert_eq!(path(&planned["forgotten"][0]), gone);
    assert!(is_listed());
    // There is no terminal to answer on.
    prune(&[]).fails(3).says(&["to forget:"]);
    let mut terminal = Terminal::new(&prune(&[]).command());
    terminal.after("[y/N]", "n\n");
    assert_eq!(terminal.end().0, Some(0));
    assert!(is_listed() && done.exists());
    prune(&["--yes"]).succeeds().says(&["forgot"]);
    assert!(!is_listed() && !done.exists());
}

#[test]
fn a_branch_without_a_commit_of_its_own_is_new_and_not_merged() {
    let repo = Repo::anywhere();
    let [fresh, forward, rebased, done] = ["fresh", "forward", "rebased", "done"].map(|branch| repo.add([branch]));
    let detached = repo.add(["--detach", "HEAD", "--path", "../detached"]);
    repo.git(["worktree", "add", "-q", "-b", "by-git", "../by-git"]);
    write(&fresh.join(".env"), "SECRET=edited\n");
    git(&done, ["commit", "-q", "--allow-empty", "-m", "done"]);
    repo.git(["merge", "-q", "--ff-only", "done"]);
    git(&forward, ["merge", "-q", "--ff-only", "main"]);
    git(&rebased, ["rebase", "-q", "main"]);
    let prune = |words: &[&str]| repo.calve(["prune", "--merged", "--yes", "--json"]).args(words);
    let pruned = prune(&[]).succeeds().says(&["kept", "no commit was ever made on its branch"]);
    let pruned = pruned.says(&["`--older-than AGE`, such as 0h, removes it too"]);
    assert_eq!(pruned.json()["merged"].as_array().unwrap().len(), 1);
    assert_eq!(pruned.json()["kept"].as_array().unwrap().len(), 5);
    assert!(!done.exists());
    assert!([&fresh, &forward, &rebased, &detached].iter().all(|path| path.exists()));
    prune(&["--older-than", "1h"]).succeeds();
    assert!(fresh.exists());
    prune(&["--older-than", "0h"]).succeeds().says(&["1 ignored file", "7 days"]);
    assert_eq!(repo.worktrees(), std::slice::from_ref(&repo.path));
    // Without a log, a merge by a commit tells.
    repo.git(["config", "core.logAllRefUpdates", "false"]);
    let [new, merged] = ["new", "merged"].map(|branch| repo.add([branch]));
    git(&merged, ["commit", "-q", "--allow-empty", "-m", "merged"]);
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "merged"]);
    prune(&[]).succeeds();
    assert!(new.exists() && !merged.exists());
}

#[test]
fn a_worktree_that_is_in_use_stays() {
    let repo = Repo::anywhere();
    let [here, inside, locked, dirty] = ["here", "inside", "locked", "dirty"].map(|branch| repo.add([branch]));
    repo.git(["worktree", "lock", "--reason", "mine", locked.to_str().unwrap()]);
    write(&dirty.join("new"), "1");
    let mut sleeper =
        Command::new("sleep").arg("600").current_dir(inside.join("src")).stdin(Stdio::null()).spawn().unwrap();
    let ran = repo.calve(["prune", "--merged", "--older-than", "0h", "--yes", "--json"]).within(&here).succeeds();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let ran = ran.says(&["you are in it", "is inside", "locked", "uncommitted changes"]);
    let document = ran.json();
    let mut kept: Vec<_> = document["kept"].as_array().unwrap().iter().map(|kept| path(&kept["path"])).collect();
    kept.sort();
    assert_eq!(kept, [dirty, here, inside, locked]);
    assert!(document.get("merged").is_none() && kept.iter().all(|path| path.exists()));
}

#[test]
fn a_branch_that_follows_itself_is_merged_nowhere_and_a_pushed_one_elsewhere() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "own"]);
    repo.git(["config", "branch.x.remote", "."]);
    repo.git(["config", "branch.x.merge", "refs/heads/x"]);
    // Nor in one that only leads to it.
    repo.git(["symbolic-ref", "refs/heads/alias", "refs/heads/x"]);
    for upstream in ["refs/heads/x", "refs/heads/alias"] {
        repo.git(["config", "branch.x.merge", upstream]);
        repo.calve(["prune", "--merged", "--yes"]).succeeds().says(&["no merged worktree"]);
        assert!(path.exists(), "{upstream}");
    }
    // Commits that were pushed are elsewhere, too.
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

#[test]
fn squashed_merges_count_and_what_came_after_them_does_not() {
    let repo = Repo::anywhere();
    let [done, later, dirty, taken] = ["done", "later", "dirty", "taken"].map(|branch| {
        let path = repo.add([branch]);
        for line in ["one", "two"] {
            write(&path.join(format!("{branch}-{line}")), line);
            git(&path, ["add", "."]);
            git(&path, ["commit", "-q", "-m", line]);
        }
        path
    });
    for branch in ["done", "later", "dirty"] {
        repo.git(["merge", "-q", "--squash", branch]);
        repo.git(["commit", "-q", "-m", "squashed"]);
    }
    // Only half of it was taken over.
    repo.git(["cherry-pick", "taken~1"]);
    write(&later.join("three"), "three");
    git(&later, ["add", "."]);
    git(&later, ["commit", "-q", "-m", "three"]);
    write(&dirty.join("new"), "1");
    let before = repo.git(["rev-parse", "main"]);
    let ran = repo.calve(["prune", "--merged", "--yes", "--json"]).succeeds();
    let ran = ran.says(&[&format!("`{}`: branch `done`, squashed into `main`", done.display()), "uncommitted changes"]);
    assert_eq!(ran.json()["merged"].as_array().unwrap().len(), 1);
    assert_eq!(ran.json()["merged"][0]["squashed"], true);
    assert_eq!([done, later, dirty, taken].map(|path| path.exists()), [false, true, true, true]);
    assert!(!repo.git(["branch", "--list", "done"]).is_empty() && repo.git(["rev-parse", "main"]) == before);
}

#[test]
fn a_squashed_merge_that_was_reverted_does_not_count_and_looking_writes_nothing() {
    let repo = Repo::anywhere();
    let [kept, reverted] = ["kept", "reverted"].map(|branch| {
        let path = repo.add([branch]);
        write(&path.join(branch), branch);
        git(&path, ["add", "."]);
        git(&path, ["commit", "-q", "-m", branch]);
        repo.git(["merge", "-q", "--squash", branch]);
        repo.git(["commit", "-q", "-m", "squashed"]);
        path
    });
    repo.git(["revert", "--no-edit", "HEAD"]);
    let objects = || repo.git(["cat-file", "--batch-check", "--batch-all-objects"]);
    let before = objects();
    let planned = repo.calve(["prune", "--merged", "-n", "--json"]).succeeds().json();
    assert_eq!(planned["merged"].as_array().unwrap().len(), 1);
    assert_eq!(path(&planned["merged"][0]["path"]), kept);
    assert_eq!(objects(), before);
    assert!(reverted.exists());
}

/// A thing that may be done to a worktree, and whether the worktree has to stay then: because something in it exists nowhere else, or because
/// it is in use.
const DEEDS: [(&str, bool); 19] = [
    ("true", false),
    ("git merge -q --ff-only main", false),
    ("touch src/main.ts", false),
    ("mkdir empty", false),
    ("echo 1 >node_modules/dep/more.js", false),
    ("git tag tagged-$PPID-$RANDOM", false),
    ("echo 1 >>src/main.ts", true),
    ("echo 1 >new", true),
    ("echo 1 >new && git add new", true),
    (COMMIT, true),
    ("git checkout -q --detach && git commit -q --allow-empty -m nowhere", true),
    ("git rm -q run.sh", true),
    (
        "git init -q node_modules/own-repo && git -C node_modules/own-repo commit -q --allow-empty -m $RANDOM$RANDOM",
        true,
    ),
    ("git update-index --skip-worktree run.sh && echo 2 >>run.sh", true),
    (SQUASH, false),
    ("git worktree lock .", true),
    (PROCESS, true),
    (DATA, false),
    (WRITTEN_DATA, true),
];

/// Starts a process there.
const PROCESS: &str = "sleep 900 & echo $!";
/// Clones the data of a service.
const DATA: &str = "calve up -q && calve down -q";
/// Writes to data of its own.
const WRITTEN_DATA: &str =
    "calve exec -- sh -c 'psql -Xq \"$DATABASE_URL\" -c \"INSERT INTO t VALUES ($RANDOM)\"' && calve down -q";

/// Commits one new file, and has the main worktree take everything of the branch as one commit.
const SQUASH: &str = "branch=$(git symbolic-ref -q --short HEAD) && new=squashed-$branch && [ ! -e $new ] && echo 1 >$new && git add $new \
    && git commit -q -m squash -- $new && cd \"$(git rev-parse --path-format=absolute --git-common-dir)/..\" \
    && git merge -q --squash $branch && git commit -q -m squashed";
/// A change that only a commit of the branch has, which stays: a later squashed merge has it too.
const COMMIT: &str = "git commit -q --allow-empty -m own";

#[test]
fn whatever_exists_nowhere_else_is_never_removed() {
    let Some(shop) = Shop::new(POSTGRES) else { return };
    let mut random = SplitMix64::new(190);
    let worktrees = rounds(60);
    for _ in 0..worktrees.div_ceil(20) {
        let repo = Repo::anywhere();
        repo.write(".calve.toml", "[services.db]\ntemplate = 'shop'\nenv = 'DATABASE_URL'\n");
        repo.commit("services");
        let mut inside = Vec::new();
        let made: Vec<(PathBuf, Vec<&str>, bool)> = (0..worktrees.min(20))
            .map(|number| {
                let add = shop.within(&repo.path, &["worktree", "add", "-q", "--data-from", "none"]);
                let path = PathBuf::from(add.arg(format!("w{number}")).succeeds().stdout.trim_end());
                let done: Vec<_> = (0..=random.below(2)).map(|_| *random.pick(&DEEDS)).collect();
                let deeds = done.iter().map(|(deed, _)| *deed).collect();
                let (mut stays, mut is_squashed) = (false, false);
                for (deed, own) in &done {
                    let output = outcome(&shop, &path, deed);
                    let is_done = output.is_some();
                    inside.extend(output.filter(|_| *deed == PROCESS));
                    stays |= is_done && *own && *deed != COMMIT;
                    is_squashed |= is_done && *deed == SQUASH;
                }
                stays |= !is_squashed && done.iter().any(|(deed, _)| *deed == COMMIT);
                (path, deeds, stays)
            })
            .collect();
        shop.within(&repo.path, &["worktree", "prune", "--merged", "--older-than", "0h", "--yes"]).succeeds();
        for process in inside {
            Command::new("kill").arg(process.trim()).status().unwrap();
        }
        for (path, deeds, stays) in made {
            assert_eq!(path.exists(), stays, "{deeds:?}");
            // With its server.
            if path.exists() {
                let _ = outcome(&shop, &path, "git worktree unlock .");
                shop.within(&repo.path, &["worktree", "remove", "-qf"]).arg(&path).succeeds();
            }
        }
    }
}

/// Returns what a command printed, or `None` if it failed.
fn outcome(shop: &Shop, at: &Path, deed: &str) -> Option<String> {
    let calve = shop.within(at, &[]).command();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("calve() {{ '{}' \"$@\"; }}; {deed}", calve.get_program().display())]);
    carry_environment(&calve, &mut command);
    command.stderr(Stdio::null()).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "A").env(format!("{name}_EMAIL"), "a@example.org");
    }
    // The process that stays would hold a pipe.
    let printed = at.with_extension("printed");
    let status = command.stdout(fs_err::File::create(&printed).unwrap().into_parts().0).status().unwrap();
    status.success().then(|| fs_err::read_to_string(&printed).unwrap())
}
