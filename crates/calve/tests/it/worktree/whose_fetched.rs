//! Tests whose work a fetched commit is, when only a log, a name or the server's address shows the fetch.

use std::path::{Path, PathBuf};

use calve_testkit::matrix;

use super::repo::{git, try_git, write};
use super::whose::Project;
use crate::program::calve;

/// A project with a request of two commits, and a branch of the project that has gone on since.
pub(super) fn with_request() -> (Project, [String; 2]) {
    let project = Project::new();
    let (fork, second) = fork_of(&project);
    let first = git(&fork, ["rev-parse", "HEAD~1"]);
    git(&fork, ["push", "-q", "origin", "patch:refs/pull/5/head"]);
    fs_err::remove_dir_all(fork).unwrap();
    project.commit("main", "refs/heads/main");
    project.fetch_again();
    (project, [first.trim().to_owned(), second])
}

/// A fork beside the project, with a branch of two commits.
pub(super) fn fork_of(project: &Project) -> (PathBuf, String) {
    let spot = &project.repo.spot;
    git(spot, ["clone", "-q", "server", "fork"]);
    let fork = spot.join("fork");
    git(&fork, ["switch", "-q", "-c", "patch"]);
    for message in ["theirs", "theirs, too"] {
        write(&fork.join(message), message);
        git(&fork, ["add", "-A"]);
        git(&fork, ["commit", "-q", "-m", message]);
    }
    let tip = git(&fork, ["rev-parse", "HEAD"]);
    (fork, tip.trim().to_owned())
}

/// Commits a new file on HEAD.
pub(super) fn commit(project: &Project, name: &str, extra: &[&str]) {
    project.repo.write(name, name);
    project.git("add -A");
    project.repo.git(["commit", "-q", "-m", name].iter().chain(extra));
}

pub(super) fn rev(project: &Project, name: &str) -> String {
    project.git(&format!("rev-parse {name}"))
}

/// Runs git with a sequence editor that runs `sed` on a rebase's steps.
pub(super) fn edited(at: &Path, sed: &str, line: &str) {
    let editor = format!("sequence.editor=sed -i '{sed}'");
    git(at, ["-c", &editor].into_iter().chain(line.split(' ')));
}

#[test]
fn a_rebase_without_a_branch_of_its_own_keeps_whose_the_commits_are() {
    let rebases: [&[&str]; 6] = [
        &["checkout -q --detach FETCH_HEAD", "rebase -q origin/main"],
        &["checkout -q --detach FETCH_HEAD", "rebase -q --apply origin/main"],
        &["checkout -q FETCH_HEAD~0", "rebase -q --force-rebase --onto origin/main main"],
        &["rebase -q origin/main FETCH_HEAD"],
        &["switch -q -c mine", "commit -q --allow-empty -m mine", "rebase -q origin/main FETCH_HEAD"],
        &[
            "checkout -q FETCH_HEAD",
            "switch -q -c x",
            "rebase -q origin/main",
            "checkout -q --detach",
            "branch -q -D x",
        ],
    ];
    for (at, steps) in rebases.iter().enumerate() {
        let (project, [first, second]) = with_request();
        project.git("fetch -q origin pull/5/head");
        steps.iter().for_each(|step| drop(project.git(step)));
        let (tip, below) = (rev(&project, "HEAD"), rev(&project, "HEAD~1"));
        project.git("checkout -q main");
        project.fetch_again();
        assert!(![&first, &second].contains(&&tip) && below != rev(&project, "origin/main"), "{steps:?}");
        assert!(project.is_foreign(&tip) && project.is_foreign(&below), "{steps:?}");
        assert!(!project.is_foreign("main") && !project.is_foreign("origin/main"), "{steps:?}");
        if at == 4 {
            assert!(!project.is_foreign("mine"));
        }
    }
}

