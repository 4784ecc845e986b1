//! What must not be lost: other things at the place of a worktree, and work inside of one that exists nowhere else.

use std::path::{Path, PathBuf};

use super::repo::{Repo, copy, git, is_clean, try_git, write};
use crate::spot::eventually_nothing_left;

/// A repository with one commit, which nothing else has.
fn repository(at: &Path) {
    fs_err::create_dir_all(at).unwrap();
    git(at, ["init", "-q", "-b", "main"]);
    write(&at.join("file"), "only here\n");
    git(at, ["add", "-A"]);
    git(at, ["commit", "-q", "-m", "only here"]);
}

/// `remove` refuses it, with `-f` too, and says `words`.
#[track_caller]
fn is_left_alone(repo: &Repo, what: &Path, words: &[&str]) {
    for force in [&[][..], &["-f"]] {
        repo.calve(["remove"]).args(force).arg(what).fails(1).says(words).hints();
    }
}

fn state_of(repo: &Repo, path: &Path) -> String {
    let list = repo.calve(["list", "--json"]).succeeds().json();
    let all = list["worktrees"].as_array().unwrap();
    let one = all.iter().find(|one| one["path"] == path.to_str().unwrap()).unwrap();
    one["standing"].as_str().unwrap().to_owned()
}

#[test]
fn the_place_of_a_worktree_that_is_gone_is_known_through_a_link() {
    let repo = Repo::anywhere();
    let [there, link] = ["there", "link"].map(|name| repo.spot.join(name));
    fs_err::create_dir(&there).unwrap();
    fs_err::os::unix::fs::symlink("there", &link).unwrap();
    let [path, through] = [&there, &link].map(|above| above.join("disk/x"));
    repo.git(["worktree", "add", "-q", "-b", "x", path.to_str().unwrap()]);
    fs_err::remove_dir_all(there.join("disk")).unwrap();
    repo.calve(["add", "y", "--path", through.to_str().unwrap()]).fails(1).hints();
    repo.calve(["remove", through.to_str().unwrap()]).succeeds();
    assert_eq!(repo.worktrees().len(), 1);
}

#[test]
fn what_has_taken_the_place_of_a_worktree_is_not_removed() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let away = repo.spot.join("away");
    fs_err::rename(&path, &away).unwrap();
    repository(&path);
    is_left_alone(&repo, Path::new("x"), &["another repository", "proj.x"]);
    assert_eq!(state_of(&repo, &path), "replaced");
    let list = repo.calve(["list"]).succeeds().says(&["another repository", "calve worktree prune"]);
    assert!(list.stdout.contains("replaced"), "{}", list.stdout);
    repo.calve(["add", "y", "--from", "x"]).fails(1).says(&["`calve worktree prune` makes git forget the entry and leaves the path alone; if you moved the worktree, run `git worktree repair NEW-PATH` instead", "another repository"]);
    fs_err::remove_dir_all(&path).unwrap();
    fs_err::create_dir(&path).unwrap();
    write(&path.join("notes"), "plain\n");
    is_left_alone(&repo, &path, &["a directory without `.git`"]);
    assert_eq!(state_of(&repo, &path), "replaced");
    fs_err::remove_dir_all(&path).unwrap();
    fs_err::os::unix::fs::symlink(&away, &path).unwrap();
    is_left_alone(&repo, Path::new("x"), &["is a link to the worktree", "git worktree repair"]);
    assert_eq!(state_of(&repo, &path), "linked");
    repo.calve(["prune"]).succeeds().says(&["kept", "git worktree repair"]);
    is_clean(&path);
    assert!(away.join("src/main.ts").exists() && path.join("src/main.ts").exists());
    fs_err::remove_file(&path).unwrap();
    fs_err::rename(&away, &path).unwrap();
    assert_eq!(state_of(&repo, &path), "intact");
    repo.calve(["remove", "x"]).succeeds();
    eventually_nothing_left(&repo.spot);
}

