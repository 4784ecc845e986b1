//! Entries that stay where they are, and why.

use std::path::PathBuf;

use calve_core::options::Decision;
use calve_core::report::SkipReason;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftEntry {
    /// Relative to the worktree.
    pub path: PathBuf,
    pub reason: LeftBehindReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::EnumCount)]
pub enum LeftBehindReason {
    /// It belongs to a running program.
    Runtime,
    Secret,
    /// The project's configuration excludes it.
    Excluded,
    /// The user's own configuration excludes it.
    ExcludedLocally,
    Pointer,
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
    /// All but the engine's, each with its words.
    const OWN: [(LeftBehindReason, &str); 11] = [
        (Self::Runtime, "state of a running program"),
        (Self::Secret, "looks like a secret"),
        (Self::Excluded, "excluded by .calve.toml"),
        (Self::ExcludedLocally, "excluded by .calve.local.toml"),
        (Self::Pointer, "points into another repository"),
        (Self::NestedWorktree, "another worktree"),
        (Self::ForeignWorktrees, "list of worktrees of a nested repository"),
        (Self::Collides, "tracked in the new worktree"),
        (Self::NotIgnored, "not ignored in the new worktree"),
        (Self::OtherDonor, "not where its lockfile's other directories come from"),
        (Self::BehindLink, "a link or a file is where its directory would be"),
    ];

    const IS_COMPLETE: () = assert!(Self::OWN.len() + 1 == <Self as strum::EnumCount>::COUNT);

    pub fn text(self) -> &'static str {
        let () = Self::IS_COMPLETE;
        self.skip_reason().text()
    }

    /// Returns the reason as the clone engine has it.
    pub fn skip_reason(self) -> SkipReason {
        if let Self::Engine(reason) = self {
            return reason;
        }
        let number = Self::OWN.iter().position(|(other, _)| *other == self).unwrap_or_default();
        SkipReason::Selection { number, text: Self::OWN[number].1 }
    }

    /// Returns the answer to the clone engine, for an entry that is left out.
    pub(crate) fn decision(self) -> Decision {
        Decision::LeaveBecause(self.skip_reason())
    }

    /// Returns the reason that was given to the clone engine, or the engine's own.
    pub(crate) fn of_engine(reason: SkipReason) -> LeftBehindReason {
        match reason {
            SkipReason::Selection { number, .. } if number < Self::OWN.len() => Self::OWN[number].0,
            other => Self::Engine(other),
        }
    }
}
