//! Linked git worktrees, recognised without git.

use std::path::{Path, PathBuf};

/// Returns the repository of the linked worktree at `path`; `None` when `path` is none.
///
/// `.git` is a file there, which names a directory that keeps the worktree's index and HEAD; in that one, `commondir` names the
/// repository (gitrepository-layout(5)).
pub(crate) fn repository_of(path: &Path) -> Option<PathBuf> {
    let pointer = path.join(".git");
    // A FIFO would be waited for.
    fs_err::symlink_metadata(&pointer).ok().filter(|found| found.is_file() && found.len() < 1 << 16)?;
    let text = fs_err::read_to_string(pointer).ok()?;
    let own = path.join(text.trim_end().strip_prefix("gitdir: ")?);
    let common = fs_err::read_to_string(own.join("commondir")).ok()?;
    fs_err::canonicalize(own.join(common.trim_end())).ok()
}
