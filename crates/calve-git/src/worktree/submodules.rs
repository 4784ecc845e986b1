//! What a worktree's submodules have that nobody else has.
//!
//! git keeps the repositories of a linked worktree's submodules in the worktree's entry (gitrepository-layout(5), `modules`), and they
//! go with it. git refuses to remove any worktree with submodules; here it is looked whether something would be lost.

use std::path::{Path, PathBuf};

use calve_core::Shown;

use super::index::{GITLINK, Index};
use super::register::entries_by_worktree;
use super::repository::{Repository, Worktree, path_of};
use crate::error::{Error, Result};
use crate::git::Git;

/// Refuses where a submodule has commits that none of its remotes has.
pub(super) fn check_kept(repository: &Repository, worktree: &Worktree) -> Result<()> {
    let entries = entries_by_worktree(&repository.common)?;
    let Some((_, entry)) = entries.into_iter().find(|(path, _)| *path == worktree.path) else { return Ok(()) };
    let mut found = Vec::new();
    let modules = entry.join("modules");
    collect(&modules, &modules, &mut found)?;
    for submodule in Index::read(&entry.join("index"), repository.hash_bytes())?.entries {
        // A repository that nobody has moved out of the way (`git submodule absorbgitdirs`).
        let path = path_of(&submodule.path);
        let inside = worktree.path.join(&path).join(".git");
        if submodule.mode == GITLINK && inside.is_dir() {
            found.push((path, inside));
        }
    }
    for (name, repository) in found {
        if let Some(commit) = only_here(&repository)? {
            return Err(Error::refused(
                format!(
                    "the submodule `{}` of the worktree `{}` has commits that none of its remotes has (first: {})",
                    Shown(&name),
                    Shown(&worktree.path),
                    &commit[..commit.len().min(12)]
                ),
                "push them, or pass `-f` to lose them",
            ));
        }
    }
    Ok(())
}

/// The repositories below a directory, each with its name. A name may have slashes in it, and a submodule has submodules.
fn collect(all: &Path, directory: &Path, found: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    let entries = match fs_err::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if !fs_err::symlink_metadata(&path)?.is_dir() {
            continue;
        }
        if path.join("HEAD").exists() {
            found.push((path.strip_prefix(all).unwrap_or(&path).to_path_buf(), path.clone()));
            collect(all, &path.join("modules"), found)?;
        } else {
            collect(all, &path, found)?;
        }
    }
    Ok(())
}

/// A commit of a branch, of HEAD or of the stash that no remote had when it was last asked.
fn only_here(repository: &Path) -> Result<Option<String>> {
    let git = Git::at(repository).with("GIT_DIR", repository);
    let mut arguments = ["rev-list", "--max-count=1", "--ignore-missing", "HEAD", "--branches", "--glob=refs/stas[h]"]
        .map(str::to_owned)
        .to_vec();
    arguments.extend(["--not", "--remotes", "--tags"].map(str::to_owned));
    // A commit that was fetched by its name, for which a remote has no branch: without `^`, it is excluded like those before it.
    let fetched = fs_err::read_to_string(repository.join("FETCH_HEAD")).unwrap_or_default();
    let is_oid = |word: &&str| word.len() >= 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    arguments
        .extend(fetched.lines().filter_map(|line| line.split_whitespace().next()).filter(is_oid).map(str::to_owned));
    let first = git.run(&arguments)?;
    Ok(Some(String::from_utf8_lossy(&first).trim().to_owned()).filter(|commit| !commit.is_empty()))
}
