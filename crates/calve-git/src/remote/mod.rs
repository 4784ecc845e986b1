//! Clones from a URL by the recipe for their purpose, and fetches into them.

mod clone;
mod error;
mod fetch;
mod git_version;
pub mod published;
mod session;
mod traffic;
mod url;

pub use crate::transfer_failure::{ENDLESS, TransferFailure};
pub use clone::purpose::{Property, Purpose};
pub use clone::recipe::{GitCloneOptions, PlannedClone, Recipe};
pub use clone::verify::MissingObjects;
pub use clone::{GitCloneReport, PhaseSeconds, ServerCompliance, clone_repository, plan_clone};
pub use error::RemoteError;
pub use fetch::{FetchOptions, FetchReport, PlannedFetch, fetch, plan_fetch};
pub use session::Listener;
pub use traffic::Traffic;
pub use url::{RepositoryUrl, Transport};

use calve_core::internal::json::{As, Text};
use serde::Serialize;
use strum::{Display, VariantNames};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prompts {
    /// Git fails instead, and runs in its own process group.
    #[default]
    Never,
    /// Git asks on the terminal of this process, whose Ctrl-C then reaches it too.
    OnTerminal,
}

/// Something that the user should know and that is not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "GitWarning")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// A stable word for programs.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = NoticeCode::VARIANTS)))]
    pub code: NoticeCode,
    /// A sentence for people.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NoticeCode {
    FilterIgnored,
    DepthIgnored,
    CredentialsUnencrypted,
    CredentialsNotStored,
    QueryStored,
    NoHead,
    Empty,
    SourceShallow,
    SparseMissing,
    PathAsUrl,
    Local,
    Git,
}

impl NoticeCode {
    /// Returns whether the user may have to act.
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::CredentialsNotStored | Self::Empty | Self::PathAsUrl | Self::Local)
    }
}

impl Notice {
    fn new(code: NoticeCode, message: impl Into<String>) -> Notice {
        let remedy = match code {
            NoticeCode::FilterIgnored => {
                "; the server has to have `uploadpack.allowFilter` set; requiring `filter` fails instead"
            }
            NoticeCode::DepthIgnored => {
                "; the server, or a proxy before it, does not support shallow clones; requiring `depth` fails instead"
            }
            NoticeCode::NoHead => "; see `git branch -r`",
            NoticeCode::CredentialsNotStored => "; later fetches need a credential helper (gitcredentials(7))",
            NoticeCode::QueryStored => ": if it is a token, use a credential helper instead (gitcredentials(7))",
            _ => "",
        };
        Notice { code, message: message.into() + remedy }
    }
}
