use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::shown_path::ShownPath;
use crate::vocabulary::remedy::Remedy;

/// Why a command did not run in a private copy of a directory, or its changes were not applied.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    #[error("something is mounted at `{}`, which the command would not see", ShownPath(.0))]
    MountBelow(PathBuf),
    #[error("the changes would be kept in the directory itself, in `{}`", ShownPath(.0))]
    ChangesInside(PathBuf),
    #[error("this user may not create namespaces: {0}")]
    NoNamespaces(#[source] io::Error),
    #[error("cannot mount an overlay of `{}`: {source}", ShownPath(.tree))]
    NoOverlay { tree: PathBuf, source: io::Error },
    /// An entry that the command changed was changed in the directory, too.
    #[error("`{}` was changed while the command ran; nothing was applied", ShownPath(.0))]
    ChangedMeanwhile(PathBuf),
    #[error("the clock was set back while the command ran, so other changes in `{}` cannot be ruled out; nothing was applied", ShownPath(.0))]
    ClockSetBack(PathBuf),
    /// A process that the command left behind has changed the copy.
    #[error("the copy of `{}` has changed since the changes were listed; nothing was applied", ShownPath(.0))]
    ChangedSinceShown(PathBuf),
    #[error("cannot apply the change of `{}`: {source}; nothing was applied", ShownPath(.path))]
    NotApplied { path: PathBuf, source: io::Error },
    /// `kept` has the entries that were moved out, and those not yet moved in.
    #[error("some changes were applied and others were not: cannot undo the change to `{}`: {source}", ShownPath(.path))]
    HalfApplied { path: PathBuf, source: io::Error, kept: PathBuf },
    #[error("cannot run `{}`: {source}", ShownPath(Path::new(.program)))]
    NotStarted { program: OsString, source: io::Error },
}

impl PrivateError {
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::MountBelow(mount) => Remedy::Unmount(mount.clone()),
            Self::NoNamespaces(_) => Remedy::AllowNamespaces,
            Self::ChangesInside(_) | Self::NoOverlay { .. } => Remedy::KeepChangesElsewhere,
            Self::NotStarted { .. } => Remedy::CheckCommand,
            Self::ChangedSinceShown(_) => Remedy::EndLeftProcesses,
            Self::ChangedMeanwhile(_) | Self::ClockSetBack(_) | Self::NotApplied { .. } => Remedy::MergeChanges,
            Self::HalfApplied { kept, .. } => Remedy::PutBack(kept.clone()),
        }
    }
}
