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
    /// It was tried, or cannot be tried: also a command of the project that has failed.
    #[error("{text}")]
    Failed { text: String, remedy: Remedy },
    /// It may not be done.
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

    /// Returns whether it is about data of services that is there, and whose record cannot be read.
    pub(crate) fn is_damaged_record(&self) -> bool {
        matches!(self, Self::Db(calve_db::Error::RecordDamaged(_)))
    }
}
