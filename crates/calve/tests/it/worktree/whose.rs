//! Whose work a commit is where only logs, marks and FETCH_HEAD tell.

use std::path::{Path, PathBuf};

use calve_testkit::{FileSystem, Tree, Volume, require_root};
use rustix::process::{Pid, Signal, kill_process};

use super::repo::{Repo, git, with_environment, write};
use crate::program::{Reachable, calve};
use crate::spot::{Spot, leftovers};

/// A repository without programs, and the server that it and its requests are on.
pub(super) struct Project {
    pub(super) repo: Repo,
    pub(super) server: PathBuf,
}

impl Project {
    pub(super) fn new() -> Self {
        Self::of(Repo::anywhere())
    }

    fn of(repo: Repo) -> Self {
        let server = repo.spot.join("server");
        git(&repo.spot, ["clone", "-q", "--bare", "proj", "server"]);
        let url = format!("file://{}", server.display());
        repo.git(["remote", "add", "origin", &url]);
        git(&server, ["config", "uploadpack.allowAnySHA1InWant", "true"]);
        git(&server, ["config", "uploadpack.allowFilter", "true"]);
        repo.git(["fetch", "-q", "origin"]);
        Self { repo, server }
    }

    /// Makes a commit on the server on top of another one, and points a reference there to it.
    pub(super) fn commit(&self, base: &str, reference: &str) -> String {
        let tree = format!("{base}^{{tree}}");
        let made = git(&self.server, ["commit-tree", &tree, "-p", base, "-m", reference]);
        git(&self.server, ["update-ref", reference, made.trim()]);
        made.trim().to_owned()
    }

    pub(super) fn request(&self, number: u32) -> String {
        self.commit("main", &format!("refs/pull/{number}/head"))
    }

    pub(super) fn git(&self, line: &str) -> String {
        self.repo.git(line.split(' ')).trim().to_owned()
    }

    /// Another fetch, after which FETCH_HEAD tells nothing of the ones before.
    pub(super) fn fetch_again(&self) {
        self.git("fetch -q origin");
    }

    /// Whether a worktree of it would be untrusted.
    #[track_caller]
    pub(super) fn is_foreign(&self, name: &str) -> bool {
        is_foreign(&self.repo.path, name)
    }

    #[track_caller]
    pub(super) fn is_untrusted(&self, path: &Path) -> bool {
        let listed = self.repo.calve(["list", "--json"]).succeeds().json();
        let mut all = listed["worktrees"].as_array().unwrap().iter();
        all.find(|worktree| worktree["path"] == path.to_str().unwrap()).unwrap()["untrusted"] == true
    }
}

#[track_caller]
pub(super) fn is_foreign(repository: &Path, name: &str) -> bool {
    let plan = ["worktree", "add", "-n", "--json", "--detach", "--path", "../planned", name];
    let from = ["--from", "."];
    let from: &[&str] = if repository.join(".git").exists() { &[] } else { &from[..0] };
    with_environment(calve(plan).args(from)).within(repository).succeeds().json()["untrusted"] == true
}

#[test]
fn trust_is_for_a_commit_and_not_for_what_is_checked_out_later() {
    let switches: [fn(&Project, &Path, &str); 4] = [
        |_, path, other| drop(git(path, ["checkout", "-q", "--detach", other])),
        |_, path, other| drop(git(path, ["reset", "-q", "--hard", other])),
        |_, path, other| drop(git(path, ["switch", "-q", "-c", "innocent", other])),
        |_, path, _| drop(git(path, ["pull", "-q", "--no-rebase", "--no-edit", "origin", "pull/9/head"])),
    ];
    for (at, switch) in switches.iter().enumerate() {
        let project = Project::new();
        let (trusted, other) = (project.request(7), project.request(9));
        let path = if at % 2 == 0 {
            project.repo.add(["--trust", "pr/7"])
        } else {
            let path = project.repo.add(["pr/7"]);
            calve(["hook", "approve", "--trust"]).within(&path).succeeds();
            path
        };
        assert!(!project.is_untrusted(&path) && !project.is_foreign(&trusted), "{at}");
        // One's own commits on top, and merges of the project's, are no less trusted.
        project.commit("main", "refs/heads/main");
        project.fetch_again();
        git(&path, ["commit", "-q", "--allow-empty", "-m", "mine"]);
        git(&path, ["merge", "-q", "--no-edit", "origin/main"]);
        git(&path, ["commit", "-q", "--amend", "-m", "mine, too"]);
        assert!(!project.is_untrusted(&path), "{at}");
        git(&path, ["fetch", "-q", "origin", "pull/9/head"]);
        switch(&project, &path, &other);
        git(&path, ["update-ref", "refs/pull/9/head", &other]);
        assert!(project.is_untrusted(&path), "{at}");
        assert!(project.is_foreign(&other) && !project.is_foreign(&trusted), "{at}");
        // Back at the trusted commit, it may still have files of the other one.
        git(&path, ["checkout", "-q", "--detach", &trusted]);
        git(&path, ["update-ref", "-d", "refs/pull/9/head"]);
        project.fetch_again();
        git(&path, ["fetch", "-q", "origin"]);
        assert!(project.is_untrusted(&path) && project.is_foreign(&other), "{at}: the mark names what it is about");
        calve(["hook", "approve", "--trust"]).within(&path).succeeds();
        assert!(!project.is_untrusted(&path), "{at}");
    }
}

