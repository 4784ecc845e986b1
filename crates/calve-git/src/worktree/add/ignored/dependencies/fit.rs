use serde_json::Value;

use crate::directory::Directory;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    /// The files do not say, but the lockfile's time does.
    Unsure,
    Yes,
}

impl From<bool> for Fit {
    fn from(fits: bool) -> Fit {
        if fits { Fit::Yes } else { Fit::No }
    }
}

/// Compares a directory with lockfiles that were read once.
pub(super) type Judge<'t> = Box<dyn Fn(&Directory) -> Fit + 't>;

pub(super) fn listed<'v>(document: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    document[key].as_array().into_iter().flatten()
}
