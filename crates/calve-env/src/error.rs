use std::io;

use crate::remedy::Remedy;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Git(#[from] calve_git::Error),
    #[error(transparent)]
    Db(#[from] calve_db::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Tried without success, or impossible to try; includes failed commands of the project.
    #[error("{text}")]
    Failed { text: String, remedy: Remedy },
    #[error("{text}")]
    Refused { text: String, remedy: Option<Remedy> },
}

impl Error {
    pub(crate) fn failed(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Failed { text: text.into(), remedy }
    }

    pub(crate) fn refused(text: impl Into<String>, remedy: Remedy) -> Self {
        Self::Refused { text: text.into(), remedy: Some(remedy) }
    }

    /// Returns whether the record of existing service data cannot be read.
    pub(crate) fn is_damaged_record(&self) -> bool {
        matches!(self, Self::Db(calve_db::Error::RecordDamaged(_)))
    }
}