#[test]
fn a_request_that_was_fetched_into_an_ordinary_name_is_known() {
    let fetches: [(&[&str], &str); 9] = [
        (&["origin", "pull/5/head:refs/remotes/origin/x"], "origin/x"),
        (&["origin", "main", "pull/5/head:remotes/origin/x"], "origin/x"),
        (&["--depth=1", "origin", "+refs/pull/*:refs/remotes/origin/q*"], "origin/q5/head"),
        (&["--refmap=+refs/pull/*/head:refs/remotes/origin/q*", "origin", "refs/pull/5/head"], "origin/q5"),
        (&["origin", "pull/5/head:x", "main:y"], "x"),
        (&["origin", "pull/5/head:refs/heads/a/b"], "a/b"),
        (&["origin", "+pull/5/head:mine"], "mine"),
        (&["origin", "+refs/pull/5/head:refs/remotes/origin/main"], "origin/main"),
        (&["origin", "ID:x"], "x"),
    ];
    for (words, name) in fetches {
        let project = Project::new();
        let request = project.request(5);
        project.git("branch mine main");
        project
            .repo
            .git(["fetch", "-q"].into_iter().chain(words.iter().copied()).map(|word| word.replace("ID", &request)));
        fs_err::remove_file(project.repo.join(".git/FETCH_HEAD")).unwrap();
        assert!(project.is_foreign(name) && project.is_foreign(&request), "{words:?}");
        assert!(!project.is_foreign("main") && !project.is_foreign("main~0"), "{words:?}");
        if name == "origin/main" {
            project.fetch_again();
            assert!(project.is_foreign(&request) && !project.is_foreign("origin/main"), "{words:?}: theirs for good");
        }
    }
    // By settings of one command, of which nothing is written down but what it did.
    let project = Project::new();
    let request = project.request(5);
    project.git("-c remote.origin.fetch=+refs/pull/*/head:refs/remotes/origin/q* fetch -q");
    project.fetch_again();
    assert!(project.is_foreign("origin/q5") && project.is_foreign(&request));
}

#[test]
fn bare_repositories_and_mirrors_know_requests() {
    let project = Project::new();
    let (request, feature) = (project.request(5), project.commit("main", "refs/heads/feature"));
    git(&project.server, ["update-ref", "refs/pull/6/head", &feature]);
    let spot = &project.repo.spot;
    let url = format!("file://{}", project.server.display());
    for (kind, fetch) in
        [("--bare", "pull/5/head:x"), ("--mirror", "pull/5/head:x"), ("--bare", "+pull/5/head:refs/heads/y")]
    {
        let bare = spot.join("bare.git");
        git(spot, ["clone", "-q", kind, &url, "bare.git"]);
        git(&bare, ["fetch", "-q", "origin", fetch]);
        let branch = fetch.rsplit([':', '/']).next().unwrap();
        let from = spot.join("of-bare");
        git(&bare, ["worktree", "add", "-q", "--detach", "../of-bare", "main"]);
        assert!(is_foreign(&from, branch) && is_foreign(&from, &request), "{kind}");
        assert!(!is_foreign(&from, "feature") && !is_foreign(&from, &feature) && !is_foreign(&from, "main"), "{kind}");
        if kind == "--mirror" {
            git(&bare, ["fetch", "-q", "--prune", "origin"]);
            assert!(is_foreign(&from, &request) && !is_foreign(&from, &feature), "{kind}");
        }
        // From a worktree, git writes logs.
        git(&from, ["fetch", "-q", "origin", "pull/5/head:logged"]);
        git(&from, ["fetch", "-q", "origin", "main"]);
        assert!(is_foreign(&from, "logged"), "{kind}");
        fs_err::remove_dir_all(&bare).unwrap();
        fs_err::remove_dir_all(&from).unwrap();
    }
}

