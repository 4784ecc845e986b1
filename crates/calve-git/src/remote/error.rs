//! Errors between here and a repository elsewhere, and the next step.

use std::ffi::OsStr;
use std::path::PathBuf;

use calve_core::internal::ShownPath;

use crate::error::Error;
use crate::redact::{self, Url};
use crate::remedy::Remedy;
use crate::remote::clone::property::Property;
use crate::remote::clone::purpose::Purpose;
use crate::transfer_failure::TransferFailure;

/// Why a clone or a fetch failed. No message holds credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// git must not be given this.
    #[error("`{url}` is no repository to clone: {why}")]
    Url { url: String, why: String },
    /// The URL has no name for a directory in it, and none was given.
    #[error("`{0}` names no directory to clone into")]
    NoName(String),
    /// The options do not go together, or not with this repository.
    #[error("{why}")]
    Senseless { why: String },
    #[error("this repository has no remote `origin` to fetch from")]
    NoRemote,
    #[error("`{}` exists and is not an empty directory", ShownPath(.0))]
    NotEmpty(PathBuf),
    #[error("git {version} is too old: 2.30 is the oldest that works")]
    OldGit { version: String },
    /// A property that was required does not hold. Nothing was made.
    #[error("the required {property} is not possible: {why}")]
    Refused { property: Property, why: String },
    /// A filter was required, and the source has no history to leave anything of on the server.
    #[error(
        "the required filter is not possible: `{0}` is shallow, and git can make no partial clone of a shallow repository"
    )]
    ShallowSource(String),
    /// A property was required that this purpose does not ask the server for.
    #[error("the required {property} is not possible: the purpose `{purpose}` asks the server for none here")]
    NotAsked { property: Property, purpose: Purpose },
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
        Self::Url { url: Url::new(given).to_string(), why: why.into() }
    }

    /// Returns the error of a clone for this purpose: its remedy is not what was asked for.
    pub(crate) fn of_clone(self, purpose: Purpose) -> Self {
        match self {
            Self::Git { what, trouble: TransferFailure::DiskFull, said } if purpose == Purpose::Ci => {
                Self::Git { what, trouble: TransferFailure::DiskFullForCi, said }
            }
            other => other,
        }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Url { .. } => Remedy::GiveUrl,
            Self::NoName(_) => Remedy::NameDirectory,
            Self::Senseless { .. } => Remedy::ReadHelp,
            Self::NoRemote => Remedy::AddRemote,
            Self::NotEmpty(_) => Remedy::ChooseAnotherDirectory,
            Self::OldGit { .. } => Remedy::UpdateGitOrDoWithout,
            Self::Refused { property: Property::Filter, .. } => Remedy::AllowFiltersOrDropRequirement,
            Self::Refused { property: Property::Depth, .. } => Remedy::ChooseTransportOrDropRequirement,
            Self::ShallowSource(_) => Remedy::Transfer(TransferFailure::SourceShallow),
            Self::NotAsked { .. } => Remedy::ChoosePurposeOrDropRequirement,
            Self::Git { trouble, .. } => Remedy::Transfer(*trouble),
            Self::Interrupted => Remedy::RunAgainUnchanged,
            Self::Other(Error::Clone(calve_core::Error::ParentMissing(_))) => Remedy::CreateParent,
            Self::Other(Error::Clone(calve_core::Error::NotReplaceable { .. })) => Remedy::GiveNewPath,
            Self::Other(error) => error.remedy().unwrap_or(Remedy::CheckPath),
        }
    }
}
