//! Errors between a template and a registry.

use std::io;
use std::path::PathBuf;

use calve_core::internal::ShownPath;

use crate::operation::Operation;
use crate::remedy::Remedy;

/// Why a template was not pushed or pulled. Nothing was published under its name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Core(#[from] calve_core::Error),
    /// A text that is no name of an image.
    #[error("`{}` {what}", ShownPath(.reference))]
    BadReference { reference: String, what: &'static str },
    /// An image to send a delta on that is no tag of the same repository.
    #[error("`{}` is not a tag", ShownPath(.0))]
    BadBase(String),
    /// A registry on another machine, or one that it leads to, would be reached without encryption.
    #[error("`{}` is not this machine, and would be reached without encryption", ShownPath(.0))]
    NotLoopback(String),
    #[error("{registry} refused to {operation}: {refusal}")]
    Refused { registry: String, operation: Operation, refusal: RegistryRefusal },
    /// The registry could not be reached, or the connection broke.
    #[error("cannot {operation} at {registry}: {reason}")]
    Network { registry: String, operation: Operation, reason: String },
    /// The registry sent something else than its name says, or something that does not follow the rules of images.
    #[error("{registry} sent an invalid answer: {what}")]
    BadAnswer { registry: String, what: String },
    #[error("`{reference}` is not a template: {what}")]
    NotATemplate { reference: String, what: String },
    #[error("`{reference}` is a template of {}", if *.is_database { "a database, not of files" } else { "files, not of a database" })]
    OtherKind {
        reference: String,
        /// True if it has the data of a database server.
        is_database: bool,
    },
    #[error("`{}` was replaced while it was sent; nothing was published", ShownPath(.0))]
    DataReplaced(PathBuf),
    #[error("the template `{name}` already exists, and was not pulled from `{repository}`")]
    NameTaken { name: String, repository: String },
    /// A data directory has something that does not travel.
    #[error("`{}` cannot be pushed: it {what}", ShownPath(.path))]
    DataNotPortable { path: PathBuf, what: &'static str },
    /// The index of a data directory would be larger than what a pull reads.
    #[error("`{}` is too large for one image", ShownPath(.0))]
    DataTooLarge(PathBuf),
    #[error("cannot read the credentials for {registry}: {reason}")]
    Credentials { registry: String, reason: String },
    /// The certificates that are to be trusted instead of the system's.
    #[error("no certificate in `{}`, which {variable} names: {reason}", ShownPath(.value))]
    Certificates { variable: &'static str, value: PathBuf, reason: String },
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Io {
        operation: Operation,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryRefusal {
    /// 401 or 403, with the credentials that there were.
    #[error("{}", if *.with_credentials { "the credentials do not permit it" } else { "it needs credentials" })]
    Unauthorized {
        /// True if there were any.
        with_credentials: bool,
    },
    /// 404, for the image itself.
    #[error("there is no such image")]
    NoImage,
    /// 404, for anything else.
    #[error("there is no such image")]
    NotFound,
    /// 429, or 500 and above, as often as it was asked.
    #[error("it is busy or out of order (status {0})")]
    Busy(u16),
    #[error("status {0}")]
    Status(u16),
}

impl Error {
    pub(crate) fn io(operation: Operation, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.into(), source: calve_core::internal::without_path(source.into()) }
    }

    /// Returns true if the registry answered that it has no image of that name. A part that an image lacks is something else.
    pub fn is_missing_image(&self) -> bool {
        matches!(self, Self::Refused { refusal: RegistryRefusal::NoImage, .. })
    }

    /// Returns what the user can do next. Only an interruption needs nothing.
    pub fn remedy(&self) -> Option<Remedy> {
        Some(match self {
            Self::Core(error) => Remedy::Core(error.remedy()?),
            Self::BadReference { .. } => Remedy::NameImage,
            Self::BadBase(_) => Remedy::NameTag,
            Self::NotLoopback(_) => Remedy::UseEncryption,
            Self::Refused { registry, refusal, .. } => match refusal {
                RegistryRefusal::Unauthorized { .. } => Remedy::LogIn(registry.clone()),
                RegistryRefusal::NoImage | RegistryRefusal::NotFound => Remedy::CheckImage,
                RegistryRefusal::Busy(_) => Remedy::TryLater,
                RegistryRefusal::Status(_) => Remedy::AskRegistry,
            },
            Self::Network { .. } => Remedy::CheckNetwork,
            Self::BadAnswer { .. } => Remedy::ReplaceImage,
            Self::NotATemplate { .. } => Remedy::PushTemplate,
            Self::OtherKind { is_database: true, .. } => Remedy::PullDatabase,
            Self::OtherKind { is_database: false, .. } => Remedy::PullFiles,
            Self::NameTaken { .. } => Remedy::PullUnderAnotherName,
            Self::DataReplaced(_) => Remedy::TryLater,
            Self::DataNotPortable { .. } => Remedy::RemakeWithoutEntry,
            Self::DataTooLarge(_) => Remedy::RemakeSmaller,
            Self::Credentials { registry, .. } => Remedy::LogIn(registry.clone()),
            Self::Certificates { variable, .. } => Remedy::NameCertificates(variable),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Remedy::FreeSpace,
            Self::Io { .. } => Remedy::CheckSystem,
        })
    }
}
