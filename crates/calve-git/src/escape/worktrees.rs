//! Which worktrees a repository has.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::git::Git;

use super::entry::path_of;

/// The worktree that a path is in, and its repository's others, the main one first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Worktrees {
    /// The root of the worktree.
    pub this: PathBuf,
    /// The roots of the others, be they there or gone.
    pub others: Vec<PathBuf>,
}

/// Asks git which worktree `path` is in, and which others there are.
pub fn worktrees_of(path: &Path) -> Result<Worktrees> {
    let git = Git::at(path);
    let this = PathBuf::from(git.line(&["rev-parse", "--show-toplevel"])?);
    let listed = git.run(&["worktree", "list", "--porcelain", "-z"])?;
    let mut others: Vec<PathBuf> = Vec::new();
    for line in listed.split(|&byte| byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            others.push(path_of(path));
        } else if line == b"bare" {
            // A bare repository stands in its own list, and is no worktree.
            others.pop();
        }
    }
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let own = real(&this);
    others.retain(|path| real(path) != own);
    Ok(Worktrees { this, others })
}
