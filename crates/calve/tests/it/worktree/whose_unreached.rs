//! Whose work a commit is to which no branch leads: tags, detached worktrees and unfinished rebases.

use std::path::{Path, PathBuf};

use super::repo::{git, with_environment, write};
use super::whose::{Project, is_foreign};
use super::whose_fetched::{commit, edited, fork_of, rev, with_request};
use crate::program::calve;

/// Makes a worktree as git does.
fn added(project: &Project, line: &str) -> PathBuf {
    let path = project.repo.spot.join("by-git");
    let words = line.replace("PATH", path.to_str().unwrap());
    project.git(&format!("worktree add -q {words}"));
    path
}

#[test]
fn a_tag_that_a_request_or_a_fork_may_have_brought_is_no_evidence() {
    for (fetch, tag) in [
        ("origin pull/5/head:refs/tags/x", "x"),
        ("origin refs/pull/5/head:tags/a/y", "a/y"),
        // Its annotated tag comes with its branch, by itself, or with all tags.
        ("../fork patch:z", "theirs"),
        ("../fork refs/tags/theirs:refs/tags/theirs", "theirs"),
        ("../fork --tags", "theirs"),
    ] {
        let (project, [first, second]) = with_request();
        let (fork, of_fork) = fork_of(&project);
        git(&fork, ["tag", "-a", "-m", "theirs", "theirs"]);
        let commit = if tag == "theirs" { of_fork } else { second };
        project.git(&format!("fetch -q {fetch}"));
        assert!(project.is_foreign(tag) && project.is_foreign(&commit), "{fetch}: at once");
        project.fetch_again();
        assert!(project.is_foreign(tag) && project.is_foreign(&commit), "{fetch}: later");
        if tag != "theirs" {
            assert!(project.is_foreign(&first), "{fetch}");
        }
        assert!(!project.is_foreign("main") && !project.is_foreign("origin/main"), "{fetch}");
        // A tag that is made of it here says nothing more, nor does a branch.
        project.git(&format!("tag -a -m released v1 {commit}"));
        assert!(project.is_foreign("v1"), "{fetch}");
        for words in [format!("-b r PATH {tag}"), format!("--detach PATH {tag}")] {
            let path = added(&project, &words);
            assert!(project.is_untrusted(&path), "{fetch}: {words}");
            project.git("worktree remove --force ../by-git");
        }
    }
}

#[test]
fn a_release_of_the_project_is_the_projects() {
    let project = Project::new();
    let server = &project.server;
    let off = project.commit("main", "refs/heads/off");
    git(server, ["tag", "-a", "-m", "on a branch", "v1", "main"]);
    git(server, ["tag", "-a", "-m", "on none", "v2", &off]);
    git(server, ["tag", "v3", &off]);
    git(server, ["update-ref", "-d", "refs/heads/off"]);
    let request = project.request(5);
    // What branches lead to, whatever was fetched before and since.
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    project.git("fetch -q --tags origin");
    for name in ["v1", "v2", "v3", &off] {
        assert!(!project.is_foreign(name), "{name}: the last fetch brought it");
    }
    project.fetch_again();
    assert!(!project.is_foreign("v1") && project.is_foreign("v2") && project.is_foreign(&request));
    // As it was cloned.
    let url = format!("file://{}", server.display());
    let spot = &project.repo.spot;
    for words in
        [&[][..], &["--bare"], &["--depth=1", "--branch=v2"], &["--depth=1", "--no-single-branch", "--branch=v3"]]
    {
        let (clone, linked) = (spot.join("clone"), spot.join("linked"));
        git(spot, ["clone", "-q", &url, "clone"].iter().chain(words));
        let name = if words.len() > 1 { "HEAD" } else { "v2" };
        git(&clone, ["worktree", "add", "-q", "--detach", "../linked", name]);
        assert!(!is_foreign(&linked, name) && !is_foreign(&linked, "HEAD"), "{words:?}");
        if words.len() > 1 {
            // As the project's servers for CI do it, and again.
            let tag = words.last().unwrap().rsplit('=').next().unwrap();
            git(&clone, ["fetch", "-q", "--depth=1", "origin", &format!("+refs/tags/{tag}:refs/tags/{tag}")]);
            git(&clone, ["checkout", "-q", &format!("refs/tags/{tag}")]);
            assert!(!is_foreign(&clone, "HEAD"), "{words:?}");
        }
        fs_err::remove_dir_all(clone).unwrap();
        fs_err::remove_dir_all(linked).unwrap();
    }
}

