use std::path::PathBuf;

use calve_core::CloneOptions;

use crate::trust::Provenance;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoredEntries {
    /// All that the project's configuration allows.
    #[default]
    Carry,
    Leave,
}

/// The fate of uncommitted changes and of untracked files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncommittedChanges {
    #[default]
    Leave,
    /// The new worktree has them too, as unstaged changes.
    Carry,
}

#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// The branch to check out or make; `-` for the previous one; `origin/x`; `pr/123`; a tag or a commit's id.
    pub branch: String,
    /// Start of a new branch. Default: HEAD.
    pub base: Option<String>,
    /// Worktree to take files from: its branch, path or name. Default: the one that `start` is in.
    pub from: Option<PathBuf>,
    /// Destination, relative to `start`. Default: the configured place for the branch.
    pub path: Option<PathBuf>,
    /// Checks out the commit without a branch.
    pub is_detached: bool,
    pub ignored: IgnoredEntries,
    pub changes: UncommittedChanges,
    /// Provenance that the user gives to the commit and the files. Default: found out.
    pub provenance: Option<Provenance>,
    /// Settings of the engine: threads, progress, cancelling, the numbers measured for the place.
    pub clone: CloneOptions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddWarning {
    /// Submodules are empty, as after `git worktree add`.
    EmptySubmodules,
    /// Files are as stored, because a filter would run an untrusted pull request's code.
    Unfiltered {
        /// Its name in git's configuration.
        filter: String,
        command: String,
        files: u64,
    },
    /// Messages of git or of a filter that it ran, although git succeeded.
    Git(String),
    Engine(calve_core::report::Warning),
}
