//! The comparison of a directory of dependencies with its lockfile.

use serde_json::Value;

use crate::directory::Directory;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    /// The files do not say. The time of the lockfile does.
    Unsure,
    Yes,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Fit {
        if fits { Fit::Yes } else { Fit::No }
    }
}

/// Compares a directory with what lockfiles ask for, which were read once.
pub(super) type Judge<'t> = Box<dyn Fn(&Directory) -> Fit + 't>;

/// Returns the items of a list in a document; none if it is no list, or not there.
pub(super) fn listed<'v>(document: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    document[key].as_array().into_iter().flatten()
}
