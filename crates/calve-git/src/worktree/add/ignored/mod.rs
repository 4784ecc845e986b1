//! Chooses untracked entries: ignored ones, narrowed by `.worktreeinclude` and `.calve.toml`, on request also others.

pub(crate) mod dependencies;
pub mod left_behind;
pub(crate) mod rules;
pub(crate) mod secrets;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use calve_core::Patterns;
use calve_core::report::SkippedEntry;

use crate::config::{Author, read_bytes};
use crate::error::Result;
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::add::ignored::secrets::Fate;
use crate::worktree::add::request::AddRequest;
use crate::worktree::status::{Status, UntrackedEntry};

/// The project's list of ignored files that new worktrees need.
pub(crate) const INCLUDE_FILE: &str = ".worktreeinclude";

/// A donor's untracked entries, sorted into those that are carried and those that stay.
pub(crate) struct CarriedEntries<'a> {
    pub(crate) request: &'a AddRequest,
    pub(crate) status: &'a Status,
    pub(crate) rules: Rules,
    /// `None`: everything.
    pub(crate) include: Option<Patterns>,
    /// Roots of worktrees, relative to the donor.
    pub(crate) nested: HashSet<PathBuf>,
    /// Returns whether the new worktree tracks a path, or a file above it.
    pub(crate) collides: &'a dyn Fn(&Path) -> bool,
    /// In git's order.
    pub(crate) roots: Vec<UntrackedEntry>,
    pub(crate) env_files: Vec<PathBuf>,
    pub(crate) left: Vec<SkippedEntry>,
}

impl CarriedEntries<'_> {
    pub(crate) fn add_ignored(&mut self, found: &[UntrackedEntry]) -> Result<()> {
        for root in found {
            if self.covers(&root.path, root.is_directory) {
                self.add(root.clone());
            } else if root.is_directory {
                self.search(&root.path)?;
            }
        }
        Ok(())
    }

    fn covers(&self, path: &Path, is_directory: bool) -> bool {
        self.include.as_ref().is_none_or(|include| include.covers(path, is_directory))
    }

    pub(crate) fn takes(&self, directory: &Path) -> bool {
        self.covers(directory, true) && self.rules.leave(directory, true).is_none() && !(self.collides)(directory)
    }

    pub(crate) fn add(&mut self, root: UntrackedEntry) {
        let fate = if self.nested.contains(&root.path) {
            Fate::Left(left_behind::NESTED_WORKTREE)
        } else if (self.collides)(&root.path) {
            Fate::Left(left_behind::COLLIDES)
        } else {
            match self.rules.leave(&root.path, root.is_directory) {
                Some(reason) if reason != left_behind::SECRET => Fate::Left(reason),
                _ => secrets::fate(self.request, self.status, &root.path),
            }
        };
        match fate {
            Fate::Carried => self.roots.push(root),
            Fate::Anew => self.env_files.push(root.path),
            Fate::Left(reason) => self.left.push(SkippedEntry { path: root.path, reason }),
        }
    }

    /// Searches a directory that is not included for entries that are, if a pattern with a slash leads into it.
    fn search(&mut self, directory: &Path) -> Result<()> {
        let leads_into = self.include.as_ref().is_some_and(|include| include.reach_into(directory));
        if !leads_into || self.nested.contains(directory) {
            return Ok(());
        }
        let Ok(entries) = fs_err::read_dir(self.request.donor.join(directory)) else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            let is_directory = entry.file_type()?.is_dir();
            if self.include.as_ref().is_some_and(|include| include.matches(&path, is_directory)) {
                self.add(UntrackedEntry { path, is_directory });
            } else if is_directory {
                self.search(&path)?;
            }
        }
        Ok(())
    }
}

/// Reads `.worktreeinclude` and the configured list. `None` if there is neither.
pub(crate) fn included(worktree: Option<&Path>, listed: &[String]) -> Result<Option<Patterns>> {
    let text = match worktree {
        Some(worktree) => read_bytes(&worktree.join(INCLUDE_FILE), Author::Repository)?,
        None => None,
    };
    if text.is_none() && listed.is_empty() {
        return Ok(None);
    }
    // A pattern that is not UTF-8 can match no file that this reads.
    let text = String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned();
    Ok(Some(Patterns::new(text.lines().chain(listed.iter().map(String::as_str)))?))
}
