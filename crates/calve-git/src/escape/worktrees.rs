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

/// The worktree that has a branch checked out, if one of the repository's has, and is there.
pub fn checked_out(path: &Path, branch: &str) -> Result<Option<PathBuf>> {
    let listed = Git::at(path).run(&["worktree", "list", "--porcelain", "-z"])?;
    let wanted = [b"branch refs/heads/", branch.as_bytes()].concat();
    let mut at = None;
    for line in listed.split(|&byte| byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            at = Some(path_of(path));
        } else if line == wanted {
            return Ok(at.filter(|path| path.is_dir()));
        }
    }
    Ok(None)
}
