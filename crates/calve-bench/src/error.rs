use std::io;

use thiserror::Error;

use crate::remedy::Remedy;

/// Failure of a bench. Failures of the programs that it measures are in its report instead.
#[derive(Debug, Error)]
pub enum BenchError {
    #[error(transparent)]
    Core(#[from] calve_core::Error),
    #[error(transparent)]
    Git(#[from] calve_git::Error),
    #[error(transparent)]
    Db(#[from] calve_db::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{text}")]
    Failed { text: String, remedy: Remedy },
    /// The arguments make no sense together.
    #[error("{text}")]
    Usage { text: String, remedy: Remedy },
}

impl BenchError {
    pub(crate) fn failed(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Failed { text: text.into(), remedy }
    }

    pub(crate) fn usage(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Usage { text: text.into(), remedy }
    }
}
