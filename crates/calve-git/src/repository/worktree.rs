use std::path::PathBuf;
use std::time::SystemTime;

use calve_core::internal::ShownPath;
use calve_core::internal::json::{As, ReceiptPath, Text};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::remedy::Remedy;
use crate::repository::status::WorktreeState;
use crate::trust::Provenance;

/// A worktree, as `git worktree list` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Worktree {
    /// The root of the worktree. Of a bare repository, the repository.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The branch. Null if HEAD is detached.
    // Without `refs/heads/`.
    pub branch: Option<String>,
    /// The commit. Null if there is none yet.
    pub head: Option<String>,
    /// True for the main worktree.
    #[serde(rename = "main")]
    pub is_main: bool,
    /// True for a bare repository.
    #[serde(rename = "bare")]
    pub is_bare: bool,
    /// The coding agent that it was made for, or that made it. Absent if that is nobody known.
    // Only `worktree::list` looks it up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maker: Option<String>,
    /// True for the worktree that contains the current directory.
    #[serde(rename = "current")]
    pub is_here: bool,
    /// Why the worktree is locked, which may be empty. Null if it is not locked.
    pub locked: Option<String>,
    /// True if the directory is gone.
    #[serde(rename = "gone")]
    pub is_gone: bool,
    /// True if the worktree is a pull request's and not trusted.
    #[serde(rename = "untrusted", with = "As::<bool>")]
    pub provenance: Provenance,
    /// Whether the directory at the path is the worktree: `intact` if it is.
    #[serde(rename = "standing", with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = <WorktreeState as strum::VariantNames>::VARIANTS)))]
    pub status: WorktreeState,
    /// It lacks its ports and data: the command that makes it is still running, or was killed.
    #[serde(skip)]
    pub is_unfinished: bool,
    /// Its own files in the repository; `None` for the main one.
    #[serde(skip)]
    pub(crate) entry: Option<PathBuf>,
}

impl Worktree {
    /// Returns whether it exists and has files.
    pub fn is_usable(&self) -> bool {
        !self.is_bare && self.status == WorktreeState::Intact
    }

    pub fn problem(&self) -> Option<Error> {
        let unfinished =
            || Error::refused(format!("`{}` is unfinished", ShownPath(&self.path)), Remedy::FinishWorktree);
        self.status.problem(&self.path).or_else(|| self.is_unfinished.then(unfinished))
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
