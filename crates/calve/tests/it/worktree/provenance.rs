//! Whose work a commit is: decided by what reaches it, whatever name it is given and wherever a fetch has put it.

use std::path::PathBuf;

use calve_testkit::few_rounds;

use super::repo::{git, write};
use super::untrusted::Hostile;

/// Refspecs by which people have the requests of others here: `(configured or given, the name afterwards)`.
const FETCHES: [(&str, &str); 9] = [
    ("+refs/pull/*/head:refs/remotes/origin/pull/*", "origin/pull/7"),
    ("+refs/pull/*:refs/remotes/origin/pull/*", "origin/pull/7/head"),
    ("+refs/pull/*:refs/remotes/origin/pr/*", "origin/pr/7/head"),
    ("+refs/pull/*/head:refs/remotes/origin/merge-requests/*", "origin/merge-requests/7"),
    ("+refs/pull/*/head:refs/pull-requests/*/from", "refs/pull-requests/7/from"),
    ("+refs/pull/*/head:refs/pull/*/head", "refs/pull/7/head"),
    ("+refs/pull/*/head:refs/remotes/origin/theirs/*", "origin/theirs/7"),
    ("+refs/pull/*/head:refs/heads/review-*", "review-7"),
    ("+refs/*:refs/remotes/mirror/*", "refs/remotes/mirror/pull/7/head"),
];

fn worktree(hostile: &Hostile, arguments: &[&str]) -> (PathBuf, bool) {
    let added = hostile.calve(["add", "--json"]).args(arguments).succeeds().json();
    (PathBuf::from(added["path"].as_str().unwrap()), added["untrusted"] == true)
}

/// Adds worktrees of the commit by every spelling, and looks whether one of them is trusted or has run something.
#[track_caller]
fn is_untrusted_by_every_name(hostile: &Hostile, name: &str) {
    is_untrusted_by_names(hostile, name, 4);
}

/// The same by so many spellings.
#[track_caller]
fn is_untrusted_by_names(hostile: &Hostile, name: &str, most: usize) {
    let oid = hostile.repo.git(["rev-parse", name]);
    let mut made = Vec::new();
    for arguments in [
        &["--detach", "--path", "../by-name", name][..],
        &["--base", name, "from-it"],
        &["--base", oid.trim_end(), "by-id"],
        &["--detach", "--path", "../detached", oid.trim_end()],
    ]
    .into_iter()
    .take(most)
    {
        let (path, is_untrusted) = worktree(hostile, arguments);
        assert!(is_untrusted && !path.join(".env").exists(), "{name}: {arguments:?}");
        made.push(path);
    }
    hostile.nothing_ran(name);
    for path in made {
        assert!(hostile.is_untrusted(&path), "{name}: {}", path.display());
        hostile.calve(["remove", "-f", "-D"]).args([&path]).succeeds().says(&["no hook was run"]);
    }
    hostile.nothing_ran(name);
}

