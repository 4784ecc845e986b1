//! Refusals, each before anything is made.

use calve_testkit::{FileSystem, Volume};

use super::repo::{Repo, git, is_clean, try_git, with_environment, write};
use crate::program::calve;
use crate::spot::{Spot, nothing_left};

/// Refused, with something to do next, and nothing is made.
#[track_caller]
fn refused(repo: &Repo, arguments: &[&str], words: &[&str]) {
    let before = (crate::spot::names(&repo.spot), repo.git(["for-each-ref"]), repo.worktrees());
    repo.calve(["add"]).args(arguments).fails(1).says(words).hints();
    assert_eq!((crate::spot::names(&repo.spot), repo.git(["for-each-ref"]), repo.worktrees()), before);
    let entries = fs_err::read_dir(repo.join(".git/worktrees")).map_or(0, Iterator::count);
    assert_eq!(entries, before.2.len() - 1);
}

#[test]
fn names_that_no_branch_can_have_are_refused() {
    let repo = Repo::anywhere();
    for name in ["a b", "a..b", "new\nline", "^main", "main..main", "x.lock", "a//b", "/x", "x~1", "ä:b"] {
        refused(&repo, &["--", name], &["is not a name that a branch can have"]);
    }
    refused(&repo, &["--", "-x"], &["is not a name"]);
    repo.add(["feature/ä"]);
    is_clean(&repo.spot.join("proj.feature-ä"));
}

#[test]
fn what_calve_would_get_wrong_and_what_is_taken_is_refused() {
    let repo = Repo::anywhere();
    repo.git(["config", "core.worktree", repo.path.to_str().unwrap()]);
    refused(&repo, &["x"], &["core.worktree"]);
    repo.git(["config", "--unset", "core.worktree"]);
    // git, too, ignores names that it does not know in a repository of the oldest format.
    repo.git(["config", "extensions.fromTheFuture", "1"]);
    refused(&repo, &["x"], &["extension `fromthefuture`"]);
    repo.git(["config", "--unset", "extensions.fromTheFuture"]);
    refused(&repo, &["main"], &["is checked out in"]);
    repo.add(["x"]);
    refused(&repo, &["x"], &["is checked out in"]);
    refused(&repo, &["--base", "HEAD", "x"], &["already exists"]);
    fs_err::create_dir(repo.spot.join("proj.y")).unwrap();
    refused(&repo, &["y"], &["already exists"]);
    refused(&repo, &["--path", "../a\nb", "z"], &["not a name"]);
    refused(&repo, &["--base", "nowhere", "z"], &["there is no commit"]);
    refused(&repo, &["--from", "nowhere", "z"], &["there is no worktree"]);
}

#[test]
fn a_branch_that_is_being_rebased_or_bisected_is_refused() {
    let repo = Repo::anywhere();
    repo.git(["switch", "-q", "-c", "topic"]);
    repo.write("src/main.ts", "topic\n");
    repo.commit("two");
    repo.git(["switch", "-q", "main"]);
    repo.write("src/main.ts", "main\n");
    repo.commit("three");
    repo.git(["switch", "-q", "topic"]);
    assert!(!try_git(&repo.path, ["rebase", "main"]).status.success());
    refused(&repo, &["topic"], &["is being rebased"]);
    // As `git rebase --update-refs` notes the branches that it moves along.
    repo.git(["branch", "lower", "main"]);
    repo.write(".git/rebase-merge/update-refs", &format!("refs/heads/lower\n{0}\n{0}\n", "0".repeat(40)));
    refused(&repo, &["lower"], &["is being rebased"]);
    repo.git(["rebase", "--abort"]);
    repo.git(["bisect", "start", "topic", "main"]);
    refused(&repo, &["topic"], &["is being bisected"]);
    repo.git(["bisect", "reset"]);
    repo.git(["switch", "-q", "main"]);
    let linked = repo.add(["topic"]);
    is_clean(&linked);
    // Its own place is taken too.
    assert!(!try_git(&linked, ["rebase", "main"]).status.success());
    refused(&repo, &["topic"], &[&format!("is being rebased in `{}`", linked.display())]);
    repo.calve(["remove", "topic"]).fails(1).says(&["an unfinished rebase"]);
    repo.git(["branch", "other", "main"]);
    write(
        &repo.join(".git/worktrees/proj.topic/rebase-merge/update-refs"),
        &format!("refs/heads/other\n{0}\n{0}\n", "0".repeat(40)),
    );
    repo.calve(["remove", "other"]).fails(1).says(&["there is no worktree"]);
    for words in [["remove", "-nfD", "topic"], ["remove", "-fD", "topic"]] {
        repo.calve(words).succeeds().says(&["no branch to delete: it had none checked out"]);
    }
    assert_eq!(repo.git(["branch", "--list", "topic"]), "  topic\n");
}

#[test]
fn what_is_no_repository_or_has_nothing_in_it_is_refused() {
    let spot = Spot::anywhere();
    let add = || with_environment(calve(["worktree", "add", "x"])).within(&spot).env("GIT_CEILING_DIRECTORIES", &spot);
    add().fails(1).says(&["is not in a git repository"]).hints();
    git(&spot, ["init", "-q", "-b", "main"]);
    add().fails(1).says(&["commit something first: a branch needs a commit", "no commit yet"]);
    fs_err::remove_dir_all(spot.join(".git")).unwrap();
    write(&spot.join(".git"), "gitdir: /nonexistent/.git/worktrees/x\n");
    add().fails(1).says(&["if the main worktree was moved, run `git worktree repair` in it; if it was deleted, or has forgotten this worktree, only the files here are left", "points to a repository that is not there"]);
    write(&spot.join(".git"), "nonsense\n");
    add().fails(1).hints();
}

