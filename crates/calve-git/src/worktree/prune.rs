//! `calve worktree prune`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::register::{self, entries_by_worktree, sweep};
use super::repository::Repository;
use super::target;
use crate::config::Config;
use crate::error::Result;

/// What was cleaned up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Worktrees whose directories are gone, and which git no longer lists.
    pub forgotten: Vec<PathBuf>,
    /// Hidden trees of runs that were killed.
    pub swept: Vec<PathBuf>,
    /// Directories that may have trash in them: work for [`calve_core::reap`].
    pub places: Vec<PathBuf>,
}

/// Makes git forget worktrees whose directories are gone, unless they are locked, and removes what killed runs have left.
pub fn prune(start: &Path) -> Result<Pruned> {
    let repository = Repository::open(start)?;
    let swept = sweep(&repository.common)?;
    let mut pruned = Pruned { swept: swept.trees, ..Pruned::default() };
    register::remove_broken(&repository.common)?;
    target::sweep_fetched(&repository.git())?;
    for (worktree, entry) in entries_by_worktree(&repository.common)? {
        let is_gone = matches!(fs_err::symlink_metadata(worktree.join(".git")), Err(error) if error.kind() == std::io::ErrorKind::NotFound);
        if is_gone && fs_err::symlink_metadata(entry.join("locked")).is_err() {
            register::remove(&entry)?;
            pruned.forgotten.push(worktree);
        }
    }
    let mut places: BTreeSet<PathBuf> =
        repository.worktrees.iter().filter_map(|worktree| Some(worktree.path.parent()?.to_path_buf())).collect();
    places.extend(swept.places);
    if let Some(here) = &repository.here {
        let usual = super::place::of_branch(&repository, &Config::load(here)?, "x");
        places.extend(usual.parent().map(Path::to_path_buf));
    }
    for place in places {
        if place.is_dir() {
            pruned.swept.extend(calve_core::sweep(&place)?);
            pruned.places.push(place);
        }
    }
    Ok(pruned)
}
