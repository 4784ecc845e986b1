//! Why a command does not get a private copy of a directory.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::Shown;
use crate::remedy::Remedy;

/// Why a command does not run in a private copy of a directory. It has not been started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// Something is mounted in the directory, which an overlay would hide.
    #[error("something is mounted at `{}`, which the command would not see", Shown(.0))]
    MountBelow(PathBuf),
    /// The changes would be kept in the directory itself, in this place.
    #[error("the changes would be kept in the directory itself, in `{}`", Shown(.0))]
    ChangesInside(PathBuf),
    /// The system refuses namespaces to this user.
    #[error("the system lets this user have no namespaces: {0}")]
    NoNamespaces(#[source] io::Error),
    /// The overlay could not be mounted.
    #[error("cannot mount an overlay of `{}`: {source}", Shown(.tree))]
    NoOverlay {
        /// The directory.
        tree: PathBuf,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
    /// The command itself could not be started.
    #[error("cannot run `{}`: {source}", Shown(Path::new(.program)))]
    NotStarted {
        /// The first word of the command.
        program: OsString,
        /// The operating system's reason.
        #[source]
        source: io::Error,
    },
}

impl PrivateError {
    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::MountBelow(mount) => Remedy::Unmount(mount.clone()),
            Self::NoNamespaces(_) => Remedy::AllowNamespaces,
            Self::ChangesInside(_) | Self::NoOverlay { .. } => Remedy::KeepChangesElsewhere,
            Self::NotStarted { .. } => Remedy::CheckCommand,
        }
    }
}
