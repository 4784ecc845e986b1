//! Which entries are left out.

use std::ffi::CStr;
use std::path::Path;

use crate::error::Error;
use crate::options::{Decision, Selection};
use crate::patterns::Patterns;
use crate::reason::SkipReason;

/// Decides what a clone leaves out: by the caller's patterns, and by the caller's own choice.
pub(crate) struct Exclude {
    patterns: Patterns,
    select: Option<Selection>,
}

impl Exclude {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Error> {
        // In a file such a line says nothing; somebody who passes it means something.
        if let Some(pattern) = patterns.iter().find(|pattern| pattern.trim().is_empty() || pattern.starts_with('#')) {
            return Err(Error::Pattern { pattern: pattern.clone(), reason: "it names nothing".into() });
        }
        Ok(Self { patterns: Patterns::new(patterns)?, select: None })
    }

    /// Leaves out what `select` does not take, too.
    pub(crate) fn and_select(self, select: Option<Selection>) -> Self {
        Self { select, ..self }
    }

    /// Returns true when nothing is left out: callers then need not know paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.select.is_none()
    }

    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        self.of(path, is_directory) != Decision::Take
    }

    pub(crate) fn of(&self, path: &Path, is_directory: bool) -> Decision {
        if self.patterns.matches(path, is_directory) {
            return Decision::LeaveBecause(SkipReason::Excluded);
        }
        self.select.as_ref().map_or(Decision::Take, |select| select.of(path, is_directory))
    }
}

/// Whether a name is a staged tree, trash, an overlay's place, the lock of one, or a place of spares or templates: whoever made it, on
/// whatever machine, it is no part of what a user wants cloned.
pub(crate) fn is_calves_own(name: &CStr) -> bool {
    is_calves_own_text(name.to_bytes())
}

/// The same, for a name that is no C string.
pub(crate) fn is_calves_own_text(name: &[u8]) -> bool {
    const KINDS: [&[u8]; 5] = [b"staging-", b"trash-", b"overlay-", b"spares-", b"templates-"];
    name.first() == Some(&b'.')
        && name.strip_prefix(b".calve-").is_some_and(|rest| KINDS.iter().any(|kind| rest.starts_with(kind)))
}

/// Returns whether a name is that of a tree that was removed and is still to be deleted.
pub fn is_trash(name: &[u8]) -> bool {
    name.starts_with(b".calve-trash-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calves_own_names_are_known() {
        for name in [c".calve-trash-0-a-b-c", c".calve-staging-7-x.lock", c".calve-overlay-1"] {
            assert!(is_calves_own(name), "{name:?}");
        }
        for name in [c".calve.toml", c".calve-notes", c"calve-trash-0", c".cargo", c".calve-trash"] {
            assert!(!is_calves_own(name), "{name:?}");
        }
    }
}