#[test]
fn a_request_in_another_form_is_a_request_until_it_is_taken_over() {
    let project = Project::new();
    project.request(5);
    project.commit("refs/pull/5/head", "refs/pull/5/head");
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    project.commit("main", "refs/heads/main");
    project.fetch_again();
    let amend = |words: &str| project.git(&format!("commit -q --amend --allow-empty {words}"));
    // Without the branch, whose name would tell.
    project.git("checkout -q --detach refs/pull/5/head");
    amend("-m amended");
    amend("-m again");
    let amended = project.git("rev-parse HEAD");
    project.git("switch -q -c rebased refs/pull/5/head");
    project.git("rebase -q origin/main");
    let rebased = project.git("rev-parse HEAD");
    project.git("switch -q -c on-top refs/pull/5/head");
    project.git("commit -q --allow-empty -m mine");
    amend("-m mine,amended");
    let on_top = project.git("rev-parse HEAD");
    project.git("switch -q main");
    for commit in [&amended, &rebased, &on_top] {
        assert!(project.is_foreign(commit), "{commit}");
    }
    // The log of the branch tells of the one change, and that of HEAD of the other.
    project.git("checkout -q --detach rebased");
    amend("-m rebased,amended");
    let both = project.git("rev-parse HEAD");
    project.git("switch -q main");
    assert!(project.is_foreign(&both));
    // Taking over is what `cherry-pick` is for.
    project.git("switch -q -c picked");
    project.git("cherry-pick --allow-empty refs/pull/5/head");
    amend("-m picked");
    let picked = project.git("rev-parse HEAD");
    // One's own work that began on top of a request leaves it.
    project.git("rebase -q --onto main on-top~1 on-top");
    let moved = project.git("rev-parse HEAD");
    project.git("switch -q main");
    assert!(!project.is_foreign(&picked) && !project.is_foreign(&moved));
    // And merging it into the main worktree's branch, however far that is.
    project.git("pull -q --ff-only origin pull/5/head");
    assert!(!project.is_foreign("main") && !project.is_foreign("refs/pull/5/head"));
}

#[test]
fn a_rebased_request_is_a_request() {
    // With or without a branch whose name or log tells, and by any way to rebase.
    for (begin, rebase) in [
        ("fetch -q origin pull/5/head:x", "rebase -q origin/main"),
        ("fetch -q origin pull/5/head:x", "pull -q --rebase origin main"),
        ("branch x refs/pull/5/head", "rebase -q origin/main"),
        ("branch x refs/pull/5/head", "pull -q --rebase origin main"),
        ("branch x refs/pull/5/head", "-c pull.rebase=true pull -q origin main"),
    ] {
        let project = Project::new();
        project.request(5);
        project.commit("refs/pull/5/head", "refs/pull/5/head");
        project.git("fetch -q origin pull/5/head:refs/pull/5/head");
        project.commit("main", "refs/heads/main");
        project.fetch_again();
        project.git(begin);
        project.git("switch -q x");
        project.git(rebase);
        let [tip, below] = ["HEAD", "HEAD~1"].map(|name| project.git(&format!("rev-parse {name}")));
        project.git("switch -q main");
        project.fetch_again();
        assert_ne!(below, project.git("rev-parse origin/main"), "{begin}, {rebase}");
        for commit in ["x", &tip, "x~1", &below] {
            assert!(project.is_foreign(commit), "{begin}, {rebase}: {commit}");
        }
        assert!(!project.is_foreign("main") && !project.is_foreign("origin/main"), "{begin}, {rebase}");
    }
}

