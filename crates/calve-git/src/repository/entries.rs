//! git's own directories of linked worktrees (`worktrees/ID`).

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::paths::{path_of, plain};

/// The file in an entry that names the worktree's `.git`. git lists what has one.
pub(crate) const GITDIR: &str = "gitdir";

/// Lists the entries that git lists, each with the root of its worktree.
pub(crate) fn by_worktree(common: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let mut found = Vec::new();
    for directory in all(common)? {
        found.extend(worktree_of(&directory).map(|worktree| (worktree, directory)));
    }
    Ok(found)
}

/// Returns the root of the worktree that an entry names; `None` if it names none.
pub(crate) fn worktree_of(entry: &Path) -> Option<PathBuf> {
    let text = fs_err::read(entry.join(GITDIR)).ok()?;
    // Relative to the entry, where git is told to write it so.
    let pointer = plain(&entry.join(path_of(text.trim_ascii_end())));
    pointer.parent().map(Path::to_path_buf)
}

/// Lists every directory in which an entry is or may be.
pub(crate) fn all(common: &Path) -> Result<Vec<PathBuf>> {
    match fs_err::read_dir(common.join("worktrees")) {
        Ok(all) => Ok(all.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
