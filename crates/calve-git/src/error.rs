use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use rustix::io::Errno;

use crate::redact;
use crate::remedy::Remedy;
use crate::transfer_failure::TransferFailure;
use crate::unsaved_item::{self, UnsavedItem};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PATH has no git, or git's interpreter is missing.
    #[error("cannot run git: {0}")]
    NoGit(io::Error),
    #[error("cannot start git in `{}`: {source}", ShownPath(directory))]
    Start { directory: PathBuf, source: io::Error },
    #[error("{} failed in `{}`: {said}", redact::git_command(arguments), ShownPath(directory))]
    Git {
        arguments: Vec<OsString>,
        directory: PathBuf,
        /// `None` if a signal ended it.
        code: Option<i32>,
        /// `None` if git had no connection.
        failure: Option<TransferFailure>,
        said: String,
    },
    #[error("`{}`, line {line}, column {column}: {reason}", ShownPath(path))]
    Config {
        path: PathBuf,
        line: usize,
        /// In characters, from 1.
        column: usize,
        reason: String,
    },
    /// The request makes no sense here, or would do harm. Nothing was made.
    #[error("{reason}")]
    Refused {
        /// In lower case, without a full stop.
        reason: String,
        remedy: Remedy,
    },
    /// Removing the worktree would lose something that exists nowhere else. Nothing was done.
    #[error("the worktree `{}` has {}", ShownPath(path), unsaved_item::all_of(items))]
    Unsaved {
        /// The worktree, or its entry if git does not list it.
        path: PathBuf,
        /// Its directory is gone, or something else is there.
        is_gone: bool,
        items: Vec<UnsavedItem>,
    },
    /// The caller cancelled. Nothing is left behind.
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Clone(calve_core::Error),
}

impl From<calve_core::Error> for Error {
    fn from(error: calve_core::Error) -> Error {
        match error {
            calve_core::Error::Interrupted => Error::Interrupted,
            // Another worktree may have been made there since the path was checked.
            calve_core::Error::DestinationExists(_) => Error::refused(error.to_string(), Remedy::ChooseAnotherPath),
            other => Error::Clone(other),
        }
    }
}

impl Error {
    /// Returns the function that makes the error when git cannot start in a directory, which may be missing.
    pub fn start(directory: &Path) -> impl Fn(io::Error) -> Error + Copy {
        move |source| match directory.is_dir() {
            true if source.kind() == io::ErrorKind::NotFound => Error::NoGit(source),
            true => Error::Start { directory: directory.to_path_buf(), source },
            false => Error::refused(format!("there is no directory `{}`", ShownPath(directory)), Remedy::CorrectPath),
        }
    }

    pub(crate) fn refused(reason: impl Into<String>, remedy: Remedy) -> Error {
        Error::Refused { reason: reason.into(), remedy }
    }

    /// Replaces the path of a staged tree by the one that it was made for.
    pub(crate) fn of_staged(mut self, staged: &Path, path: &Path) -> Error {
        if let Error::Git { directory, .. } = &mut self
            && *directory == *staged
        {
            *directory = path.to_path_buf();
        }
        self
    }

    /// Returns the user's next step. An interruption needs none, and the clone engine's errors have their own remedies.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Error::NoGit(_) => Some(Remedy::InstallGit),
            Error::Start { source, .. } | Error::Io(source)
                if matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE)) =>
            {
                Some(Remedy::RaiseOpenFiles)
            }
            Error::Start { .. } => Some(Remedy::CheckPath),
            Error::Git { directory, .. } if !directory.exists() => Some(Remedy::ReadGitMessage),
            Error::Git { .. } => Some(Remedy::RunGitCommand),
            Error::Config { .. } => Some(Remedy::CorrectConfig),
            Error::Refused { remedy, .. } => Some(remedy.clone()),
            Error::Unsaved { is_gone: true, items, .. } => Some(unsaved_item::remedy_of_gone(items)),
            Error::Unsaved { items, .. } => Some(unsaved_item::remedy_of(items)),
            Error::Io(_) => Some(Remedy::CheckPath),
            Error::Clone(_) | Error::Interrupted => None,
        }
    }
}

/// Adds the failed operation, such as "failed to open", and the path to a system error.
pub(crate) fn failed(operation: &str, path: &Path, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{operation} `{}`: {error}", ShownPath(path)))
}