#[test]
fn ones_own_request_stays_ones_own() {
    for squashes in [false, true] {
        let project = Project::new();
        let path = project.repo.add(["own"]);
        write(&path.join("new"), "1\n");
        git(&path, ["add", "-A"]);
        git(&path, ["commit", "-q", "-m", "mine"]);
        git(&path, ["commit", "-q", "--allow-empty", "-m", "mine, too"]);
        git(&path, ["push", "-q", "-u", "origin", "own", "own:refs/pull/8/head"]);
        let first = git(&path, ["rev-parse", "HEAD"]);
        project.commit("main", "refs/heads/main");
        git(&path, ["fetch", "-q", "origin", "+refs/pull/*/head:refs/pull/*/head"]);
        assert!(!project.is_untrusted(&path));
        git(&path, ["fetch", "-q", "origin"]);
        if squashes {
            let tree = git(&project.server, ["rev-parse", "own^{tree}"]);
            let squashed = git(&project.server, ["commit-tree", tree.trim(), "-p", "main", "-m", "squashed (#8)"]);
            git(&project.server, ["update-ref", "refs/heads/main", squashed.trim()]);
        } else {
            git(&path, ["rebase", "-q", "origin/main"]);
            git(&path, ["push", "-q", "--force", "origin", "own", "own:refs/pull/8/head"]);
        }
        let last = git(&path, ["rev-parse", "HEAD"]);
        git(&project.server, ["update-ref", "-d", "refs/heads/own"]);
        git(
            &path,
            [
                "fetch",
                "-q",
                "--prune",
                "origin",
                "+refs/heads/*:refs/remotes/origin/*",
                "+refs/pull/*/head:refs/pull/*/head",
            ],
        );
        fs_err::remove_file(project.repo.join(".git/worktrees/proj.own/FETCH_HEAD")).unwrap();
        assert!(!project.is_untrusted(&path), "squashed: {squashes}");
        // The log of its HEAD goes with the worktree, that of the branch stays.
        project.repo.calve(["remove", "-f", "own"]).succeeds();
        for commit in [first.trim(), last.trim(), "own"] {
            assert!(!project.is_foreign(commit), "squashed: {squashes}, {commit}");
        }
        assert!(!project.is_untrusted(&project.repo.add(["own"])), "squashed: {squashes}");
    }
}

#[test]
fn a_list_needs_no_mark_where_none_can_be_written() {
    if !require_root("a read-only file system, and another user") {
        return;
    }
    let Some(volume) = Volume::new(FileSystem::Ext4) else { return };
    let repo = Repo { spot: Spot::anywhere(), path: volume.path().join("proj") };
    fs_err::create_dir(&repo.path).unwrap();
    repo.start();
    let server = repo.spot.join("server");
    git(&repo.spot, ["clone", "-q", "--bare", repo.path.to_str().unwrap(), "server"]);
    repo.git(["remote", "add", "origin", server.to_str().unwrap()]);
    let project = Project { repo, server };
    project.request(5);
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    let (trusted, theirs) = (volume.path().join("trusted"), volume.path().join("theirs"));
    project.git(&format!("worktree add -q --detach {} main", trusted.display()));
    project.git(&format!("worktree add -q --detach {} refs/pull/5/head", theirs.display()));
    let said = tempfile::tempdir().unwrap();
    rustix::fs::chmod(said.path(), 0o777.into()).unwrap();
    let monitor = format!("pwd >>'{}/ran'; false", said.path().display());
    project.repo.git(["config", "core.fsmonitor", &monitor]);
    let reachable = Reachable::new();
    let list = || {
        let settings = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")];
        settings.iter().fold(project.repo.calve(["list", "--json"]), |calve, (name, value)| calve.env(name, value))
    };
    for is_read_only in [false, true] {
        let list = if is_read_only {
            volume.remount_read_only();
            list()
        } else {
            list().by_somebody_else(&reachable)
        };
        let listed = list.succeeds().json();
        let mut all = listed["worktrees"].as_array().unwrap().iter();
        assert!(all.any(|one| one["path"] == theirs.to_str().unwrap() && one["untrusted"] == true), "{listed}");
        assert!(!project.repo.join(".git/worktrees/theirs/calve-untrusted").exists());
        let ran = fs_err::read_to_string(said.path().join("ran")).unwrap();
        assert!(ran.contains(trusted.to_str().unwrap()) && !ran.contains(theirs.to_str().unwrap()), "{ran}");
        fs_err::remove_file(said.path().join("ran")).unwrap();
    }
    volume.remount_writable();
}

