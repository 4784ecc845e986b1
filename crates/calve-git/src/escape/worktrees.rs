//! Which worktrees a repository has.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::paths::real;
use crate::repository::state::WorktreeState;
use crate::repository::{Repository, asked};

/// The worktree that a path is in, and its repository's others, the main one first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Worktrees {
    /// The root of the worktree.
    pub this: PathBuf,
    /// The roots of the others, be they there or gone. What is something else by now is not one.
    pub others: Vec<PathBuf>,
}

/// Returns the root of the main worktree of the repository that `path` is in; `None` if that is bare.
pub fn main_worktree(path: &Path) -> Result<Option<PathBuf>> {
    Ok(Repository::open(path)?.main().map(Path::to_path_buf))
}

/// Asks git which worktree `path` is in, and which others there are.
pub fn worktrees_of(path: &Path) -> Result<Worktrees> {
    let this = asked(path, &["rev-parse", "--show-toplevel"])?;
    let own = real(&this);
    // A bare repository stands in its own list, and is no worktree.
    let listed = Repository::open(path)?.worktrees.into_iter().filter(|one| !one.is_bare);
    let known = listed
        .filter(|one| matches!(one.standing, WorktreeState::Intact | WorktreeState::Gone | WorktreeState::Adrift));
    let others = known.map(|one| one.path).filter(|path| real(path) != own).collect();
    Ok(Worktrees { this, others })
}
