//! Clones from a URL, by the recipe that fits what they are for, and fetches into them.

mod clone;
mod error;
mod features;
mod fetch;
mod session;
mod traffic;
mod url;

pub use clone::purpose::Purpose;
pub use clone::recipe::{Filter, Property, Recipe, Start, Step, Tip};
pub use clone::verify::{Missing, Verdict};
pub use clone::{CloneReceipt, CloneWish, Seconds, clone_repository, plan_clone};
pub use error::{RemoteError, Trouble};
pub use features::Features;
pub use fetch::{FetchReceipt, FetchWish, fetch, plan_fetch};
pub use session::{Listener, Prompts};
pub use traffic::Traffic;
pub use url::{Kind, RepositoryUrl};

/// Something that the user should know of and that was no reason to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// A word for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
}

impl Notice {
    fn new(code: &'static str, message: impl Into<String>) -> Notice {
        Notice { code, message: message.into() }
    }
}