#[test]
fn a_detached_worktree_at_a_commit_that_nothing_leads_to_is_not_trusted() {
    let project = Project::new();
    let request = project.request(5);
    let (fork, of_fork) = fork_of(&project);
    git(&fork, ["branch", "below", "HEAD~1"]);
    for (fetch, commit) in [
        ("origin pull/5/head", &request),
        ("../fork patch", &of_fork),
        ("origin ID", &request),
        ("../fork below", &rev_in(&fork)),
    ] {
        for at in ["FETCH_HEAD", commit, "FETCH_HEAD~0"] {
            project.git(&format!("fetch -q {}", fetch.replace("ID", commit)));
            let path = added(&project, &format!("--detach PATH {at}"));
            project.fetch_again();
            assert!(project.is_foreign(commit), "{fetch}");
            assert!(project.is_untrusted(&path), "{fetch}, {at}");
            // One's own work on top of it makes it no less theirs.
            git(&path, ["commit", "-q", "--allow-empty", "-m", "mine"]);
            assert!(project.is_untrusted(&path), "{fetch}, {at}");
            project.git("worktree remove --force ../by-git");
        }
        // Checked out later, where something else was before.
        let path = added(&project, "--detach PATH main");
        assert!(!project.is_untrusted(&path));
        git(&path, ["checkout", "-q", "--detach", commit]);
        assert!(project.is_untrusted(&path), "{fetch}");
        project.git("worktree remove --force ../by-git");
    }
}

fn rev_in(fork: &Path) -> String {
    git(fork, ["rev-parse", "HEAD~1"]).trim().to_owned()
}

#[test]
fn a_detached_worktree_at_ones_own_or_the_projects_commit_is_trusted() {
    let project = Project::new();
    // The project's branch was somewhere else before.
    let before = project.commit("main", "refs/heads/x");
    project.fetch_again();
    git(&project.server, ["update-ref", "refs/heads/x", "main"]);
    project.fetch_again();
    // A branch of one's own, one that is gone, and a commit on none.
    project.git("switch -q -c own main");
    commit(&project, "one", &[]);
    project.git("switch -q -c gone");
    commit(&project, "two", &[]);
    let gone = rev(&project, "HEAD");
    project.git("switch -q main");
    project.git("branch -q -D gone");
    project.git("tag mine own");
    for name in ["main", "origin/main", &before, "own", "mine", &gone, &format!("{gone}~1"), "v1.0"] {
        if name == "v1.0" {
            project.git("tag -a -m released v1.0 main");
        }
        let path = added(&project, &format!("--detach PATH {name}"));
        assert!(!project.is_untrusted(&path), "{name}");
        git(&path, ["commit", "-q", "--allow-empty", "-m", "mine"]);
        git(&path, ["commit", "-q", "--allow-empty", "--amend", "-m", "mine, too"]);
        assert!(!project.is_untrusted(&path), "{name}: with more of one's own");
        project.git("worktree remove --force ../by-git");
    }
}

/// Stops a rebase in which every commit gets another message.
const REWORDED: &str = "s/^pick/reword/;$a break";
/// Stops a rebase at its first commit.
const SPLIT: &str = "1s/^pick/edit/";

#[test]
fn an_unfinished_rebase_of_ones_own_is_ones_own() {
    for (sed, line) in [
        (REWORDED, "rebase -q -i origin/main"),
        (REWORDED, "rebase -q -i --rebase-merges origin/main"),
        (REWORDED, "rebase -q -i --root --onto origin/main"),
        (SPLIT, "rebase -q -i origin/main"),
        ("1d;$a break", "rebase -q -i origin/main"),
    ] {
        for detaches in [false, true] {
            let (project, [_, second]) = with_request();
            project.git("fetch -q origin pull/5/head:refs/pull/5/head");
            let path = added(&project, "-b own PATH main");
            git(&path, ["config", "core.editor", "sed -i 1s/^/again:/"]);
            for name in ["one", "two"] {
                write(&path.join(name), name);
                git(&path, ["add", "-A"]);
                git(&path, ["commit", "-q", "-m", name]);
            }
            if detaches {
                git(&path, ["checkout", "-q", "--detach"]);
            }
            edited(&path, sed, line);
            assert!(project.repo.join(".git/worktrees/by-git/rebase-merge").exists(), "{line}");
            if sed == SPLIT {
                git(&path, ["reset", "-q", "HEAD~1"]);
                for name in ["a", "b"] {
                    write(&path.join(name), name);
                    git(&path, ["add", name]);
                    git(&path, ["commit", "-q", "-m", name]);
                }
                git(&path, ["add", "-A"]);
                git(&path, ["commit", "-q", "-m", "one"]);
            }
            assert!(!project.is_untrusted(&path), "{sed}, {line}, {detaches}");
            // In between, theirs is there.
            let head = git(&path, ["rev-parse", "HEAD"]);
            git(&path, ["checkout", "-q", "--detach", &second]);
            assert!(project.is_untrusted(&path), "{sed}, {line}, {detaches}");
            git(&path, ["checkout", "-q", "--detach", head.trim()]);
            assert!(!project.is_untrusted(&path), "{sed}, {line}, {detaches}: it is back");
            git(&path, ["rebase", "--continue"]);
            if !detaches {
                assert!(!project.is_untrusted(&path), "{sed}, {line}: afterwards");
            }
        }
    }
}

