//! Chooses the untracked entries for a new worktree: ignored ones, narrowed by `.worktreeinclude` and `.calve.toml`, and on request the others.

pub(crate) mod dependencies;
pub(crate) mod dependency_names;
pub(crate) mod left_behind;
pub(crate) mod rules;
pub(crate) mod secrets;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use calve_core::Patterns;

use crate::config::{Author, read_bytes};
use crate::environment::is_own_env_file;
use crate::error::Result;
use crate::worktree::add::ignored::left_behind::{LeftBehindReason, LeftEntry};
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::status::UntrackedEntry;

/// The file by which a project says which ignored files a new worktree needs.
pub(crate) const INCLUDE_FILE: &str = ".worktreeinclude";

pub(crate) struct CarryFacts<'a> {
    pub(crate) donor: &'a Path,
    pub(crate) rules: &'a Rules,
    /// `None`: everything.
    pub(crate) include: Option<&'a Patterns>,
    /// Roots of worktrees, relative to the donor.
    pub(crate) nested: &'a HashSet<PathBuf>,
    /// Whether a path is tracked in the new worktree, or a file that is tracked there is above it.
    pub(crate) collides: &'a dyn Fn(&Path) -> bool,
}

impl CarryFacts<'_> {
    /// Returns the roots to carry, in the order in which git lists them.
    pub(crate) fn ignored(&self, found: &[UntrackedEntry], left: &mut Vec<LeftEntry>) -> Result<Vec<UntrackedEntry>> {
        let mut roots = Vec::new();
        for root in found {
            if self.include.is_none_or(|include| include.covers(&root.path, root.is_directory)) {
                self.add(root.clone(), &mut roots, left);
            } else if let Some(include) = self.include.filter(|_| root.is_directory) {
                self.search(&root.path, include, &mut roots, left)?;
            }
        }
        Ok(roots)
    }

    /// Returns the entries that are neither tracked nor ignored.
    pub(crate) fn untracked(&self, found: &[UntrackedEntry], left: &mut Vec<LeftEntry>) -> Vec<UntrackedEntry> {
        let mut roots = Vec::new();
        found.iter().for_each(|root| self.add(root.clone(), &mut roots, left));
        roots
    }

    fn add(&self, root: UntrackedEntry, roots: &mut Vec<UntrackedEntry>, left: &mut Vec<LeftEntry>) {
        let reason = if self.nested.contains(&root.path) {
            Some(LeftBehindReason::NestedWorktree)
        } else if (self.collides)(&root.path) {
            Some(LeftBehindReason::Collides)
        } else {
            // One that Calve made is written anew.
            let is_secret = |reason: &LeftBehindReason| *reason == LeftBehindReason::Secret;
            let reason = self.rules.leave(&root.path, root.is_directory);
            reason.filter(|reason| !is_secret(reason) || !is_own_env_file(self.donor, &root.path))
        };
        match reason {
            None => roots.push(root),
            Some(reason) => left.push(LeftEntry { path: root.path, reason }),
        }
    }

    /// Looks for included entries inside a directory that is not, if patterns with a slash lead into it.
    fn search(
        &self,
        directory: &Path,
        include: &Patterns,
        roots: &mut Vec<UntrackedEntry>,
        left: &mut Vec<LeftEntry>,
    ) -> Result<()> {
        if !include.reach_into(directory) || self.nested.contains(directory) {
            return Ok(());
        }
        let Ok(entries) = fs_err::read_dir(self.donor.join(directory)) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let is_directory = entry.file_type()?.is_dir();
            if include.matches(&path, is_directory) {
                self.add(UntrackedEntry { path, is_directory }, roots, left);
            } else if is_directory {
                self.search(&path, include, roots, left)?;
            }
        }
        Ok(())
    }
}

/// Reads `.worktreeinclude` and the configuration's list together; `None` when neither says anything.
pub(crate) fn included(worktree: Option<&Path>, listed: &[String]) -> Result<Option<Patterns>> {
    let text = match worktree {
        Some(worktree) => read_bytes(&worktree.join(INCLUDE_FILE), Author::Repository)?,
        None => None,
    };
    if text.is_none() && listed.is_empty() {
        return Ok(None);
    }
    // A pattern that is no UTF-8 can match no file that this reads.
    let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
    Ok(Some(Patterns::new(text.lines().chain(listed.iter().map(String::as_str)))?))
}