#[test]
fn ones_own_work_stays_so_when_it_is_rebased_in_any_way() {
    for steps in [
        &["checkout -q --detach own", "rebase -q origin/main"][..],
        &["checkout -q --detach own", "rebase -q --apply origin/main"],
        &["rebase -q origin/main own", "checkout -q --detach"],
        &["switch -q own", "rebase -q origin/main", "checkout -q --detach", "branch -q -D own"],
    ] {
        let (project, [_, second]) = with_request();
        project.git("switch -q -c own main");
        commit(&project, "one", &[]);
        commit(&project, "two", &[]);
        project.git("switch -q main");
        project.git("fetch -q origin pull/5/head:refs/pull/5/head");
        steps.iter().for_each(|step| drop(project.git(step)));
        // Others have it, too.
        project.git("push -q --force origin HEAD:refs/pull/6/head");
        project.git("fetch -q origin +refs/pull/*/head:refs/pull/*/head");
        let tip = rev(&project, "HEAD");
        project.git("switch -q main");
        assert!(!project.is_foreign(&tip) && !project.is_foreign(&format!("{tip}~1")), "{steps:?}");
        assert!(project.is_foreign(&second), "{steps:?}");
    }
}

#[test]
fn of_a_rebase_of_both_each_commit_stays_whose_it_was() {
    for detaches in [false, true] {
        let (project, _) = with_request();
        project.git("fetch -q origin pull/5/head:refs/pull/5/head");
        project.git("switch -q -c both refs/pull/5/head");
        for message in ["mine", "mine, too"] {
            commit(&project, message, &[&format!("--author={message} <me@example.org>")]);
        }
        if detaches {
            project.git("checkout -q --detach");
        }
        let whole = rev(&project, "HEAD");
        // Only one's own, the last of them; without a request's last, which one's own follow; and the other way round.
        for (sed, is_theirs) in [("/mine/!d", false), ("2d", true), ("1,2{H;d};4G", true)] {
            edited(&project.repo.path, sed, "rebase -q -i --onto origin/main main");
            let (tip, below) = (rev(&project, "HEAD"), rev(&project, "HEAD~1"));
            project.git(&format!("reset -q --hard {whole}"));
            assert_eq!(project.is_foreign(&tip), is_theirs, "{detaches}, {sed}");
            assert_eq!(project.is_foreign(&below), is_theirs, "{detaches}, {sed}");
        }
    }
}

#[test]
fn a_fork_that_is_no_remote_is_somebody_elses() {
    let uses: [(&[&str], &str); 12] = [
        (&["fetch -q URL patch", "checkout -q FETCH_HEAD", "switch -q main"], "ID"),
        (&["fetch -q URL patch", "branch x FETCH_HEAD"], "x"),
        (&["fetch -q URL patch", "switch -q -c x FETCH_HEAD~0", "switch -q main"], "x~1"),
        (&["fetch -q URL patch", "branch x main", "switch -q x", "reset -q --hard FETCH_HEAD", "switch -q main"], "x"),
        (&["fetch -q URL patch", "switch -q -c x", "merge -q FETCH_HEAD", "switch -q main"], "x"),
        (&["fetch -q URL patch:x"], "x"),
        (&["fetch -q URL patch:remotes/origin/x"], "origin/x"),
        (&["fetch -q URL +patch:refs/heads/mine"], "mine"),
        (&["fetch -q --depth 1 URL patch:x"], "x"),
        (&["fetch -q URL patch:refs/review/x"], "refs/review/x"),
        (&["switch -q -c x", "pull -q --no-rebase URL patch", "switch -q main"], "x"),
        (&["switch -q -c x", "commit -q --allow-empty -m x", "pull -q --rebase URL patch", "switch -q main"], "x"),
    ];
    for spelling in matrix(["PATH", "../fork", "file://PATH/"]) {
        for (steps, name) in &uses[..if spelling == "PATH" { uses.len() } else { 3 }] {
            let project = Project::new();
            project.git("branch mine main");
            let (fork, tip) = fork_of(&project);
            let url = spelling.replace("PATH", fork.to_str().unwrap());
            steps.iter().for_each(|step| drop(project.git(&step.replace("URL", &url))));
            project.fetch_again();
            let name = name.replace("ID", &tip);
            assert!(project.is_foreign(&name) && project.is_foreign(&tip), "{spelling}: {steps:?}");
            assert!(!project.is_foreign("main") && !project.is_foreign("origin/main"), "{spelling}: {steps:?}");
        }
    }
    // At once, while nothing but FETCH_HEAD tells; of its default branch and its tags, too.
    let project = Project::new();
    let (fork, tip) = fork_of(&project);
    git(&fork, ["tag", "-a", "-m", "theirs", "v1"]);
    for words in ["patch", "", "--tags"] {
        project.git(format!("fetch -q {} {words}", fork.display()).trim_end());
        assert!(project.is_foreign("FETCH_HEAD") && project.is_foreign(&tip), "{words}");
    }
}