#[test]
fn a_copy_of_a_repository_leaves_the_worktrees_of_the_original_alone() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    let copied = repo.spot.join("copied");
    copy(&repo.path, &copied);
    for force in [&[][..], &["-f"]] {
        let ran = repo.calve(["remove"]).args(force).arg("x").within(&copied).fails(1);
        ran.says(&["another repository"]).hints();
    }
    let list = repo.calve(["list", "--json"]).within(&copied).succeeds().json();
    assert_eq!((&list["worktrees"][1]["standing"], &list["worktrees"][1]["dirty"]), (&"foreign".into(), &().into()));
    for (words, told) in [(&["-n"][..], "would forget"), (&[], "forgot")] {
        let ran = repo.calve(["prune"]).args(words).within(&copied).succeeds();
        ran.says(&[&format!("{told} `{}`, whose path holds something else", path.display())]);
    }
    assert_eq!(git(&copied, ["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    is_clean(&path);
    // A copy of the worktree is not one.
    let twin = repo.spot.join("twin");
    copy(&path, &twin);
    repo.calve(["remove"]).arg(&twin).fails(1).says(&["there is no worktree"]).hints();
    repo.calve(["convert"]).arg(&twin).fails(1).says(&[
        "if you moved the worktree here, run `git worktree repair`; otherwise make a new one",
        "git worktree repair",
    ]);
    repo.calve(["remove", "x"]).succeeds();
    assert!(twin.join("src/main.ts").exists());
}

#[test]
fn after_a_repository_was_moved_its_worktrees_wait_to_be_repaired() {
    let mut repo = Repo::anywhere();
    let (path, other) = (repo.add(["x"]), repo.add(["other"]));
    let moved = repo.spot.join("moved");
    fs_err::rename(&repo.path, &moved).unwrap();
    repo.path = moved;
    is_left_alone(&repo, Path::new("x"), &["is not there", "git worktree repair"]);
    assert_eq!(state_of(&repo, &path), "adrift");
    repo.calve(["prune"]).succeeds().says(&["kept", "git worktree repair"]);
    assert_eq!(repo.worktrees().len(), 3);
    repo.git(["worktree", "repair"]);
    repo.calve(["remove", "x"]).succeeds();
    // Through a link above it, it is the same worktree.
    let link = repo.spot.join("link");
    fs_err::os::unix::fs::symlink(&*repo.spot, &link).unwrap();
    let entry = repo.join(".git/worktrees/proj.other");
    write(&entry.join("gitdir"), &format!("{}/proj.other/.git\n", link.display()));
    write(&other.join(".git"), "gitdir: ../link/moved/.git/worktrees/proj.other\n");
    repo.calve(["remove", "other"]).succeeds();
    assert!(!other.exists());
    fs_err::remove_file(&link).unwrap();
    eventually_nothing_left(&repo.spot);
}

/// A worktree `x` in which something that git ignores is a repository: `node_modules/dep`.
struct NestedFixture {
    repo: Repo,
    path: PathBuf,
    at: PathBuf,
}

impl NestedFixture {
    /// A clone of the repository itself, with all commits pushed.
    fn new() -> NestedFixture {
        let repo = Repo::anywhere();
        let path = repo.add(["x"]);
        let at = path.join("node_modules/own-work");
        repo.git(["clone", "-q", ".", at.to_str().unwrap()]);
        is_clean(&path);
        NestedFixture { repo, path, at }
    }

    #[track_caller]
    fn is_kept(&self, words: &[&str]) {
        let ran = self.repo.calve(["remove", "x"]).fails(1);
        ran.says(words).hints();
        assert!(self.at.exists() && self.path.join("src/main.ts").exists());
    }

    #[track_caller]
    fn goes(&self, force: &[&str]) {
        self.repo.calve(["remove", "x"]).args(force).succeeds();
        assert!(!self.path.exists());
        eventually_nothing_left(&self.repo.spot);
    }
}

#[test]
fn a_nested_repository_with_work_of_its_own_is_not_removed_unless_forced() {
    let nested = NestedFixture::new();
    let named = "node_modules/own-work";
    write(&nested.at.join("new"), "n\n");
    nested.is_kept(&[named, "uncommitted changes"]);
    git(&nested.at, ["add", "new"]);
    nested.is_kept(&[named, "uncommitted changes"]);
    git(&nested.at, ["stash", "-q"]);
    nested.is_kept(&[named, "commits"]);
    git(&nested.at, ["stash", "drop", "-q"]);
    git(&nested.at, ["switch", "-q", "-c", "work"]);
    git(&nested.at, ["commit", "-q", "--allow-empty", "-m", "more"]);
    nested.is_kept(&[named, "commits"]);
    git(&nested.at, ["switch", "-q", "main"]);
    nested.is_kept(&[named, "commits"]);
    git(&nested.at, ["fetch", "-q", ".", "work"]);
    nested.is_kept(&[named, "commits"]);
    git(&nested.at, ["push", "-q", "origin", "work"]);
    // Changes that git does not show.
    git(&nested.at, ["update-index", "--skip-worktree", "src/main.ts"]);
    write(&nested.at.join("src/main.ts"), "mine\n");
    nested.is_kept(&[named, "`src/main.ts`", "told to ignore"]);
    git(&nested.at, ["update-index", "--no-skip-worktree", "src/main.ts"]);
    git(&nested.at, ["commit", "-q", "--allow-empty", "-m", "more"]);
    git(&nested.at, ["push", "-q", "origin", "HEAD:more"]);
    // The change waits in git's own stash.
    git(&nested.at, ["-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "--autostash", "HEAD~1"]);
    nested.is_kept(&[named, "rebase"]);
    git(&nested.at, ["rebase", "--abort"]);
    nested.is_kept(&[named, "uncommitted changes"]);
    git(&nested.at, ["checkout", "-q", "."]);
    // Trash inside does not hold it back.
    let trash = nested.path.join("node_modules/.calve-trash-0-b-c-d");
    fs_err::create_dir_all(&trash).unwrap();
    write(&trash.join(".git"), "gitdir: /nonexistent/entry\n");
    nested.goes(&[]);
}

#[test]
fn a_nested_repository_that_nobody_else_knows_is_not_removed_unless_forced() {
    let nested = NestedFixture::new();
    let bare = nested.path.join("target/hidden/bare.git");
    repository(&nested.path.join("seed"));
    git(&nested.path, ["clone", "-q", "--bare", "seed", bare.to_str().unwrap()]);
    git(&bare, ["remote", "remove", "origin"]);
    // A tag is no proof that it exists elsewhere.
    git(&bare, ["tag", "v1"]);
    git(&bare, ["branch", "-q", "-D", "main"]);
    fs_err::remove_dir_all(nested.path.join("seed")).unwrap();
    nested.is_kept(&["target/hidden/bare.git", "commits"]);
    // Where all of it is content of the project, nothing is lost.
    git(&nested.path, ["add", "-f", "target/hidden/bare.git"]);
    git(&nested.path, ["commit", "-q", "-m", "a repository as content"]);
    // A mirror has nothing of its own.
    let mirror = nested.path.join("target/mirror.git");
    git(&nested.at, ["commit", "-q", "--allow-empty", "-m", "on no other branch"]);
    nested.repo.git(["clone", "-q", "--mirror", nested.at.to_str().unwrap(), mirror.to_str().unwrap()]);
    fs_err::remove_dir_all(&nested.at).unwrap();
    // Without the way by which its references came, they may be anything.
    git(&mirror, ["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    let ran = nested.repo.calve(["remove", "x"]).fails(1).says(&["push them, or move it away; `-f` discards them"]);
    ran.says(&["target/mirror.git", "commits"]).hints();
    git(&mirror, ["config", "remote.origin.fetch", "+refs/*:refs/*"]);
    nested.goes(&[]);
}

#[test]
fn a_registered_worktree_inside_of_another_is_not_removed_with_its_work() {
    let nested = NestedFixture::new();
    let inner = nested.path.join(".worktrees/inner");
    nested.repo.git(["worktree", "add", "-q", "-b", "inner", inner.to_str().unwrap()]);
    write(&inner.join("new"), "n\n");
    nested.is_kept(&[".worktrees/inner", "uncommitted changes"]);
    fs_err::remove_file(inner.join("new")).unwrap();
    nested.repo.git(["worktree", "lock", inner.to_str().unwrap()]);
    nested.is_kept(&[".worktrees/inner", "locked"]);
    nested.repo.git(["worktree", "unlock", inner.to_str().unwrap()]);
    git(&inner, ["checkout", "-q", "--detach"]);
    git(&inner, ["commit", "-q", "--allow-empty", "-m", "loose"]);
    nested.is_kept(&[".worktrees/inner", "commits"]);
    git(&inner, ["checkout", "-q", "inner"]);
    // One whose `.git` file is gone: the other files may be all that is left of a user's work.
    let pointer = fs_err::read(inner.join(".git")).unwrap();
    fs_err::remove_file(inner.join(".git")).unwrap();
    nested.is_kept(&[".worktrees/inner", "registered as another worktree"]);
    fs_err::write(inner.join(".git"), pointer).unwrap();
    // A repository in it that has a worktree elsewhere.
    let elsewhere = nested.repo.spot.join("elsewhere");
    git(&nested.at, ["worktree", "add", "-q", "--detach", elsewhere.to_str().unwrap()]);
    nested.is_kept(&["node_modules/own-work", "elsewhere"]);
    git(&nested.at, ["worktree", "remove", elsewhere.to_str().unwrap()]);
    // One whose repository cannot be asked.
    write(&nested.path.join("target/lost/.git"), "gitdir: /nonexistent/.git/worktrees/lost\n");
    nested.is_kept(&["target/lost", "is not there"]);
    fs_err::remove_dir_all(nested.path.join("target/lost")).unwrap();
    nested.is_kept(&[".worktrees/inner", "another worktree"]);
    nested.repo.calve(["remove", "-f", "inner"]).succeeds();
    nested.goes(&[]);
}

#[test]
fn a_nested_repository_runs_no_program_of_its_own() {
    let nested = NestedFixture::new();
    let (ran, at) = (nested.repo.spot.join("ran"), &nested.at);
    let touch = format!("touch {}", ran.display());
    git(at, ["config", "core.fsmonitor", &touch]);
    for driver in ["evil", "e=vil", "filter.evil.clean=x", ""] {
        write(&at.join(".git/info/attributes"), &format!("* filter={driver}\n"));
        for what in ["clean", "process", "smudge"] {
            git(at, ["config", &format!("filter.{driver}.{what}"), &touch]);
        }
        write(&at.join("src/main.ts"), &format!("changed {driver}\n"));
        nested.is_kept(&["node_modules/own-work", "uncommitted changes"]);
        assert!(!ran.exists(), "a program that the nested repository names was run: {driver:?}");
    }
    nested.goes(&["-f"]);
    assert!(!ran.exists(), "a program that the nested repository names was run");
}

#[test]
fn what_git_is_in_the_middle_of_or_does_not_look_at_is_not_lost() {
    let repo = Repo::anywhere();
    let path = repo.add(["x"]);
    git(&path, ["commit", "-q", "--allow-empty", "-m", "one more"]);
    write(&path.join("src/main.ts"), "changed\n");
    let rebase = ["-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "--autostash", "HEAD~1"];
    git(&path, rebase);
    is_clean(&path);
    repo.calve(["remove"]).arg(&path).fails(1).says(&["finish it, or abandon it with `", "rebase", "unfinished"]);
    git(&path, ["rebase", "--abort"]);
    repo.calve(["remove"]).arg(&path).fails(1).says(&["uncommitted changes"]).hints();
    git(&path, ["checkout", "-q", "."]);
    repo.calve(["remove", "x"]).succeeds();
    // Nor are changes that git was told not to look at.
    for how in ["--assume-unchanged", "--skip-worktree"] {
        let path = repo.add(["x"]);
        git(&path, ["update-index", how, "src/main.ts"]);
        write(&path.join("src/main.ts"), "changed\n");
        is_clean(&path);
        repo.calve(["remove", "x"]).fails(1).says(&["src/main.ts", how]).hints();
        git(&path, ["show", "HEAD:src/main.ts"]);
        write(&path.join("src/main.ts"), "export {}\n");
        repo.calve(["remove", "x"]).succeeds();
    }
}

#[test]
fn what_only_the_entry_of_a_worktree_has_is_not_forgotten() {
    let repo = Repo::anywhere();
    let (staged, loose, plain) = (repo.add(["staged"]), repo.add(["loose"]), repo.add(["plain"]));
    write(&staged.join("new"), "n\n");
    git(&staged, ["add", "new"]);
    git(&loose, ["checkout", "-q", "--detach"]);
    git(&loose, ["commit", "-q", "--allow-empty", "-m", "loose"]);
    for path in [&staged, &loose, &plain] {
        fs_err::remove_dir_all(path).unwrap();
    }
    let receipt =
        repo.calve(["prune", "--json"]).succeeds().says(&["kept", "proj.staged", "proj.loose", "git worktree prune"]);
    assert_eq!(receipt.json()["forgotten"], serde_json::json!([plain.to_str().unwrap()]));
    assert_eq!(receipt.json()["kept"].as_array().unwrap().len(), 2);
    repo.calve(["remove", "staged"]).fails(1).says(&["if you moved the worktree, run `git worktree repair NEW-PATH`; otherwise `git fsck --lost-found` in the repository finds what it had, and then `calve worktree remove -f` or `git worktree prune` forgets it", "staged"]);
    repo.calve(["remove", "-f", "staged"]).succeeds();
    repo.calve(["remove", "loose"]).run();
    assert!(try_git(&repo.path, ["worktree", "prune"]).status.success());
    assert_eq!(repo.worktrees().len(), 1);
}

/// What happens to the repository in the new worktree, or to the one that it was copied from; and whether the new worktree may go.
#[test]
fn a_nested_repository_that_the_donor_keeps_does_not_hold_its_copy_back() {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "inner/\nnode_modules/\n/target/\n.env\n");
    repo.commit("ignore");
    let donor = repo.join("inner");
    repository(&donor);
    git(&donor, ["tag", "first"]);
    git(&donor, ["commit", "-q", "--allow-empty", "-m", "two"]);
    let commit = |at: &Path| drop(git(at, ["commit", "-q", "--allow-empty", "-m", "only in the copy"]));
    type Change<'c> = &'c dyn Fn(&Path, &Path);
    let cases: [(&str, Change<'_>); 12] = [
        ("", &|_, _| {}),
        ("", &|_, donor| drop(git(donor, ["commit", "-q", "--allow-empty", "-m", "the donor goes on"]))),
        ("", &|copy, _| drop(git(copy, ["switch", "-q", "-c", "older", "first"]))),
        ("commits", &|copy, _| commit(copy)),
        ("commits", &|copy, _| drop(git(copy, ["tag", "-a", "-m", "only in the copy", "mine"]))),
        ("commits", &|copy, _| {
            commit(copy);
            git(copy, ["reset", "-q", "--hard", "HEAD~1"]);
        }),
        ("commits", &|copy, _| {
            write(&copy.join("file"), "stashed\n");
            git(copy, ["stash", "-q"]);
        }),
        ("uncommitted changes", &|copy, _| write(&copy.join("file"), "changed\n")),
        ("commits", &|_, donor| fs_err::remove_dir_all(donor).unwrap()),
        // Only a reflog leads there any more.
        ("commits", &|_, donor| drop(git(donor, ["reset", "-q", "--hard", "first"]))),
        ("commits", &|copy, donor| {
            fs_err::remove_dir_all(donor.join(".git/objects")).unwrap();
            fs_err::os::unix::fs::symlink(copy.join(".git/objects"), donor.join(".git/objects")).unwrap();
        }),
        ("commits", &|copy, donor| {
            let objects = format!("{}\n", copy.join(".git/objects").display());
            for loose in git(donor, ["rev-list", "--objects", "--no-object-names", "--all"]).lines() {
                fs_err::remove_file(donor.join(format!(".git/objects/{}/{}", &loose[..2], &loose[2..]))).unwrap();
            }
            fs_err::write(donor.join(".git/objects/info/alternates"), objects).unwrap();
        }),
    ];
    let kept = repo.spot.join("kept");
    copy(&donor, &kept);
    for (at, (words, change)) in cases.iter().enumerate() {
        let path = repo.add([format!("x{at}")]);
        change(&path.join("inner"), &donor);
        match words.is_empty() {
            true => drop(repo.calve(["remove"]).arg(&path).succeeds()),
            false => {
                repo.calve(["remove"]).arg(&path).fails(1).says(&["`inner`", words]).hints();
                repo.calve(["remove", "-f"]).arg(&path).succeeds();
            }
        }
        assert!(!path.exists());
        let _ = fs_err::remove_dir_all(&donor);
        copy(&kept, &donor);
    }
    // Those are named that the donor does not have.
    let path = repo.add(["named"]);
    let inner = path.join("inner");
    commit(&inner);
    let own = git(&inner, ["rev-parse", "HEAD"]);
    git(&inner, ["reset", "-q", "--hard", "HEAD~1"]);
    repo.calve(["remove"]).arg(&path).fails(1).says(&[&format!("on none of its remotes ({})", &own[..12])]);
    repo.calve(["remove", "-f"]).arg(&path).succeeds();
    // A shallow donor lacks what its commits came from; another worktree has it all, and one inside goes along.
    let path = repo.add(["deep"]);
    let shallow = format!("file://{}", kept.display());
    fs_err::remove_dir_all(&donor).unwrap();
    repo.git(["clone", "-q", "--depth=1", &shallow, donor.to_str().unwrap()]);
    repo.calve(["remove"]).arg(&path).fails(1).says(&["`inner`", "commits"]).hints();
    let inside = repo.add(["inside", "--from", "deep", "--path", path.join("node_modules/inside").to_str().unwrap()]);
    repo.calve(["remove"]).arg(&path).fails(1).says(&["inner", "commits"]).hints();
    repo.calve(["remove", "-f"]).arg(&inside).succeeds();
    let other = repo.add(["other", "--from", "deep"]);
    repo.calve(["remove"]).arg(&path).succeeds();
    assert!(other.join("inner/.git").exists() && !path.exists());
    eventually_nothing_left(&repo.spot);
}

fn commit(at: &Path) {
    git(at, ["commit", "-q", "--allow-empty", "-m", "own"]);
}

type InnerChange<'a> = &'a dyn Fn(&Path);

/// A repository that ignores `inner`, and one to be cloned to there: it has a tag of a release whose branch is gone.
fn with_remote() -> (Repo, PathBuf) {
    let repo = Repo::anywhere();
    repo.write(".gitignore", "inner/\n");
    repo.commit("ignore");
    let remote = repo.spot.join("remote");
    repository(&remote);
    detached(&remote);
    git(&remote, ["tag", "released"]);
    git(&remote, ["checkout", "-q", "main"]);
    (repo, remote)
}

/// Adds a worktree with a changed clone in it.
fn with_inner(repo: &Repo, remote: &Path, name: usize, change: InnerChange<'_>) -> PathBuf {
    let path = repo.add([format!("x{name}")]);
    let inner = path.join("inner");
    repo.git(["clone", "-q", remote.to_str().unwrap(), inner.to_str().unwrap()]);
    change(&inner);
    path
}

/// Makes a commit that no branch has.
fn detached(at: &Path) {
    git(at, ["checkout", "-q", "--detach"]);
    commit(at);
}

#[test]
fn commits_of_a_repository_inside_that_only_a_tag_or_a_log_has_are_kept() {
    let (repo, remote) = with_remote();
    let only_here: [InnerChange<'_>; 5] = [
        &|inner| {
            detached(inner);
            git(inner, ["tag", "own"]);
            git(inner, ["checkout", "-q", "main"]);
        },
        &|inner| {
            detached(inner);
            git(inner, ["tag", "-a", "-m", "own", "own"]);
            git(inner, ["checkout", "-q", "released"]);
        },
        &|inner| {
            detached(inner);
            git(inner, ["checkout", "-q", "main"]);
        },
        &|inner| {
            git(inner, ["checkout", "-q", "-b", "own"]);
            commit(inner);
            git(inner, ["checkout", "-q", "main"]);
            git(inner, ["branch", "-q", "-D", "own"]);
        },
        &|inner| {
            commit(inner);
            git(inner, ["reset", "-q", "--hard", "HEAD~1"]);
        },
    ];
    for (at, one) in only_here.into_iter().enumerate() {
        let path = with_inner(&repo, &remote, at, one);
        repo.calve(["remove"]).arg(&path).fails(1).says(&["`inner`", "on none of its remotes"]).hints();
        repo.calve(["remove", "-f"]).arg(&path).succeeds();
    }
    eventually_nothing_left(&repo.spot);
}

#[test]
fn commits_of_a_repository_inside_that_a_remote_has_or_that_were_made_anew_go() {
    let (repo, remote) = with_remote();
    let push = |inner: &Path| drop(git(inner, ["push", "-q", "-f", "origin", "HEAD:refs/heads/own"]));
    let elsewhere: [InnerChange<'_>; 5] = [
        &|inner| drop(git(inner, ["checkout", "-q", "released"])),
        &|inner| {
            detached(inner);
            git(inner, ["tag", "own"]);
            push(inner);
            git(inner, ["checkout", "-q", "main"]);
        },
        &|inner| {
            commit(inner);
            git(inner, ["commit", "-q", "--amend", "--allow-empty", "-m", "better"]);
            push(inner);
        },
        &|inner| {
            commit(inner);
            commit(&remote);
            git(inner, ["pull", "-q", "--rebase", "origin", "main"]);
            push(inner);
        },
        &|inner| {
            git(inner, ["checkout", "-q", "-b", "gone", "HEAD~1"]);
            git(inner, ["merge", "-q", "--ff-only", "origin/main"]);
            git(inner, ["checkout", "-q", "--detach", "HEAD~1"]);
            git(inner, ["branch", "-q", "-D", "gone"]);
            git(inner, ["update-ref", "-d", "refs/remotes/origin/main"]);
            git(inner, ["symbolic-ref", "-d", "refs/remotes/origin/HEAD"]);
            git(inner, ["update-ref", "refs/remotes/origin/old", "HEAD"]);
            git(inner, ["update-ref", "-d", "refs/heads/main"]);
        },
    ];
    for (at, one) in elsewhere.into_iter().enumerate() {
        let path = with_inner(&repo, &remote, at, one);
        repo.calve(["remove"]).arg(&path).succeeds();
        assert!(!path.exists());
    }
    eventually_nothing_left(&repo.spot);
}
