//! What a configuration file decides, by who wrote it: nothing of a repository leaves the repository.

use std::path::Path;

use super::repo::{Repo, git, write};

/// A repository like one from a stranger: a file that it tracks would run at the next `git status` if it got into `~/.config/git`.
fn hostile(file: &str, path: &str) -> Repo {
    let repo = Repo::anywhere();
    repo.write("config", "[core]\n\tfsmonitor = \"touch ran; false\"\n");
    repo.write(file, &format!("[worktree]\npath = \"{path}\"\n"));
    repo.git(["add", "-A", "-f"]);
    repo.git(["commit", "-q", "-m", "hostile"]);
    repo
}

/// Refused with a place in the file and with something to do, and nothing is made.
#[track_caller]
fn refused(repo: &Repo, branch: &str, words: &[&str]) {
    let before = (crate::spot::names(&repo.spot), repo.git(["for-each-ref"]), repo.worktrees());
    for arguments in [&["add", branch][..], &["add", "-n", branch]] {
        repo.calve(arguments).fails(1).says(words).says(&["hint: ", ".calve.local.toml"]);
    }
    assert_eq!((crate::spot::names(&repo.spot), repo.git(["for-each-ref"]), repo.worktrees()), before);
}

#[test]
fn a_file_of_the_repository_puts_no_worktree_outside_of_its_surroundings() {
    for (path, fault) in [
        ("../{branch}/../.config/git", "has `..` after a name"),
        ("{branch}/../../.config/systemd", "has `..` after a name"),
        ("../../{branch}", "is above the repository's surroundings"),
        ("/tmp/calve-{branch}/../x", "is absolute"),
        ("../.config/{branch}", "has a hidden name"),
        ("../.{branch}", "has a hidden name"),
        ("../node_modules/{branch}", "look for packages"),
        ("node_modules/{branch}", "look for packages"),
        ("sub/.VENV/{branch}", "look for packages"),
        (".git/{branch}", "git's own files"),
    ] {
        let repo = hostile(".calve.toml", path);
        refused(&repo, "fix", &["proj/.calve.toml`, line 2, column 8", fault]);
        // Not tracked, it may still have come with an archive.
        repo.git(["rm", "-q", "--cached", ".calve.toml"]);
        refused(&repo, "fix", &["proj/.calve.toml`, line 2, column 8", fault]);
        // Elsewhere it does not matter.
        repo.calve(["list"]).succeeds();
        repo.calve(["prune"]).succeeds();
    }
}

#[test]
fn every_mistake_names_the_file_the_line_and_what_may_stand_there() {
    let repo = Repo::anywhere();
    for (text, told) in [
        ("[services.db]\nengine = 'mongo'", "2, column 10: unknown engine `mongo`; the engines are postgres, mariadb"),
        ("[services.db]\ntemplate = '../x'", "2, column 12: a template's name is up to 48 letters, digits"),
        ("[worktree]\nexclude = [\n'a',\n'[']", "4, column 1: the pattern `[` is not valid"),
    ] {
        repo.write(".calve.toml", text);
        repo.calve(["add", "x"]).fails(1).hints().says(&["proj/.calve.toml`, line ", told]);
    }
    // A service names a template, and nothing else.
    for name in ["../../elsewhere", "/etc", "a/b", ".hidden", "..", "", "a\\nb"] {
        repo.write(".calve.toml", &format!("[services.db]\ntemplate = \"{name}\"\n"));
        let before = crate::spot::names(&repo.spot);
        repo.calve(["add", "x"]).fails(1).says(&[".calve.toml`, line 2, column 12: ", "name"]).hints();
        assert_eq!((crate::spot::names(&repo.spot), repo.worktrees().len()), (before, 1), "{name:?}");
    }
}

#[test]
fn the_users_file_is_not_the_users_if_git_tracks_it() {
    let repo = hostile(".calve.local.toml", "../{branch}/../.config/git");
    refused(&repo, "fix", &["proj/.calve.local.toml`, line 2, column 8", "has `..` after a name"]);
    // Whatever the environment says of how git reads names.
    let literal = repo.calve(["add", "fix"]).env("GIT_LITERAL_PATHSPECS", "1");
    literal.fails(1).says(&[
        "set `path` below `[worktree]` in `.calve.local.toml`, and keep git from tracking that file",
        "has `..` after a name",
    ]);
    // A file system without regard to case would take it for the user's.
    repo.git(["mv", ".calve.local.toml", ".Calve.Local.toml"]);
    repo.git(["commit", "-q", "-m", "other case"]);
    fs_err::copy(repo.join(".Calve.Local.toml"), repo.join(".calve.local.toml")).unwrap();
    refused(&repo, "fix", &["proj/.calve.local.toml`, line 2, column 8", "has `..` after a name"]);
}