#[test]
fn what_a_configured_remote_has_is_the_projects_by_whatever_address() {
    let project = Project::new();
    let (fork, tip) = fork_of(&project);
    let server = project.server.display().to_string();
    for url in
        [server.clone(), format!("{server}/"), format!("file://{server}"), "../server".to_owned(), "s:".to_owned()]
    {
        let feature = project.commit("main", "refs/heads/feature");
        git(&project.server, ["update-ref", "refs/heads/main", "main"]);
        if url.starts_with("..") {
            project.git("remote add near ../server");
        }
        project.repo.git(["config", &format!("url.{server}.insteadOf"), "s:"]);
        project.git(&format!("fetch -q {url} feature:y"));
        assert!(!project.is_foreign("y") && !project.is_foreign("FETCH_HEAD"), "{url}");
        project.git("branch -f x FETCH_HEAD");
        project.fetch_again();
        assert!(!project.is_foreign("x") && !project.is_foreign(&feature), "{url}: a branch of the project has it");
        project.git("branch -q -D y");
    }
    // A remote of the user's own making counts; not one that a program has made of a pull request's fork.
    for (name, marked) in [("them", false), ("github-desktop-them", false), ("made", true)] {
        project.git(&format!("remote add {name} {}", fork.display()));
        if marked {
            project.git(&format!("config remote.{name}.github-pr-remote true"));
        }
        project.git(&format!("fetch -q {name}"));
        project.git(&format!("branch -f x {name}/patch"));
        project.fetch_again();
        assert_eq!(project.is_foreign(&format!("{name}/patch")), name != "them", "{name}");
        assert_eq!(project.is_foreign(&tip), name != "them", "{name}");
        project.git(&format!("remote remove {name}"));
        let _ = try_git(&project.repo.path, ["branch", "-q", "-D", "x"]);
    }
}

#[test]
fn to_look_at_a_request_in_the_main_worktree_does_not_make_it_ones_own() {
    for steps in [
        &["checkout -q --detach refs/pull/5/head"][..],
        &["checkout -q ID"],
        &["switch -q -c x FETCH_HEAD"],
        &["checkout -q -b x refs/pull/5/head", "commit -q --allow-empty -m mine"],
        &["switch -q -c x", "reset -q --hard FETCH_HEAD"],
        &["checkout -q --detach main", "rebase -q origin/main FETCH_HEAD"],
    ] {
        let (project, [first, second]) = with_request();
        project.git("fetch -q origin pull/5/head:refs/pull/5/head");
        steps.iter().for_each(|step| drop(project.git(&step.replace("ID", &second))));
        for name in ["HEAD", &second, &first] {
            assert!(project.is_foreign(name), "{steps:?}: {name}");
        }
        let listed = project.repo.calve(["list", "--json"]).succeeds().json();
        assert_eq!(
            listed["worktrees"][0]["untrusted"], false,
            "{steps:?}: the main worktree is the user's all the same"
        );
        let path = project.repo.spot.join("by-git");
        project.git(&format!("worktree add -q --detach {} HEAD", path.display()));
        assert!(project.is_untrusted(&path), "{steps:?}");
        // To merge it into a branch of one's own does.
        project.git("switch -q main");
        project.git("merge -q refs/pull/5/head");
        assert!(!project.is_foreign(&second), "{steps:?}");
    }
}