#[test]
fn an_unfinished_rebase_of_a_request_stays_the_requests() {
    for (fetch, add) in [
        ("pull/5/head:refs/pull/5/head", "--detach PATH refs/pull/5/head"),
        ("pull/5/head", "--detach PATH FETCH_HEAD"),
        ("pull/5/head", "-b theirs PATH FETCH_HEAD"),
        ("pull/5/head:theirs", "PATH theirs"),
    ] {
        let (project, _) = with_request();
        project.git(&format!("fetch -q origin {fetch}"));
        let path = added(&project, add);
        git(&path, ["config", "core.editor", "sed -i 1s/^/again:/"]);
        edited(&path, REWORDED, "rebase -q -i origin/main");
        project.fetch_again();
        assert!(project.is_untrusted(&path), "{fetch}, {add}");
        git(&path, ["rebase", "--continue"]);
        assert!(project.is_untrusted(&path), "{fetch}, {add}: afterwards");
    }
}

#[test]
fn a_fetch_in_a_worktree_that_has_gone_is_not_forgotten() {
    let (project, [first, second]) = with_request();
    let spot = &project.repo.spot;
    git(spot, ["clone", "-q", "server", "fresh"]);
    let fresh = spot.join("fresh");
    git(&fresh, ["worktree", "add", "-q", "../linked"]);
    git(&spot.join("linked"), ["fetch", "-q", "origin", "pull/5/head:refs/tags/x"]);
    assert!(!fresh.join(".git/FETCH_HEAD").exists());
    with_environment(calve(["worktree", "remove", "../linked"])).within(&fresh).succeeds();
    git(&fresh, ["tag", "-a", "-m", "released", "y", &first]);
    for name in ["x", "y", &first, &second] {
        assert!(is_foreign(&fresh, name), "{name}");
    }
    assert!(!is_foreign(&fresh, "main"));
    // A request in the middle of a merge is marked for good.
    project.git("fetch -q origin pull/5/head:refs/pull/5/head");
    let path = added(&project, &format!("--detach PATH {second}"));
    write(&path.join("theirs"), "mine");
    git(&path, ["commit", "-q", "-a", "-m", "mine"]);
    git(&path, ["branch", "other"]);
    git(&path, ["reset", "-q", "--hard", "HEAD~1"]);
    write(&path.join("theirs"), "neither");
    git(&path, ["commit", "-q", "-a", "-m", "neither"]);
    let merged = std::process::Command::new("git").args(["merge", "-q", "other"]).current_dir(&path).status().unwrap();
    assert!(!merged.success() && project.repo.join(".git/worktrees/by-git/MERGE_HEAD").exists());
    assert!(project.is_untrusted(&path));
    git(&path, ["merge", "--abort"]);
    git(&path, ["checkout", "-q", "--detach", "main"]);
    assert!(project.is_untrusted(&path), "the request's files may still be there");
}

#[test]
fn a_branch_that_is_made_where_nothing_led_to_is_no_evidence() {
    let (project, [_, request]) = with_request();
    for (add, switch) in [
        ("--detach PATH FETCH_HEAD", "switch -q -c b"),
        ("--detach PATH FETCH_HEAD", "branch b HEAD~0"),
        ("-b b PATH ID", "status"),
        ("-b b PATH SHORT", "status"),
    ] {
        project.git("fetch -q origin pull/5/head");
        let path = added(&project, &add.replace("ID", &request).replace("SHORT", &request[..8]));
        git(&path, switch.split(' '));
        project.fetch_again();
        assert!(project.is_untrusted(&path) && project.is_foreign("b"), "{add}, {switch}");
        project.git("worktree remove --force ../by-git");
        assert!(project.is_foreign("b"), "{add}, {switch}");
        project.git("branch -q -D b");
    }
    // What the user has made is known by the log of the worktree, and what the project has by its branches.
    for at in ["main", "origin/main"] {
        let path = added(&project, &format!("--detach PATH {at}"));
        for switch in ["switch -q -c b", "switch -q -c c HEAD"] {
            git(&path, ["commit", "-q", "--allow-empty", "-m", "mine"]);
            git(&path, switch.split(' '));
            assert!(!project.is_untrusted(&path), "{at}, {switch}");
        }
        project.git("worktree remove --force ../by-git");
        project.git("branch -q -D b c");
    }
}
