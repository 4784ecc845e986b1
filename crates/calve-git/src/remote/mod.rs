//! Clones from a URL, by the recipe that fits what they are for, and fetches into them.

mod clone;
mod features;
mod fetch;
mod purpose;
mod recipe;
mod run;
mod traffic;
mod trouble;
mod url;
mod verify;

pub use clone::{CloneReceipt, CloneWish, Seconds, clone_repository, plan_clone};
pub use features::Features;
pub use fetch::{FetchReceipt, FetchWish, fetch, plan_fetch};
pub use purpose::Purpose;
pub use recipe::{Filter, Property, Recipe, Start, Step, Tip};
pub use run::{Listener, Prompts};
pub use traffic::Traffic;
pub use trouble::{RemoteError, Trouble};
pub use url::{Kind, RepositoryUrl};
pub use verify::{Missing, Verdict};

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
