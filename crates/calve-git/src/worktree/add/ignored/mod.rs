//! Chooses the untracked entries of a worktree that go into the new one: those that git ignores, narrowed by `.worktreeinclude` and
//! `.calve.toml`, and with [`UncommittedChanges::Carry`](super::UncommittedChanges) the others.

pub(crate) mod dependencies;
pub(crate) mod rules;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use calve_core::{Decision, Patterns, SkipReason};

use crate::config::{Author, read_bytes};
use crate::error::Result;
use crate::paths::path_of;
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::status::UntrackedEntry;

/// The file by which a project says which ignored files a new worktree needs.
pub(crate) const INCLUDE_FILE: &str = ".worktreeinclude";

/// An entry that is carried, with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CarriedRoot {
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
}

/// An entry that stays where it is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftEntry {
    /// Relative to the worktree.
    pub path: PathBuf,
    pub reason: LeftBehindReason,
}

/// Why an entry stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftBehindReason {
    /// It belongs to a running program.
    Runtime,
    /// Its name is one of those under which people keep secrets.
    Secret,
    /// The configuration excludes it.
    Excluded,
    /// It is a `.git` file, which points into another repository.
    Pointer,
    /// It is another worktree.
    NestedWorktree,
    /// It is the list of worktrees of a nested repository.
    ForeignWorktrees,
    /// The new worktree tracks something at its path.
    Collides,
    /// The new commit's rules do not ignore it.
    NotIgnored,
    /// Its lockfile's other directories come from another worktree.
    OtherDonor,
    /// In the worktree a link, or a file, is where a directory would lead to it.
    BehindLink,
    /// The clone engine skipped it, for this reason.
    Engine(SkipReason),
}

impl LeftBehindReason {
    const OWN: [LeftBehindReason; 10] = [
        Self::Runtime,
        Self::Secret,
        Self::Excluded,
        Self::Pointer,
        Self::NestedWorktree,
        Self::ForeignWorktrees,
        Self::Collides,
        Self::NotIgnored,
        Self::OtherDonor,
        Self::BehindLink,
    ];

    /// Returns the reason in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Runtime => "state of a running program",
            Self::Secret => "looks like a secret",
            Self::Excluded => "excluded by .calve.toml",
            Self::Pointer => "points into another repository",
            Self::NestedWorktree => "another worktree",
            Self::ForeignWorktrees => "list of worktrees of a nested repository",
            Self::Collides => "tracked in the new worktree",
            Self::NotIgnored => "not ignored in the new worktree",
            Self::OtherDonor => "not where its lockfile's other directories come from",
            Self::BehindLink => "a link or a file is where its directory would be",
            Self::Engine(reason) => reason.text(),
        }
    }

    /// Returns the answer to the clone engine, for an entry that is left out.
    pub(crate) fn decision(self) -> Decision {
        Decision::LeaveBecause(match self {
            Self::Engine(reason) => reason,
            own => {
                let number = Self::OWN.into_iter().position(|other| other == own).unwrap_or_default();
                SkipReason::Selection { number, text: own.text() }
            }
        })
    }

    /// Returns the reason that was given to the clone engine, or the engine's own.
    pub(crate) fn of_engine(reason: SkipReason) -> LeftBehindReason {
        match reason {
            SkipReason::Selection { number, .. } => Self::OWN.get(number).copied().unwrap_or(Self::Engine(reason)),
            other => Self::Engine(other),
        }
    }
}

/// The facts to look at for each entry.
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
    pub(crate) fn ignored(&self, found: &[UntrackedEntry], left: &mut Vec<LeftEntry>) -> Result<Vec<CarriedRoot>> {
        let mut roots = Vec::new();
        for found in found {
            let root = CarriedRoot { path: path_of(&found.path), is_directory: found.is_directory };
            let wanted = self.include.is_none_or(|include| include.covers(&root.path, root.is_directory));
            if wanted {
                self.add(root, &mut roots, left);
            } else if let Some(include) = self.include.filter(|_| root.is_directory) {
                self.search(&root.path, include, &mut roots, left)?;
            }
        }
        Ok(roots)
    }

    /// Returns what is neither tracked nor ignored.
    pub(crate) fn untracked(&self, found: &[UntrackedEntry], left: &mut Vec<LeftEntry>) -> Vec<CarriedRoot> {
        let mut roots = Vec::new();
        for found in found {
            self.add(CarriedRoot { path: path_of(&found.path), is_directory: found.is_directory }, &mut roots, left);
        }
        roots
    }

    fn add(&self, root: CarriedRoot, roots: &mut Vec<CarriedRoot>, left: &mut Vec<LeftEntry>) {
        let reason = if self.nested.contains(&root.path) {
            Some(LeftBehindReason::NestedWorktree)
        } else if (self.collides)(&root.path) {
            Some(LeftBehindReason::Collides)
        } else {
            self.rules.leave(&root.path, root.is_directory)
        };
        match reason {
            None => roots.push(root),
            Some(reason) => left.push(LeftEntry { path: root.path, reason }),
        }
    }

    /// Looks for what is included inside a directory that is not, as far as patterns with a slash lead into it.
    fn search(
        &self,
        directory: &Path,
        include: &Patterns,
        roots: &mut Vec<CarriedRoot>,
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
                self.add(CarriedRoot { path, is_directory }, roots, left);
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
    let mut lines: Vec<String> = Vec::new();
    if let Some(text) = text {
        // A pattern that is no UTF-8 can match no file that this reads.
        lines.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
    }
    lines.extend(listed.iter().cloned());
    Ok(Some(Patterns::new(lines)?))
}
