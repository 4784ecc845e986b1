use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::paths::real;
use crate::repository::status::WorktreeState::{Adrift, Gone, Intact, Unmounted};
use crate::repository::{Repository, asked};

#[derive(Debug, Clone)]
pub struct Worktrees {
    pub this: PathBuf,
    /// `None` for a bare repository.
    pub main: Option<PathBuf>,
    /// The roots of the others, present or gone. A place that has another tree by now is left out.
    pub others: Vec<PathBuf>,
}

pub fn worktrees_of(path: &Path) -> Result<Worktrees> {
    let this = asked(path, &["rev-parse", "--show-toplevel"])?;
    let own = real(&this);
    // A bare repository is in its own list, but is no worktree.
    let repository = Repository::open(path)?;
    let main = repository.main().map(Path::to_path_buf);
    let listed = repository.worktrees.into_iter().filter(|one| !one.is_bare);
    let known = listed.filter(|one| matches!(one.status, Intact | Gone | Unmounted { .. } | Adrift));
    let others = known.map(|one| one.path).filter(|path| real(path) != own).collect();
    Ok(Worktrees { this, main, others })
}
