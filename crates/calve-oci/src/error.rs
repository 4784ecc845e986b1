use std::io;
use std::path::PathBuf;

use calve_core::internal::ShownPath;

use crate::remedy::Remedy;

/// Failure of a push or pull. Nothing was published under the template's name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Core(#[from] calve_core::Error),
    #[error("`{}` {what}", ShownPath(.reference))]
    BadReference { reference: String, what: &'static str },
    /// The base for a delta is not a tag of the same repository.
    #[error("`{}` is not a tag", ShownPath(.0))]
    BadBase(String),
    /// The registry, or an address that it leads to, is on another machine and unencrypted.
    #[error("`{}` is not this machine, and would be reached without encryption", ShownPath(.0))]
    NotLoopback(String),
    #[error("{registry} refused to {operation}: {refusal}")]
    Refused { registry: String, operation: &'static str, refusal: RegistryRefusal },
    #[error("cannot {operation} at {registry}: {reason}")]
    Network { registry: String, operation: &'static str, reason: String },
    /// Content that differs from its digest or size, or breaks the rules of images.
    #[error("{registry} sent an invalid answer: {what}")]
    BadAnswer { registry: String, what: String },
    #[error("`{reference}` is not a template: {what}")]
    NotATemplate { reference: String, what: String },
    #[error("`{reference}` is a template of {}", if *.is_database { "a database, not of files" } else { "files, not of a database" })]
    OtherKind { reference: String, is_database: bool },
    #[error("`{}` was replaced while it was sent; nothing was published", ShownPath(.0))]
    DataReplaced(PathBuf),
    #[error("the template `{name}` already exists, and was not pulled from `{repository}`")]
    NameTaken { name: String, repository: String },
    #[error("`{}` cannot be pushed: it {what}", ShownPath(.path))]
    DataNotPortable { path: PathBuf, what: &'static str },
    /// The index would be larger than a pull accepts.
    #[error("`{}` is too large for one image", ShownPath(.0))]
    DataTooLarge(PathBuf),
    #[error("cannot read the credentials for {registry}: {reason}")]
    Credentials { registry: String, reason: String },
    /// The user's certificates, which replace the system's.
    #[error("no certificate in `{}`, which {variable} names: {reason}", ShownPath(.value))]
    Certificates { variable: &'static str, value: PathBuf, reason: String },
    #[error("cannot {operation} `{}`: {source}", ShownPath(.path))]
    Io {
        operation: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryRefusal {
    /// 401 or 403.
    #[error("{}", if *.with_credentials { "the credentials do not permit it" } else { "it needs credentials" })]
    Unauthorized { with_credentials: bool },
    /// 404 for the image itself.
    #[error("there is no such image")]
    NoImage,
    /// 404 for anything else.
    #[error("there is no such repository, or no such part (status 404)")]
    NotFound,
    /// 429, or 500 and above, at every attempt.
    #[error("it is busy or out of order (status {0})")]
    Busy(u16),
    #[error("status {0}")]
    Status(u16),
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { operation, path: path.into(), source: calve_core::internal::without_path(source.into()) }
    }

    /// Returns true if the registry has no image of that name. An image that lacks a part is another matter.
    pub fn is_missing_image(&self) -> bool {
        matches!(self, Self::Refused { refusal: RegistryRefusal::NoImage, .. })
    }

    /// Returns the user's next step. Only an interruption has none.
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
