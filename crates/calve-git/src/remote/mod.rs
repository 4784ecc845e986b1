//! Clones from a URL, by the recipe that fits what they are for, and fetches into them.

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
pub use clone::recipe::{GitCloneOptions, Recipe, Step, Tip};
pub use clone::verify::{MissingObjects, Verdict};
pub use clone::{GitCloneReport, PhaseSeconds, clone_repository, plan_clone};
pub use error::RemoteError;
pub use fetch::{FetchOptions, FetchReport, PlannedFetch, fetch, plan_fetch};
pub use session::Listener;
pub use traffic::Traffic;
pub use url::{RepositoryUrl, Transport};

use strum::{IntoStaticStr, VariantNames};

/// The right of git to ask for a password.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Prompts {
    /// It fails instead, and runs in a process group of its own.
    #[default]
    Never,
    /// On the terminal of this process, whose Ctrl-C then reaches it too.
    OnTerminal,
}

/// Something that the user should know of and that was no reason to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub code: NoticeCode,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum NoticeCode {
    FilterIgnored,
    DepthIgnored,
    CredentialsUnencrypted,
    CredentialsNotStored,
    QueryStored,
    NoHead,
    Empty,
    /// The repository's own history is cut off.
    SourceShallow,
    /// A directory of a sparse checkout is not in the commit.
    SparseMissing,
    PathAsUrl,
    /// A path is cloned without a server.
    Local,
    Git,
}

impl NoticeCode {
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns whether the user may have to do something about it.
    pub fn is_warning(self) -> bool {
        !matches!(self, Self::CredentialsNotStored | Self::Empty | Self::PathAsUrl | Self::Local)
    }
}

impl Notice {
    fn new(code: NoticeCode, message: impl Into<String>) -> Notice {
        Notice { code, message: message.into() }
    }
}
