use std::ffi::OsStr;
use std::path::PathBuf;

use calve_core::internal::ShownPath;

use crate::error::Error;
use crate::redact;
use crate::remedy::Remedy;
use crate::remote::clone::purpose::Property;
use crate::transfer_failure::TransferFailure;

/// The failure of a clone or a fetch. No message holds credentials.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The arguments make no sense, or not with this repository.
    #[error("{reason}")]
    Usage { reason: String, remedy: Remedy },
    /// A required property does not hold. Nothing was made.
    #[error("{reason}")]
    Refused { reason: String, remedy: Remedy },
    #[error("`{}` exists and is not an empty directory", ShownPath(.0))]
    NotEmpty(PathBuf),
    #[error("{what} failed: {said}")]
    Git { what: String, trouble: TransferFailure, said: String },
    #[error("interrupted")]
    Interrupted,
    #[error("{}", redact::prose(&.0.to_string()))]
    Other(Error),
}

impl From<Error> for RemoteError {
    fn from(error: Error) -> Self {
        match error {
            Error::Clone(error) => error.into(),
            error => Self::Other(error),
        }
    }
}

impl From<calve_core::Error> for RemoteError {
    fn from(error: calve_core::Error) -> Self {
        match error {
            calve_core::Error::DestinationExists(path) => Self::NotEmpty(path),
            calve_core::Error::Interrupted => Self::Interrupted,
            error => Self::Other(Error::Clone(error)),
        }
    }
}

impl From<std::io::Error> for RemoteError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(Error::Io(error))
    }
}

impl RemoteError {
    pub(crate) fn url(given: &OsStr, why: &str) -> Self {
        let reason = format!("`{}` is not a repository to clone: {why}", redact::url(given));
        Self::Usage { reason, remedy: Remedy::GiveUrl }
    }

    pub(crate) fn senseless(reason: impl Into<String>) -> Self {
        Self::Usage { reason: reason.into(), remedy: Remedy::ReadHelp }
    }

    pub(crate) fn refused(property: Property, why: &str, remedy: Remedy) -> Self {
        Self::Refused { reason: format!("the required {property} is not possible: {why}"), remedy }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Usage { remedy, .. } | Self::Refused { remedy, .. } => remedy.clone(),
            Self::NotEmpty(_) => Remedy::ChooseAnotherDirectory,
            Self::Git { trouble, .. } => Remedy::Transfer(*trouble),
            Self::Interrupted => Remedy::RunAgain,
            Self::Other(Error::Clone(calve_core::Error::ParentMissing(_))) => Remedy::CreateParent,
            Self::Other(Error::Clone(calve_core::Error::NotReplaceable { .. })) => Remedy::GiveNewPath,
            Self::Other(error) => error.remedy().unwrap_or(Remedy::CheckPath),
        }
    }
}
