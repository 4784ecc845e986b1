//! Trash does not show in `git status`, and the file that hides it is Calve's own.

use std::path::Path;

use calve_core::RemoveOptions;
use calve_testkit::{Tree, fingerprint, git, require_program};
use fs_err as fs;

use super::{reap_in, remove};
use crate::cloning::{assert_holds, names_in};

fn status(repository: &Path) -> String {
    git(repository, ["status", "--porcelain", "--untracked-files=all"])
}

fn repository() -> Option<(tempfile::TempDir, std::path::PathBuf)> {
    if !require_program("git") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    fs::create_dir(&repository).unwrap();
    git(&repository, ["init", "-q"]);
    fs::write(repository.join("kept"), "1").unwrap();
    git(&repository, ["add", "kept"]);
    git(&repository, ["commit", "-q", "-m", "first"]);
    Some((folder, repository))
}

#[test]
fn a_removed_tree_does_not_show_nor_its_lock_when_only_that_is_left() {
    let Some((_folder, repository)) = repository() else { return };
    Tree::new(repository.join("build")).file("a/b", "1").file("c", "2");
    let trashed = remove(repository.join("build"), &RemoveOptions::default()).trashed.unwrap();
    assert!(names_in(&repository).iter().any(|name| name.starts_with(".calve-trash-")));
    assert_eq!(status(&repository), "");
    fs::remove_dir_all(repository.join(&trashed.name)).unwrap();
    assert!(names_in(&repository).iter().any(|name| name.ends_with(".lock")));
    assert_eq!(status(&repository), "");
}

/// In a new snapshot of btrfs, the first changes take longer than all the rest of a removal.
#[test]
fn outside_of_repositories_nothing_is_hidden_from_git() {
    let folder = tempfile::tempdir().unwrap();
    let has_repository = folder.path().ancestors().any(|above| above.join(".git").exists());
    Tree::new(folder.path().join("build")).file("a", "1").dir(".git");
    let trashed = remove(folder.path().join("build"), &RemoveOptions::default()).trashed.unwrap();
    let names = names_in(folder.path().join(trashed.name));
    assert_eq!(names == [".git", "a"], !has_repository, "{names:?}");
}

#[test]
fn nor_does_a_removed_repository_or_worktree() {
    let Some((_folder, repository)) = repository() else { return };
    let inner = repository.join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, ["init", "-q"]);
    fs::write(inner.join("file"), "1").unwrap();
    git(&inner, ["add", "."]);
    git(&inner, ["commit", "-q", "-m", "inner"]);
    git(&repository, ["worktree", "add", "-q", "linked"]);
    for name in ["inner", "linked"] {
        assert_ne!(status(&repository), "", "{name} shows before");
        remove(repository.join(name), &RemoveOptions::default());
    }
    assert_eq!(status(&repository), "");
    reap_in(&repository);
    assert_holds(&repository, &[".git", "kept"]);
}

#[test]
fn an_ignore_file_with_another_name_elsewhere_is_not_written_to() {
    let Some((_folder, repository)) = repository() else { return };
    Tree::new(&repository)
        .file(".git/info/kept", "!important\n")
        .hard_link("build/.gitignore", ".git/info/kept")
        .file("build/important", "1")
        .symlink("other/.gitignore", "../kept")
        .file("other/file", "1")
        .file("read-only/.gitignore", "!file\n")
        .file("read-only/file", "1")
        .mode("read-only", 0o500);
    let inode = |path: &str| rustix::fs::lstat(repository.join(path)).unwrap().st_ino;
    let (kept, other) = (inode(".git/info/kept"), fs::read(repository.join("kept")).unwrap());
    for name in ["build", "other", "read-only"] {
        remove(repository.join(name), &RemoveOptions::default());
    }
    assert_eq!(fs::read_to_string(repository.join(".git/info/kept")).unwrap(), "!important\n");
    assert_eq!((inode(".git/info/kept"), fs::read(repository.join("kept")).unwrap()), (kept, other));
    assert_eq!(status(&repository), "");
    let before = fingerprint(repository.join("kept").parent().unwrap().join(".git/info"));
    reap_in(&repository);
    assert_eq!(fs::read_to_string(repository.join(".git/info/kept")).unwrap(), "!important\n");
    // One name less is the only change.
    let changes = before.changes(&fingerprint(repository.join(".git/info")));
    assert!(changes.iter().all(|change| change.contains("kept")), "{changes:?}");
    assert_holds(&repository, &[".git", "kept"]);
}