#[test]
fn a_request_is_known_wherever_a_fetch_has_put_it() {
    let hostile = Hostile::new();
    // The server's own branches have nothing of it.
    git(&hostile.repo.spot.join("other"), ["update-ref", "refs/heads/main", "main~1"]);
    for (refspec, name) in FETCHES {
        for is_configured in [true, false] {
            if !is_configured && (name.contains("theirs") || name.contains("review")) {
                // Nothing tells any more where it came from, but for a moment FETCH_HEAD.
                continue;
            }
            if is_configured {
                hostile.repo.git(["config", "remote.origin.fetch", refspec]);
                hostile.repo.git(["fetch", "-q", "origin"]);
            } else {
                hostile.repo.git(["fetch", "-q", "origin", refspec]);
            }
            fs_err::remove_file(hostile.repo.join(".git/FETCH_HEAD")).unwrap();
            // With few rounds, one name is spelt in every way.
            let most = if few_rounds() && name != FETCHES[0].1 { 1 } else { 4 };
            is_untrusted_by_names(&hostile, name, most);
            let full = hostile.repo.git(["rev-parse", "--symbolic-full-name", name]);
            hostile.repo.git(["update-ref", "-d", full.trim_end()]);
            let _ = hostile.repo.git(["config", "--unset-all", "remote.origin.fetch", "."]).len();
            if !is_configured {
                break;
            }
            hostile.repo.git(["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
        }
    }
}

#[test]
fn what_was_fetched_by_hand_or_by_gh_is_known() {
    let hostile = Hostile::new();
    hostile.repo.git(["fetch", "-q", "origin", "pull/7/head"]);
    is_untrusted_by_every_name(&hostile, "FETCH_HEAD");
    // As `gh pr checkout` leaves it, with and without the right to push.
    hostile.repo.git(["branch", "fix", "FETCH_HEAD"]);
    hostile.repo.git(["branch", "fork", "FETCH_HEAD"]);
    hostile.repo.git(["fetch", "-q", "origin", "pull/7/head:by-hand"]);
    fs_err::remove_file(hostile.repo.join(".git/FETCH_HEAD")).unwrap();
    for (name, value) in [
        ("branch.fix.remote", "origin"),
        ("branch.fix.merge", "refs/pull/7/head"),
        ("branch.fork.remote", "https://example.org/them/proj.git"),
        ("branch.fork.merge", "refs/heads/patch-1"),
    ] {
        hostile.repo.git(["config", name, value]);
    }
    for branch in ["fix", "fork", "by-hand"] {
        let (path, is_untrusted) = worktree(&hostile, &[branch]);
        assert!(is_untrusted && !path.join(".env").exists(), "{branch}");
        hostile.calve(["remove", branch]).succeeds();
    }
    hostile.nothing_ran("branches that follow a pull request");
}

#[test]
fn worktrees_that_git_made_of_a_request_are_not_trusted() {
    let hostile = Hostile::new();
    hostile.calve(["add", "pr/7"]).succeeds();
    hostile.calve(["remove", "pr/7"]).succeeds();
    let by_git = |name: &str, words: &[&str]| {
        let path = hostile.repo.spot.join(name);
        let quiet = [
            "-c",
            "core.hooksPath=/nowhere",
            "-c",
            "filter.relative.required=false",
            "-c",
            "filter.relative.smudge=cat",
        ];
        let add = ["worktree", "add", "-q", path.to_str().unwrap()];
        hostile.repo.git(quiet.iter().chain(&add).chain(words));
        path
    };
    let all = [
        by_git("of-branch", &["pr/7"]),
        by_git("of-commit", &["--detach", "pr/7"]),
        by_git("on-top", &["-b", "on-top", "pr/7~0"]),
    ];
    let _ = fs_err::remove_file(&hostile.ran);
    for path in &all {
        write(&path.join("node_modules/dep/index.js"), "hostile\n");
        assert!(hostile.is_untrusted(path), "{}", path.display());
    }
    // Its dependencies would fit an older commit best.
    hostile.repo.write("package-lock.json", "{ \"new\": 1 }\n");
    hostile.repo.git(["add", "package-lock.json"]);
    hostile.repo.git(["commit", "-q", "-m", "another"]);
    let _ = fs_err::remove_file(&hostile.ran);
    let (old, _) = worktree(&hostile, &["--no-hooks", "--base", "HEAD~1", "old"]);
    assert_eq!(fs_err::read_to_string(old.join("node_modules/dep/index.js")).unwrap(), "module.exports = 1\n");
    for path in &all {
        hostile.calve(["remove", "-f"]).args([path]).succeeds().says(&["no hook was run"]);
    }
    hostile.nothing_ran("worktrees that git made");
}

#[test]
fn a_branch_that_was_made_of_a_request_stays_its() {
    let hostile = Hostile::new();
    hostile.calve(["add", "pr/7"]).succeeds();
    hostile.calve(["add", "--base", "pr/7", "mine"]).succeeds();
    for branch in ["mine", "pr/7"] {
        hostile.calve(["remove", branch]).succeeds();
    }
    hostile.repo.git(["branch", "-D", "pr/7"]);
    let (_, is_untrusted) = worktree(&hostile, &["mine"]);
    assert!(is_untrusted);
    hostile.nothing_ran("the branch again");
}

#[test]
fn what_the_project_has_is_nobody_elses() {
    let hostile = Hostile::new();
    let other = hostile.repo.spot.join("other");
    git(&other, ["update-ref", "refs/heads/merged", "refs/pull/7/head"]);
    hostile.repo.git(["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    hostile.repo.git(["config", "--add", "remote.origin.fetch", "+refs/pull/*/head:refs/remotes/origin/pull/*"]);
    hostile.repo.git(["fetch", "-q", "origin"]);
    let (path, is_untrusted) = worktree(&hostile, &["--no-hooks", "--base", "origin/pull/7", "since-merged"]);
    assert!(!is_untrusted && path.join(".env").exists());
    // One's own request, whose branch is gone on the server.
    git(&other, ["update-ref", "-d", "refs/heads/merged"]);
    hostile.repo.git(["-c", "core.hooksPath=", "switch", "-q", "-c", "own"]);
    hostile.repo.git(["-c", "core.hooksPath=", "commit", "-q", "--allow-empty", "-m", "mine"]);
    hostile.repo.git(["push", "-q", "origin", "own:refs/pull/8/head"]);
    hostile.repo.git(["-c", "core.hooksPath=", "switch", "-q", "main"]);
    hostile.repo.git(["fetch", "-q", "--prune", "origin"]);
    let (path, is_untrusted) = worktree(&hostile, &["--no-hooks", "own"]);
    assert!(!is_untrusted && path.join(".env").exists());
}

#[test]
fn a_merge_driver_of_a_request_does_not_run_in_prune() {
    let hostile = Hostile::new();
    let repo = &hostile.repo;
    let ran = hostile.ran.display();
    let quiet = |words: &[&str]| repo.git(["-c", "core.hooksPath=", "-c", "core.fsmonitor="].iter().chain(words));
    let lines = |changed: &[(usize, &str)]| -> String {
        let line = |at: usize| {
            changed.iter().find(|(known, _)| *known == at).map_or(at.to_string(), |(_, text)| (*text).to_owned())
        };
        (1..=20).map(|at| line(at) + "\n").collect()
    };
    // `git cherry` takes no notice of where lines end.
    let honest = format!("# note echo driver >>'{ran}'\ngit merge-file \"$2\" \"$1\" \"$3\"\n");
    let hostile_driver = honest.replacen("# note ", "# note\n", 1);
    repo.write(".gitattributes", "*.txt merge=lst\n");
    repo.write("l.txt", &lines(&[]));
    repo.write("tools/m.sh", "git merge-file \"$2\" \"$1\" \"$3\"\n");
    quiet(&["add", "-A"]);
    quiet(&["commit", "-q", "-m", "base"]);
    quiet(&["config", "merge.lst.driver", "sh tools/m.sh %O %A %B"]);
    repo.write("tools/m.sh", &honest);
    repo.write("l.txt", &lines(&[(3, "three")]));
    quiet(&["commit", "-q", "-a", "-m", "squashed"]);
    repo.write("l.txt", &lines(&[(3, "three"), (15, "x")]));
    quiet(&["commit", "-q", "-a", "-m", "more"]);
    quiet(&["switch", "-q", "-c", "e", "main~2"]);
    repo.write("tools/m.sh", &hostile_driver);
    repo.write("l.txt", &lines(&[(3, "three")]));
    quiet(&["commit", "-q", "-a", "-m", "theirs"]);
    quiet(&["push", "-q", "origin", "e:refs/pull/9/head"]);
    quiet(&["switch", "-q", "main"]);
    quiet(&["branch", "-q", "-D", "e"]);
    hostile.calve(["add", "pr/9"]).succeeds();
    let _ = fs_err::remove_file(&hostile.ran);
    hostile.calve(["prune", "--merged", "-n"]).succeeds();
    hostile.calve(["prune", "--merged", "--yes"]).succeeds();
    hostile.nothing_ran("prune --merged");
}

#[test]
fn another_repository_at_the_same_path_has_to_be_approved_anew() {
    let hostile = Hostile::new();
    hostile.calve(["add", "own"]).succeeds();
    let moved = hostile.repo.spot.join("moved");
    fs_err::rename(&hostile.repo.path, &moved).unwrap();
    git(&hostile.repo.spot, ["clone", "-q", "moved", hostile.repo.path.to_str().unwrap()]);
    hostile.calve(["add", "w2"]).fails(3).hints().says(&["not approved"]);
    hostile.approve(&hostile.repo.path, &["--yes"]).succeeds();
    hostile.calve(["add", "w2"]).succeeds();
}
