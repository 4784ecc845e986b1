//! Entries that a clone leaves out.

use std::path::Path;

use crate::error::Error;
use crate::options::{Decision, Selection};
use crate::patterns::Patterns;
use crate::vocabulary::reason::SkipReason;

#[derive(Default)]
pub(crate) struct Exclusions {
    patterns: Patterns,
    select: Option<Selection>,
}

impl Exclusions {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Error> {
        // In a file such a line says nothing, but a caller that passes one means something.
        if let Some(pattern) = patterns.iter().find(|pattern| pattern.trim().is_empty() || pattern.starts_with('#')) {
            return Err(Error::Pattern { pattern: pattern.clone(), reason: "it names nothing".into() });
        }
        Ok(Self { patterns: Patterns::new(patterns)?, select: None })
    }

    pub(crate) fn and_select(self, select: Option<Selection>) -> Self {
        Self { select, ..self }
    }

    /// Returns whether nothing is left out: callers then need no paths.
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.select.is_none()
    }

    pub(crate) fn matches(&self, path: &Path, is_directory: bool) -> bool {
        self.choose(path, is_directory) != Decision::Take
    }

    pub(crate) fn choose(&self, path: &Path, is_directory: bool) -> Decision {
        self.decide(path, is_directory, || self.select.as_ref().map(|select| select.0.choose(path, is_directory)))
    }

    /// Returns [`Self::choose`] for the entries of one directory, which it looks up once.
    pub(crate) fn inside<'a>(&'a self, directory: &Path) -> impl Fn(&Path, bool) -> Decision + use<'a> {
        let chosen = self.select.as_ref().map(|select| select.0.inside(directory));
        move |path, is_directory| {
            self.decide(path, is_directory, || chosen.as_ref().map(|chosen| chosen(path, is_directory)))
        }
    }

    fn decide(&self, path: &Path, is_directory: bool, choose: impl FnOnce() -> Option<Decision>) -> Decision {
        if self.patterns.matches(path, is_directory) {
            return Decision::LeaveBecause(SkipReason::Excluded);
        }
        choose().unwrap_or(Decision::Take)
    }
}