#[test]
fn the_users_own_file_names_any_place_and_wins() {
    let repo = hostile(".calve.toml", "../{branch}/../.config/git");
    let elsewhere = repo.spot.join("elsewhere");
    fs_err::create_dir(&elsewhere).unwrap();
    fs_err::os::unix::fs::symlink(&elsewhere, repo.spot.join("wt")).unwrap();
    for (path, place) in [
        ("../wt/{branch}", elsewhere.join("one")),
        (&format!("{}/{{branch}}/deep", elsewhere.display()), elsewhere.join("two/deep")),
        ("../gone/../.hidden/{branch}", repo.spot.join(".hidden/three")),
    ] {
        repo.write(".calve.local.toml", &format!("[worktree]\npath = '{path}'\n"));
        let branch =
            place.strip_prefix(&elsewhere).ok().and_then(|below| below.iter().next()).unwrap_or("three".as_ref());
        assert_eq!(repo.add([branch]), place);
    }
}

#[test]
fn a_file_of_the_repository_leads_through_no_link() {
    let repo = hostile(".calve.toml", "wt/{branch}");
    let config = repo.spot.join(".config");
    fs_err::os::unix::fs::symlink("../.config", repo.join("wt")).unwrap();
    repo.commit("a link that leads out");
    for is_dangling in [true, false] {
        if !is_dangling {
            fs_err::create_dir(&config).unwrap();
        }
        refused(&repo, "git", &["proj/wt`", "is a link, or not a directory"]);
    }
    // Also one further down, and one that is the user's.
    repo.write(".calve.toml", "[worktree]\npath = '../trees/wt/{branch}/deep'\n");
    fs_err::create_dir(repo.spot.join("trees")).unwrap();
    fs_err::os::unix::fs::symlink("../.config", repo.spot.join("trees/wt")).unwrap();
    refused(&repo, "git", &["trees/wt`", "is a link, or not a directory"]);
    assert_eq!(crate::spot::names(&config), [] as [&str; 0]);
    fs_err::remove_file(repo.spot.join("trees/wt")).unwrap();
    assert_eq!(repo.add(["git"]), repo.spot.join("trees/wt/git/deep"));
}

#[test]
fn a_file_of_the_repository_puts_nothing_into_another_repository() {
    let repo = hostile(".calve.toml", "../other/src/{branch}");
    let other = repo.spot.join("other");
    fs_err::create_dir(&other).unwrap();
    git(&other, ["init", "-q"]);
    refused(&repo, "fix", &["/other`", "is another repository"]);
    git(&repo.spot, ["init", "-q", "--bare", "bare.git"]);
    repo.write(".calve.toml", "[worktree]\npath = '../bare.git/{branch}'\n");
    refused(&repo, "hooks2", &["/bare.git`", "is another repository"]);
    repo.write(".calve.toml", "[worktree]\npath = 'sub/{branch}'\n");
    write(&repo.join("sub/.git"), "gitdir: ../.git/modules/sub\n");
    refused(&repo, "fix", &["/sub`", "is another repository"]);
}

#[test]
fn a_file_of_the_repository_that_is_a_link_is_not_read() {
    let repo = Repo::anywhere();
    let secret = repo.spot.join("secret");
    fs_err::write(&secret, "password = 'hunter2'\n").unwrap();
    for target in [Path::new("../secret"), &secret, Path::new("nowhere")] {
        fs_err::os::unix::fs::symlink(target, repo.join(".calve.toml")).unwrap();
        let ran = repo.calve(["add", "x"]).fails(1).says(&[
            "`calve worktree add --help` lists the tables and keys that the file may have",
            ".calve.toml`, line 1, column 1: it is a link",
        ]);
        assert!(!ran.stderr.contains("password"), "{}", ran.stderr);
        fs_err::remove_file(repo.join(".calve.toml")).unwrap();
    }
    fs_err::os::unix::fs::symlink(&secret, repo.join(".worktreeinclude")).unwrap();
    repo.calve(["add", "x"]).fails(1).says(&[".worktreeinclude`, line 1, column 1: it is a link"]);
    fs_err::remove_file(repo.join(".worktreeinclude")).unwrap();
    // Where the user keeps his own settings is his business.
    fs_err::write(&secret, "[worktree]\npath = '../{branch}'\n").unwrap();
    fs_err::os::unix::fs::symlink(&secret, repo.join(".calve.local.toml")).unwrap();
    assert_eq!(repo.add(["x"]), repo.spot.join("x"));
}

#[test]
fn no_name_of_a_branch_leads_elsewhere() {
    let repo = Repo::anywhere();
    repo.write(".calve.toml", "[worktree]\npath = '../{branch}/tree'\n");
    for name in ["..", ".", "../x", ".config/git", "x/../../y", "x/.git", ".git"] {
        repo.calve(["add", name]).fails(1).says(&["choose a name without spaces, without `..`, and without `-` at the beginning; git-check-ref-format(1) has all rules", "is not a name that a branch can have"]);
    }
    assert_eq!(repo.add(["config/git"]), repo.spot.join("config-git/tree"));
    // A revision is no branch, and gives the place its name all the same.
    let place = repo.add(["--detach", "HEAD^{/one}"]);
    assert_eq!(place, repo.spot.join("HEAD^{-one}/tree"));
}
