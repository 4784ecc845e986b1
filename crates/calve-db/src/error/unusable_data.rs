//! Reasons why a data directory cannot be used.

use serde::{Deserialize, Serialize};

use crate::error::remedy::Remedy;

/// Why a data directory cannot be a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum UnusableData {
    /// It is not a data directory of the engine, or not all of one.
    #[error("{0}")]
    Incomplete(String),
    #[error("it was made by {made_by}, and the server is {server}")]
    OtherVersion { made_by: String, server: String },
    #[error("it is in use by the process {0}")]
    InUse(i64),
    /// One of Calve's, whose data goes with it.
    #[error("it is in use by the server `{0}`")]
    InUseByServer(String),
    #[error("its server was not shut down cleanly")]
    NotShutDown,
    /// Calve needs an object that the engine makes in every data directory, and that was renamed or dropped since.
    #[error("it has no {what}")]
    Lacks {
        what: String,
        /// The command that makes it, in the source's server.
        command: String,
    },
    #[error("{0}")]
    LeadsOut(String),
}

impl UnusableData {
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Incomplete(_) => Remedy::NameCompleteDirectory,
            Self::OtherVersion { .. } => Remedy::ChooseMatchingVersion,
            Self::InUseByServer(name) => Remedy::MarkServer(name.clone()),
            Self::InUse(_) | Self::NotShutDown => Remedy::ShutDownSource,
            Self::Lacks { command, .. } => Remedy::PrepareSource(command.clone()),
            Self::LeadsOut(_) => Remedy::CopyToOnePlace,
        }
    }
}