#[test]
fn a_deleted_main_worktree_is_told() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    fs_err::remove_dir_all(&repo.path).unwrap();
    let add = with_environment(calve(["worktree", "add", "y"])).within(&path);
    let refused = add.fails(1).says(&["points to a repository that is not there"]).hints();
    // It is the user's own.
    assert!(!refused.stderr.contains("trust"), "{}", refused.stderr);
}

#[test]
fn a_mistake_in_the_configuration_is_told_with_its_place() {
    let repo = Repo::anywhere();
    repo.write(".calve.toml", "[worktree]\n\n  path = \"here\"\n");
    refused(&repo, &["x"], &[".calve.toml`, line 3, column 10", "{branch}"]);
    // A list in the wrong table would have no effect, and the files would be carried against the user's will.
    for (text, place) in [
        ("secrets = \"leave\"\n", "line 1, column 1: there is no `secrets`"),
        ("[worktrees]\nsecrets = \"leave\"\n", "line 1, column 2: there is no `worktrees`"),
        ("[hook]\nsecrets = \"leave\"\n", "line 1, column 2: there is no `hook`"),
        ("[hooks]\nsecrets = \"leave\"\n", "line 2, column 1: `[hooks]` has no `secrets`; `[worktree]` has"),
    ] {
        for file in [".calve.toml", ".calve.local.toml"] {
            repo.write(file, text);
            refused(&repo, &["x"], &[file, place]);
            refused(&repo, &["-n", "x"], &[file, place]);
            fs_err::remove_file(repo.join(file)).unwrap();
        }
    }
    repo.write(".calve.toml", "[worktree]\ninclude = [\n");
    refused(&repo, &["x"], &["line "]);
    repo.write(".calve.toml", "[worktree]\npath = \".worktrees/{branch}\"\n");
    assert_eq!(repo.add(["a/b"]), repo.join(".worktrees/a-b"));
}

/// The branch has a symlink where the donor has an ignored directory, and the other way round.
#[test]
fn a_hostile_symlink_leads_nowhere() {
    let repo = Repo::anywhere();
    let outside = repo.spot.join("outside");
    fs_err::create_dir(&outside).unwrap();
    repo.git(["switch", "-q", "-c", "hostile"]);
    for path in ["target", "node_modules", ".env", "src/deep"] {
        repo.git(["rm", "-q", "-r", "--cached", "--ignore-unmatch", path]);
        let aside = repo.spot.join(format!("aside-{}", path.replace('/', "-")));
        fs_err::rename(repo.join(path), &aside).unwrap();
        fs_err::os::unix::fs::symlink(&outside, repo.join(path)).unwrap();
        repo.git(["add", "-f", path]);
    }
    repo.git(["commit", "-q", "-m", "hostile"]);
    repo.git(["switch", "-q", "--force", "main"]);
    for path in ["target", "node_modules", ".env"] {
        let aside = repo.spot.join(format!("aside-{path}"));
        fs_err::rename(aside, repo.join(path)).unwrap();
    }
    repo.write("src/deep/er/ignored.log", "through the link\n");
    repo.settle();
    let path = repo.add(["hostile"]);
    is_clean(&path);
    for link in ["target", "node_modules", ".env", "src/deep"] {
        assert_eq!(fs_err::read_link(path.join(link)).unwrap(), outside, "{link}");
    }
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 0, "something was written outside");
    // The other way round: a tracked directory where an ignored symlink leads out.
    fs_err::remove_dir_all(repo.join("node_modules")).unwrap();
    fs_err::os::unix::fs::symlink(&outside, repo.join("node_modules")).unwrap();
    repo.write(".gitignore", "node_modules\n.env\n/target/\n");
    repo.commit("a link may be ignored");
    repo.git(["switch", "-q", "-c", "tracks"]);
    fs_err::remove_file(repo.join("node_modules")).unwrap();
    repo.write("node_modules/tracked.js", "1\n");
    repo.git(["add", "-f", "node_modules/tracked.js"]);
    repo.git(["commit", "-q", "-m", "tracked"]);
    repo.git(["switch", "-q", "main"]);
    let _ = fs_err::remove_dir_all(repo.join("node_modules"));
    fs_err::os::unix::fs::symlink(&outside, repo.join("node_modules")).unwrap();
    let path = repo.add(["tracks"]);
    is_clean(&path);
    assert!(path.join("node_modules/tracked.js").is_file());
    assert_eq!(fs_err::read_dir(&outside).unwrap().count(), 0, "something was written outside");
}

#[test]
fn a_disk_that_is_full_in_the_middle_leaves_nothing() {
    let Some(volume) = Volume::with_size(FileSystem::Ext4, 24 << 20) else { return };
    let donor = Repo::anywhere();
    donor.write("node_modules/large", &"x".repeat(40 << 20));
    let path = volume.path().join("new");
    let add = donor.calve(["add", "x", "--path"]).arg(&path);
    add.fails(1).hints();
    assert!(!path.exists());
    nothing_left(volume.path());
    assert_eq!(donor.worktrees().len(), 1);
    assert_eq!(donor.git(["branch", "--list", "x"]), "");
    assert_eq!(fs_err::read_dir(donor.join(".git/worktrees")).unwrap().count(), 0);
}
