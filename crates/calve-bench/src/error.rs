//! Errors of a bench: what went wrong, what to do next, and whose fault it is.

use std::io;

use thiserror::Error;

/// What kind of failure a [`BenchError::Stated`] is.
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
    /// Of the engine.
    #[error(transparent)]
    Core(#[from] calve_core::Error),
    /// Of git.
    #[error(transparent)]
    Git(#[from] calve_git::Error),
    /// Of a database server.
    #[error(transparent)]
    Db(#[from] calve_db::Error),
    /// Of the bench's own reading and writing.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Of the bench itself, with what to do next.
    #[error("{text}")]
    Stated {
        /// What kind.
        kind: FailureKind,
        /// What went wrong.
        text: String,
        /// What to do next.
        hint: String,
    },
}

impl BenchError {
    /// Returns an error of the bench itself.
    pub fn stated(kind: FailureKind, text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Stated { kind, text: text.into(), hint: hint.into() }
    }
}
