//! Errors of a bench: what went wrong, what to do next, and whose fault it is.

use std::io;

use thiserror::Error;

use crate::remedy::Remedy;

/// The kind of failure of a [`BenchError::Stated`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Something did not work.
    Failed,
    /// The arguments make no sense together.
    Usage,
    /// A stated requirement cannot be met here.
    Refused,
}

/// Why a bench could not be run. Failures of the programs that it measures are in its report instead.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Core(#[from] calve_core::Error),
    #[error(transparent)]
    Git(#[from] calve_git::Error),
    #[error(transparent)]
    Db(#[from] calve_db::Error),
    /// An I/O error of the bench itself.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Any other error of the bench itself.
    #[error("{text}")]
    Stated { kind: FailureKind, text: String, remedy: Remedy },
}

impl BenchError {
    /// Returns an error of the bench itself.
    pub fn stated(kind: FailureKind, text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Stated { kind, text: text.into(), remedy }
    }
}
