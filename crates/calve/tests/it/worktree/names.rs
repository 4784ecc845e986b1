//! Names of branches that are not found, or that mean something else than a branch: never a new branch by mistake.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;

use calve_testkit::{SplitMix64, rounds};
use serde_json::Value;

use super::repo::{Repo, git, git_at, is_clean, try_git, with_environment};
use crate::program::calve;

const NAME_REMOTE: &str =
    "name one of them as it is written here, or have git prefer a remote: `git config checkout.defaultRemote";
const FETCH_OR_BASE: &str = "check the spelling, or fetch it first: `git fetch REMOTE NAME`, or `git fetch --tags`; `--base HEAD` makes a new branch of that name";

/// A server with the branches `main` and `release`, each at a commit of its own.
fn served() -> (Repo, PathBuf) {
    let repo = Repo::anywhere();
    let server = repo.spot.join("server");
    repo.git(["clone", "-q", "--bare", ".", server.to_str().unwrap()]);
    let released = repo.git(["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "released"]);
    repo.git(["push", "-q", server.to_str().unwrap(), &format!("{}:refs/heads/release", released.trim())]);
    (repo, server)
}

fn planned(repo: &Repo, name: &str) -> Value {
    repo.calve(["add", "-n", "--json", name]).succeeds().json()
}

#[test]
fn a_repository_whose_name_is_no_text_gives_its_bytes_to_worktrees() {
    let mut repo = Repo::anywhere();
    let odd = repo.spot.join(OsStr::from_bytes(b"pr\xffoj"));
    fs_err::rename(&repo.path, &odd).unwrap();
    repo.path = odd;
    let printed = repo.calve(["add", "x"]).command().output().unwrap();
    let expected = repo.spot.join(OsStr::from_bytes(b"pr\xffoj.x"));
    assert_eq!(printed.stdout.strip_suffix(b"\n").unwrap(), expected.as_os_str().as_bytes(), "{printed:?}");
    is_clean(&expected);
    assert_eq!(fs_err::read_dir(&*repo.spot).unwrap().count(), 2);
}

#[test]
fn a_command_in_a_hint_can_be_pasted_whatever_the_path() {
    let mut repo = Repo::anywhere();
    let odd = repo.spot.join("it's\nmine");
    fs_err::rename(&repo.path, &odd).unwrap();
    repo.path = odd;
    repo.write(".calve.toml", "[worktree]\nspares = 1\n");
    repo.commit("spares");
    let home = repo.spot.join("home");
    let said = repo.calve(["add", "x", "--path", "../x"]).env("CALVE_HOME", &home).succeeds().stderr;
    let command = said.split('`').find(|text| text.starts_with("calve spares add --worktree")).expect(&said);
    let line = command.replacen("calve", crate::program::PROGRAM, 1);
    let pasted = Command::new("bash").args(["-c", &line]).env("CALVE_HOME", &home).output().unwrap();
    assert!(pasted.status.success(), "{line}: {pasted:?}");
    let spares = with_environment(calve(["spares", "list", "--json"])).env("CALVE_HOME", &home).succeeds().json();
    assert_eq!(spares["sources"][0]["source"], repo.path.to_str().unwrap());
    with_environment(calve(["spares", "remove"])).arg(&repo.path).env("CALVE_HOME", &home).succeeds();
}

#[test]
fn a_branch_of_several_remotes_is_taken_from_the_preferred_one_or_refused() {
    let (repo, server) = served();
    for remote in ["origin", "upstream"] {
        repo.git(["remote", "add", remote, server.to_str().unwrap()]);
        repo.git(["fetch", "-q", remote]);
    }
    let refused = repo.calve(["add", "release"]).fails(1).says(&[NAME_REMOTE, "`origin/release`, `upstream/release`"]);
    assert!(refused.stdout.is_empty());
    // An agent gets the same message.
    repo.calve(["add", "--for-agent=claude", "release"]).fails(1).says(&[NAME_REMOTE]);
    let made = repo.calve(["add", "upstream/release"]).succeeds();
    let made = made.says(&["on the new branch `release` (from `upstream/release`)"]);
    assert_eq!(git_at(made.stdout.trim_end(), ["rev-parse", "--abbrev-ref", "@{upstream}"]), "upstream/release\n");
    repo.calve(["remove", "-D", "release"]).succeeds();
    repo.git(["config", "checkout.defaultRemote", "upstream"]);
    let path = repo.add(["release"]);
    assert_eq!(git(&path, ["rev-parse", "--abbrev-ref", "@{upstream}"]), "upstream/release\n");
    assert_eq!(git(&path, ["log", "-1", "--format=%s"]), "released\n");
    // With a base it is a new branch, even if remotes have one of that name.
    repo.calve(["remove", "-D", "release"]).succeeds();
    repo.calve(["add", "--base", "main", "release"]).succeeds().says(&["on the new branch `release` (from `main`)"]);
}

#[test]
fn what_reads_like_something_of_elsewhere_is_no_new_branch() {
    let (repo, server) = served();
    repo.calve(["add", "origin/typo"])
        .fails(1)
        .says(&["there is no branch, tag or commit `origin/typo`", FETCH_OR_BASE]);
    repo.git(["remote", "add", "origin", server.to_str().unwrap()]);
    repo.git(["remote", "add", "deep/er", server.to_str().unwrap()]);
    repo.git(["tag", "t1"]);
    let branches = repo.git(["branch", "--list"]);
    for (name, remote) in [("origin/typo", "origin"), ("deep/er/typo", "deep/er"), ("remotes/origin/typo", "origin")] {
        let hint =
            format!("`git fetch {remote} typo` gets it if it is there; `--base HEAD` makes a new branch instead");
        repo.calve(["add", name]).fails(1).says(&[&hint, &format!("there is no branch, tag or commit `{name}`")]);
    }
    let id = "1234567890".repeat(4);
    let ids = [&id, "deadbee1", "123456a", "1A2B3C4"];
    for name in ["refs/heads/typo", "heads/typo", "tags/typo", "refs/x", "FETCH_HEAD", "ORIG_HEAD"].iter().chain(&ids) {
        repo.calve(["add", name]).fails(1).says(&[FETCH_OR_BASE]);
    }
    let blob = repo.git(["rev-parse", "HEAD:run.sh"]);
    repo.git(["tag", "blob", blob.trim()]);
    repo.calve(["add", "blob"]).fails(1).says(&["the tag `blob` names no commit"]).hints();
    assert_eq!(repo.git(["branch", "--list"]), branches);
    // The commands that were named.
    repo.git(["fetch", "-q", "origin"]);
    let release = planned(&repo, "origin/release");
    assert_eq!((&release["branch"], &release["new_branch_from"]), (&"release".into(), &"origin/release".into()));
    let head = repo.git(["rev-parse", "HEAD"]);
    // Words, dates and numbers of tickets.
    for name in ["cafe", "feed", "defaced", "20261129", "1234567", "a1b2c3", "deadbee1x"] {
        assert_eq!(planned(&repo, name)["branch"], name);
    }
    for name in ["tags/t1", "refs/tags/t1", "heads/main", "remotes/origin/main", "origin/HEAD", "HEAD", "@", "main^0"] {
        repo.git(["remote", "set-head", "origin", "main"]);
        let planned = planned(&repo, name);
        assert_eq!((&planned["branch"], &planned["head"]), (&Value::Null, &head.trim().into()), "{name}");
    }
    is_clean(&repo.add(["main^0"]));
    repo.git(["fetch", "-q", "origin", "release"]);
    let path = repo.add(["FETCH_HEAD"]);
    assert_eq!(git(&path, ["log", "-1", "--format=%s"]), "released\n");
    is_clean(&path);
    // From where a new branch begins.
    repo.calve(["add", "-n", "new"]).succeeds().says(&["on the new branch `new` (from `main`)"]);
    let short = &git(&path, ["rev-parse", "HEAD"])[..12];
    let from = format!("on the new branch `new` (from `{short}`)");
    repo.calve(["add", "-n", "new"]).within(&path).succeeds().says(&[&from]);
}

#[test]
fn a_clone_that_follows_one_branch_asks_for_others() {
    let (repo, server) = served();
    let clone = repo.spot.join("clone");
    let url = format!("file://{}", server.display());
    git(&repo.spot, ["clone", "-q", "--single-branch", &url, clone.to_str().unwrap()]);
    let add = |name: &str| with_environment(calve(["worktree", "add", name])).within(&clone);
    let refused = add("release").fails(1);
    let command = "git remote set-branches --add origin release && git fetch origin release";
    refused.says(&["git remote set-branches --add", command, "`origin` has a branch `release`"]);
    let made = add("unheard").succeeds().says(&["on the new branch `unheard` (from `main`) by"]);
    assert_eq!(git_at(made.stdout.trim_end(), ["log", "-1", "--format=%s"]), "one\n");
    let fetch = Command::new("sh").args(["-c", command]).current_dir(&clone).output().unwrap();
    assert!(fetch.status.success(), "{fetch:?}");
    let made = add("release").succeeds().says(&["on the new branch `release` (from `origin/release`)"]);
    assert_eq!(git_at(made.stdout.trim_end(), ["rev-parse", "--abbrev-ref", "@{upstream}"]), "origin/release\n");
    // A branch that was fetched once, and is not followed.
    git(&server, ["branch", "once", "release"]);
    git(&clone, ["fetch", "-q", "origin", "once:refs/remotes/origin/once"]);
    let made = add("once").succeeds().says(&["on the new branch `once` (from `origin/once`)"]);
    assert_eq!(git_at(made.stdout.trim_end(), ["log", "-1", "--format=%s"]), "released\n");
    // A server that is not there, and one that never answers.
    let unasked = |name: &str| {
        let warning = format!("warning: the server of `origin` could not be asked whether it has a branch `{name}`\n");
        add(name).succeeds().says(&[&format!("on the new branch `{name}` (from `main`) by"), &warning]);
    };
    fs_err::rename(&server, repo.spot.join("away")).unwrap();
    let plan = add("offline").arg("-n").succeeds();
    plan.says(&["(from `main`), with files from", "warning: the server of `origin` could not be asked"]);
    unasked("offline");
    git(&clone, ["config", "remote.origin.url", "ssh://nowhere/x"]);
    let number = std::process::id() + 100_000;
    git(&clone, ["config", "core.sshCommand", &format!("sleep {number} && :")]);
    unasked("mute");
    let left = Command::new("pgrep").args(["-fx", &format!("sleep {number}")]).output().unwrap();
    assert!(left.stdout.is_empty(), "{left:?}");
    add("asked").args(["--base", "HEAD"]).succeeds().says(&["on the new branch `asked` (from `HEAD`) by"]);
}

#[test]
fn words_of_git_worktree_and_branches_that_git_has_no_place_for_are_refused() {
    let repo = Repo::anywhere();
    let says = |words: &[&str], way: &str| {
        repo.calve(words).fails(2).says(&[way]);
        assert_eq!(repo.worktrees().len(), 1);
    };
    for option in ["-b", "-B"] {
        says(&["add", option, "new"], "`calve worktree add BRANCH` makes a branch that does not exist");
        says(&["add", "../x", option, "new"], "`calve worktree add BRANCH` makes a branch that does not exist");
    }
    says(&["add", "../x", "main"], "name only the branch: calve worktree add BRANCH, with `--path PATH`");
    says(&["move", "x", "../y"], "`git worktree move` moves a worktree of Calve's too");
    says(&["lock", "x"], "`git worktree lock` and `unlock` work on a worktree of Calve's too");
    says(&["repair"], "`git worktree repair` works on a worktree of Calve's too");
    let other = repo.calve(["add", "--no-such", "x"]).fails(2);
    assert!(!other.stderr.contains("calve worktree add BRANCH"), "{}", other.stderr);
    // A branch that git has no place for.
    repo.git(["branch", "feature-x"]);
    repo.git(["branch", "deep/er/one"]);
    let before = crate::spot::names(&repo.spot);
    for (name, other) in [("feature-x/sub", "feature-x"), ("deep", "deep/er/one"), ("deep/er", "deep/er/one")] {
        for arguments in [&["add", name][..], &["add", "-n", name], &["add", "--base", "HEAD", name]] {
            let told = format!("git can have no branch `{name}` beside `{other}`");
            repo.calve(arguments).fails(1).says(&[&told, "choose another name (`--base` says where it begins)"]);
        }
    }
    assert_eq!(crate::spot::names(&repo.spot), before);
    repo.calve(["add", "feature-xy"]).succeeds();
}

/// Names that mean different things by what else there is, and the references that can give them a meaning.
const NAMES: [&str; 12] = [
    "x",
    "deep/x",
    "origin/x",
    "er/x",
    "deep/er/x",
    "tags/x",
    "heads/x",
    "refs/tags/x",
    "remotes/origin/x",
    "origin",
    "A_HEAD",
    "gone/x",
];
const PLACES: [&str; 5] =
    ["refs/heads/", "refs/tags/", "refs/remotes/origin/", "refs/remotes/deep/er/", "refs/remotes/other/"];

#[test]
fn random_references_mean_to_calve_what_they_mean_to_git() {
    let mut random = SplitMix64::new(0x6e61_6d65);
    let (mut new, mut refused) = (0, 0);
    for round in 0..rounds(20) {
        let repo = Repo::anywhere();
        for remote in ["origin", "deep/er", "mapped"] {
            repo.git(["remote", "add", remote, "/nonexistent"]);
        }
        repo.git(["config", "remote.mapped.fetch", "+refs/heads/*:refs/remotes/other/*"]);
        if random.below(3) == 0 {
            repo.git(["config", "checkout.defaultRemote", *random.pick(&["origin", "deep/er", "mapped"])]);
        }
        for number in 0..random.below(9) {
            let name =
                format!("{}{}", random.pick(&PLACES), random.pick(&["x", "deep/x", "er/x", "tags/x", "origin/x"]));
            let commit = repo.git(["commit-tree", "HEAD^{tree}", "-m", &format!("{number}")]);
            // It cannot be below another one, nor above.
            try_git(&repo.path, ["update-ref", &name, commit.trim()]);
        }
        let scratch = repo.spot.join("scratch");
        repo.git(["worktree", "add", "-q", "--detach", scratch.to_str().unwrap()]);
        for name in NAMES {
            let ran = repo.calve(["add", "-n", "--json", name]).run();
            let shown = format!("round {round}, {name}: {}\n{}", ran.stderr, repo.git(["for-each-ref"]));
            let of = |revision: &str| {
                let found = try_git(&repo.path, ["rev-parse", "-q", "--verify", revision]).stdout;
                String::from_utf8(found).unwrap().trim().to_owned()
            };
            let switched = try_git(&scratch, ["switch", "-q", "--guess", name]).status.success();
            let switched = switched.then(|| git(&scratch, ["rev-parse", "--symbolic-full-name", "HEAD", "HEAD"]));
            let head = git(&scratch, ["rev-parse", "HEAD"]).trim().to_owned();
            git(&scratch, ["switch", "-q", "--detach", "main"]);
            if ran.status.code() != Some(0) {
                refused += 1;
                assert!(switched.is_none() && of(&format!("{name}^{{commit}}")).is_empty(), "{shown}");
                continue;
            }
            let planned = ran.json();
            let branch = planned["branch"].as_str();
            if let Some(switched) = &switched {
                // git has made it, or switched to it.
                assert!(switched.starts_with(&format!("refs/heads/{name}\n")), "{shown}");
                assert_eq!((branch, planned["head"].as_str()), (Some(name), Some(&*head)), "{shown}");
                if planned["new_branch"] == true {
                    repo.git(["branch", "-q", "-D", name]);
                }
                continue;
            }
            let resolved = of(&format!("{name}^{{commit}}"));
            match branch {
                None => assert_eq!(planned["head"], resolved, "{shown}"),
                // A branch of a remote by its name here.
                Some(short) if !resolved.is_empty() => {
                    assert!(
                        name.ends_with(&format!("/{short}")) && of(&format!("refs/tags/{name}")).is_empty(),
                        "{shown}"
                    );
                    let local = of(&format!("refs/heads/{short}"));
                    let expected = if local.is_empty() { of(&format!("refs/remotes/{name}")) } else { local };
                    assert_eq!(planned["head"], expected, "{shown}");
                }
                Some(branch) => {
                    new += 1;
                    assert_eq!((branch, &planned["new_branch"]), (name, &true.into()), "{shown}");
                    assert_eq!(planned["head"], of("HEAD"), "{shown}");
                    assert!(["x", "deep/x", "er/x", "origin", "gone/x"].contains(&name), "{shown}");
                }
            }
        }
    }
    assert!(new > 0 && refused > 0, "{new} new branches, {refused} refused");
}
