use std::path::PathBuf;
use std::time::SystemTime;

use calve_core::internal::ShownPath;

use crate::error::{Error, Result};
use crate::remedy::Remedy;
use crate::repository::standing::WorktreeState;
use crate::trust::Provenance;

/// A worktree, as `git worktree list` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Worktree {
    /// Its root; for a bare repository, the repository.
    pub path: PathBuf,
    pub head: Option<String>,
    /// Without `refs/heads/`; `None` if HEAD is detached.
    pub branch: Option<String>,
    /// The first of the list, which has the repository in it.
    pub is_main: bool,
    pub is_bare: bool,
    /// The reason of `git worktree lock`, which may be empty.
    pub locked: Option<String>,
    pub is_gone: bool,
    pub standing: WorktreeState,
    /// It lacks its ports and data: the command that makes it is still running, or was killed.
    pub is_unfinished: bool,
    pub provenance: Provenance,
    /// Its own files in the repository; `None` for the main one.
    pub(crate) entry: Option<PathBuf>,
}

impl Worktree {
    /// Returns whether it exists and has files.
    pub fn is_usable(&self) -> bool {
        !self.is_bare && self.standing == WorktreeState::Intact
    }

    pub fn problem(&self) -> Option<Error> {
        let unfinished =
            || Error::refused(format!("`{}` is unfinished", ShownPath(&self.path)), Remedy::FinishWorktree);
        self.standing.problem(&self.path).or_else(|| self.is_unfinished.then(unfinished))
    }

    pub(crate) fn check_unlocked(&self, remedy: Remedy) -> Result<()> {
        let Some(reason) = &self.locked else { return Ok(()) };
        let why = if reason.is_empty() { String::new() } else { format!(": {}", ShownPath(reason)) };
        Err(Error::refused(format!("the worktree `{}` is locked{why}", ShownPath(&self.path)), remedy))
    }

    /// Returns when git made it; `None` for the main one.
    pub(crate) fn made(&self) -> Option<SystemTime> {
        fs_err::metadata(self.entry.as_ref()?.join("commondir")).ok()?.modified().ok()
    }
}