#[test]
fn a_partial_clone_is_not_asked_for_what_logs_name() {
    let project = Project::new();
    let spot = &project.repo.spot;
    let url = format!("file://{}", project.server.display());
    git(spot, ["clone", "-q", "--filter=blob:none", &url, "part"]);
    let part = spot.join("part");
    let request = project.request(5);
    git(&part, ["fetch", "-q", "origin", "pull/5/head:refs/pull/5/head"]);
    git(&part, ["worktree", "add", "-q", "-b", "own", "../own", "main"]);
    let own = spot.join("own");
    for message in ["once", "twice"] {
        git(&own, ["commit", "-q", "--allow-empty", "--amend", "-m", message]);
    }
    // The replaced commit is gone, and so is the log's entry of the request.
    let gone = "12".repeat(20);
    let amended = git(&own, ["rev-parse", "HEAD"]);
    let logged = |file: &str, before: &str, after: &str| {
        let log = part.join(file);
        let text = fs_err::read_to_string(&log).unwrap();
        fs_err::write(&log, [before, &text, after].concat()).unwrap();
    };
    let amends = format!("{gone} {} A <a@example.org> 1 +0000\tcommit (amend): x\n", amended.trim());
    logged(".git/worktrees/own/logs/HEAD", "", &amends);
    let fetches = format!("{gone} {gone} A <a@example.org> 1 +0000\tfetch origin +pull/6/head:main: forced-update\n");
    logged(".git/logs/refs/heads/main", "", &fetches);
    let trace = spot.join("trace");
    let listed = with_environment(calve(["worktree", "list", "--json"])).within(&part).env("GIT_TRACE2", &trace);
    let listed = listed.succeeds().json();
    let trace = fs_err::read_to_string(&trace).unwrap();
    assert!(trace.contains("rev-list") && !trace.contains("cmd_name fetch "), "{trace}");
    assert_eq!(listed["worktrees"].as_array().unwrap().len(), 2);
    assert!(is_foreign(&part, &request));
}

/// Leaves in a directory what a killed run leaves.
fn leave_staged_tree(spot: &Path, place: &Path) -> PathBuf {
    let source = Tree::new(spot.join("many"));
    let source = (0..3000).fold(source, |tree, number| tree.file(format!("d{}/{number}", number % 50), b"1"));
    loop {
        let mut running = calve(["cp"]).args([source.path(), &place.join("copy")]).start();
        while leftovers(place).is_empty() && !running.has_ended() {}
        let _ = kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::KILL);
        running.wait();
        let left = leftovers(place).into_iter().find(|name| !name.ends_with(".lock"));
        if let Some(name) = left {
            return place.join(name);
        }
        let _ = fs_err::remove_dir_all(place.join("copy"));
    }
}

#[test]
fn prune_does_not_look_where_a_request_says() {
    let project = Project::new();
    let place = project.repo.spot.join("elsewhere");
    fs_err::create_dir(&place).unwrap();
    let configuration = "[worktree]\npath = '../elsewhere/{branch}'\n";
    project.git("switch -q -c theirs");
    project.repo.write(".calve.toml", configuration);
    project.repo.commit("theirs");
    project.git("push -q origin theirs:refs/pull/7/head");
    project.git("switch -q main");
    project.git("branch -q -D theirs");
    fs_err::remove_file(project.repo.join(".git/logs/HEAD")).unwrap();
    project.git("fetch -q origin pull/7/head:refs/pull/7/head");
    let left = leave_staged_tree(&project.repo.spot, &place);
    project.git("worktree add -q --detach ../by-git refs/pull/7/head");
    let by_calve = project.repo.add(["--detach", "refs/pull/7/head", "--path", "../by-calve"]);
    for within in [project.repo.spot.join("by-git"), by_calve] {
        assert!(project.is_untrusted(&within) && within.join(".calve.toml").exists());
        project.repo.calve(["prune"]).within(&within).succeeds();
        assert!(left.exists(), "{}", within.display());
    }
    // The user may say so.
    project.repo.write(".calve.toml", configuration);
    project.repo.calve(["prune"]).succeeds();
    assert!(!left.exists());
}
