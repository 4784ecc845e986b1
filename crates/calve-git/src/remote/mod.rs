//! Clones from a URL by the recipe for their purpose, and fetches into them.

mod clone;
mod error;
mod fetch;
mod git_version;
mod notice;
mod prompts;
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
pub use notice::{Notice, NoticeCode};
pub use prompts::Prompts;
pub use session::Listener;
pub use traffic::Traffic;
pub use url::{RepositoryUrl, Transport};
