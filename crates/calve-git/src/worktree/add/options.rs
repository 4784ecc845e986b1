//! The request for a new worktree, as the caller makes it, and what it is warned of.

use std::path::PathBuf;

use calve_core::CloneOptions;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoredEntries {
    /// All of them that the project's configuration allows.
    #[default]
    Carry,
    Leave,
}

/// The fate of changes that are not committed, and of untracked files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncommittedChanges {
    #[default]
    Leave,
    /// It has them too, as changes that are not staged.
    Carry,
}

/// Whether a pull request's commit is treated like one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// It gets no secrets, no hook runs, and the worktree is marked ([`crate::trust`]).
    #[default]
    No,
    Yes,
}

#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// The branch to check out, or to make; `-` for the one before; `origin/x`; `pr/123`; a tag, or a commit's id.
    pub branch: String,
    /// The start of a new branch; by default HEAD.
    pub base: Option<String>,
    /// The worktree to take files from: its branch, path or name; by default the one that `start` is in.
    pub from: Option<PathBuf>,
    /// Where to, relative to `start`; by default the place that the configuration gives the branch.
    pub path: Option<PathBuf>,
    /// Check out the commit, and no branch.
    pub is_detached: bool,
    pub ignored: IgnoredEntries,
    pub changes: UncommittedChanges,
    pub trust: Trust,
    /// How the engine works: threads, progress, cancelling, the numbers measured for the place.
    pub clone: CloneOptions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddWarning {
    /// Submodules are empty, as after `git worktree add`.
    EmptySubmodules,
    /// Files are as stored, because a filter would run code of an untrusted pull request.
    Unfiltered {
        /// Its name in git's configuration.
        filter: String,
        command: String,
        files: u64,
    },
    /// Messages of git, or of a filter that it ran, although it ended without an error.
    Git(String),
    Engine(calve_core::report::Warning),
}