#[test]
fn a_mark_for_files_hides_no_commit_that_comes_later() {
    let (project, [_, second]) = with_request();
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    let theirs = project.repo.add(["--detach", "refs/pull/5/head"]);
    let files = project.repo.add(["--from", theirs.to_str().unwrap(), "own"]);
    assert!(project.is_untrusted(&files) && !project.is_foreign("own"));
    project.repo.calve(["remove", "-f"]).args([&theirs]).succeeds();
    git(&files, ["checkout", "-q", "--detach", &second]);
    assert!(project.is_untrusted(&files));
    // Now nothing but the mark tells of the commit.
    git(&files, ["switch", "-q", "own"]);
    project.git("update-ref -d refs/pull/5/head");
    fs_err::remove_file(files.join(".git")).unwrap();
    let entry = project.repo.join(".git/worktrees").join(files.file_name().unwrap());
    fs_err::write(files.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
    fs_err::remove_file(entry.join("logs/HEAD")).unwrap();
    project.fetch_again();
    let _ = fs_err::remove_file(entry.join("FETCH_HEAD"));
    assert!(project.is_foreign(&second));
    // Trust is for the present commit.
    calve(["hook", "approve", "--trust"]).within(&files).succeeds();
    assert!(!project.is_untrusted(&files));
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    git(&files, ["checkout", "-q", "--detach", &second]);
    assert!(project.is_untrusted(&files));
    git(&files, ["switch", "-q", "own"]);
    assert!(project.is_untrusted(&files), "it may still have files of it");
}

#[test]
fn names_that_no_rule_gives_to_the_project_are_anybodys() {
    for name in
        ["refs/review/5", "refs/x", "refs/changes/05/5/1", "refs/for/main", "refs/tags/pr/5", "refs/tags/a/pull/5/head"]
    {
        let (project, [first, second]) = with_request();
        project.git(&format!("fetch -q --no-tags origin pull/5/head:{name}"));
        project.fetch_again();
        assert!(project.is_foreign(name) && project.is_foreign(&second) && project.is_foreign(&first), "{name}");
        git(&project.server, ["update-ref", "refs/heads/merged", &first]);
        project.fetch_again();
        assert!(!project.is_foreign(&first) && project.is_foreign(&second), "{name}");
        // A tag that is made of it here tells nothing new; one that is fetched from the project does.
        project.git(&format!("tag v1 {second}"));
        assert!(project.is_foreign("refs/tags/v1"), "{name}");
        project.git("tag -d v1");
        git(&project.server, ["tag", "v1", &second]);
        project.git("fetch -q --tags origin");
        assert!(!project.is_foreign("refs/tags/v1"), "{name}");
    }
    let (project, [_, second]) = with_request();
    project.git("switch -q -c own");
    project.git("commit -q --allow-empty -m mine");
    let own = rev(&project, "HEAD");
    fs_err::remove_dir_all(project.repo.join(".git/logs")).unwrap();
    project.git("switch -q main");
    for name in
        ["refs/stash", "refs/original/refs/heads/own", "refs/jj/keep/own", "refs/worktree/own", "refs/bisect/bad"]
    {
        project.git(&format!("update-ref {name} {own}"));
    }
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    assert!(!project.is_foreign(&own) && project.is_foreign(&second));
}

#[test]
fn a_commit_of_the_project_that_is_fetched_by_its_id_stays_the_projects() {
    for bare in [false, true] {
        let (project, [_, second]) = with_request();
        let main = git(&project.server, ["rev-parse", "main"]).trim().to_owned();
        let below = git(&project.server, ["rev-parse", "main~1"]).trim().to_owned();
        let spot = &project.repo.spot;
        let at = match bare {
            false => project.repo.path.clone(),
            true => {
                let url = format!("file://{}", project.server.display());
                git(spot, ["clone", "-q", "--bare", &url, "bare.git"]);
                git(&spot.join("bare.git"), ["worktree", "add", "-q", "--detach", "../of-bare", "main"]);
                spot.join("bare.git")
            }
        };
        let from = if bare { spot.join("of-bare") } else { at.clone() };
        let is_foreign = |name: &str| super::whose::is_foreign(&from, name);
        for id in [&main, &below] {
            git(&at, ["fetch", "-q", "origin", id]);
            assert!(!is_foreign(id) && !is_foreign("main"), "{bare}: {id}");
        }
        git(&at, ["fetch", "-q", "origin", &format!("{main}:x"), &format!("{below}:refs/heads/a/y")]);
        git(&at, ["fetch", "-q", "origin", &format!("{main}:refs/review/x")]);
        for name in ["x", "a/y", "refs/review/x", &main] {
            assert!(!is_foreign(name), "{bare}: {name}");
        }
        // With the fork's branch of that name at the same commit.
        git(&at, ["fetch", "-q", &format!("file://{}/", spot.join("proj").display()), "main"]);
        assert!(!is_foreign("main") && !is_foreign(&below), "{bare}");
        git(&at, ["fetch", "-q", "origin", &format!("{second}:theirs")]);
        assert!(is_foreign("theirs") && is_foreign(&second), "{bare}");
        if !bare {
            let path = project.repo.add(["x"]);
            assert!(!project.is_untrusted(&path));
        }
    }
}
