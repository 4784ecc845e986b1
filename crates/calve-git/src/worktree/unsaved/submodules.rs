//! Commits and changes of a worktree's submodules that exist nowhere else.
//!
//! git keeps the repositories of a linked worktree's submodules in the worktree's entry (gitrepository-layout(5), `modules`), and they
//! go with it. git refuses to remove any worktree with submodules; here it is looked whether something would be lost.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::paths::{if_there, path_of};
use crate::repository::operation::unfinished;
use crate::repository::{Repository, Worktree};
use crate::unsaved_item::UnsavedItem;
use crate::worktree::tracked::index::{GITLINK, Index};
use crate::worktree::unsaved::unpushed::{careful, only_here};

/// Returns the unfinished operations of submodules, and their commits that none of their remotes has.
pub(super) fn find(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Vec<UnsavedItem>> {
    let mut found = Vec::new();
    let modules = entry.join("modules");
    collect(&modules, &modules, &mut found)?;
    for submodule in Index::read(&entry.join("index"), repository.hash_bytes())?.entries {
        // A repository that was not moved out of the way (`git submodule absorbgitdirs`).
        let path = path_of(&submodule.path);
        let inside = worktree.path.join(&path).join(".git");
        if submodule.mode == GITLINK && inside.is_dir() {
            found.push((path, inside));
        }
    }
    let mut items = Vec::new();
    for (name, repository) in found {
        items.extend(unfinished(&repository).map(|operation| UnsavedItem::Operation(operation).inside(&name)));
        let commit = only_here(&careful(&repository, &repository)?, &repository)?;
        items.extend(commit.map(|commits| UnsavedItem::Unpushed(commits).inside(&name)));
    }
    Ok(items)
}

/// Collects the repositories below a directory, each with its name. A name may have slashes in it, and a submodule has submodules.
fn collect(all: &Path, directory: &Path, found: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    for entry in if_there(fs_err::read_dir(directory))?.into_iter().flatten() {
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
