use std::fmt;
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use strum::{IntoStaticStr, VariantNames};

use crate::remedy::{HidingMark, Remedy, UnfinishedOperation};

/// Something in a worktree that exists nowhere else, and is lost with it.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum UnsavedItem {
    /// Files changed, staged or added since the commit.
    Uncommitted(Vec<PathBuf>),
    /// Files whose staged contents only the entry of a worktree that is gone has.
    Staged(Vec<PathBuf>),
    /// A changed file that git was told to ignore.
    Hidden {
        path: PathBuf,
        mark: HidingMark,
    },
    /// Files in a submodule's directory that has no repository: git does not look at them.
    InSubmodule(Vec<PathBuf>),
    Operation(UnfinishedOperation),
    Commits(LooseCommits),
    /// Commits made here that only HEAD's log leads to.
    Reflog(LooseCommits),
    /// Objects that only a reference of this worktree leads to, such as `refs/worktree/x`.
    Reference {
        name: String,
        commits: LooseCommits,
    },
    /// Commits of an inner repository that none of its remotes has.
    Unpushed(LooseCommits),
    Locked,
    /// The repository inside has this worktree elsewhere.
    RepositoryOf(PathBuf),
    /// The worktree inside belongs to a missing repository.
    Orphaned(PathBuf),
    /// A repository or a directory inside that cannot be read, with the reason of git or the system.
    Unreadable(String),
    /// A path inside that is registered as another worktree, and has something else.
    Misplaced(PathBuf),
    /// One of these, in a repository, worktree or submodule inside.
    Inside {
        path: PathBuf,
        item: Box<UnsavedItem>,
    },
    /// Ignored files that neither the main worktree nor the donor has alike, except dependencies and build outputs.
    Ignored(Vec<IgnoredFile>),
    Service(String),
}

/// Commits that nothing else leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseCommits {
    /// The newest, or the only known one.
    pub commit: String,
    /// Their number, up to 1,000.
    pub count: u64,
}

/// The most commits that git lists (`--max-count=1000`).
const COUNTED: u64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IgnoredFile {
    /// Relative to the worktree.
    pub path: PathBuf,
    pub bytes: u64,
}

/// The total size up to which ignored files are moved aside.
pub(crate) const KEPT_BYTES: u64 = 100_000_000;

impl UnsavedItem {
    /// Returns whether only force removes it. Other items are moved aside.
    pub fn needs_force(&self) -> bool {
        !matches!(self, Self::Ignored(files) if bytes(files) <= KEPT_BYTES)
    }

    pub(crate) fn inside(self, path: &Path) -> UnsavedItem {
        Self::Inside { path: path.to_path_buf(), item: Box::new(self) }
    }

    pub(crate) fn remedy(&self) -> Remedy {
        match self {
            Self::Uncommitted(_) => Remedy::CommitOrForce,
            Self::Staged(_) => Remedy::RecoverOrForget,
            Self::Hidden { mark, .. } => Remedy::KeepHiddenOrForce(*mark),
            Self::Operation(operation) => Remedy::FinishOrForce(*operation),
            Self::Commits(commits) | Self::Reflog(commits) | Self::Reference { commits, .. } => {
                Remedy::BranchOrForce(commits.commit.clone())
            }
            Self::Unpushed(_) => Remedy::PushNestedOrForce,
            Self::Locked => Remedy::UnlockOrForce,
            Self::RepositoryOf(_) => Remedy::RemoveOtherOrForce,
            Self::Orphaned(_) => Remedy::RepairNestedOrForce,
            Self::InSubmodule(_) | Self::Unreadable(_) | Self::Misplaced(_) => Remedy::MoveNestedOrForce,
            Self::Inside { item, .. } => match &**item {
                Self::Uncommitted(_) => Remedy::CommitNestedOrForce,
                Self::Commits(_) => Remedy::BranchNestedOrForce,
                other => other.remedy(),
            },
            Self::Ignored(_) => Remedy::MoveIgnoredOrForce,
            Self::Service(_) => Remedy::KeepDataOrForce,
        }
    }

    /// Describes it after "the worktree has". `place` follows the noun.
    fn phrase(&self, place: &str) -> String {
        match self {
            Self::Uncommitted(paths) => format!("uncommitted changes{place}: {}", listed(paths)),
            Self::Staged(paths) => format!("staged changes{place} found nowhere else: {}", listed(paths)),
            Self::Hidden { path, mark } => {
                format!("changes of {}{place} that git was told to ignore (`--{mark}`)", quoted(path))
            }
            Self::InSubmodule(paths) => {
                format!("files{place} in the directory of a submodule, where git does not look: {}", listed(paths))
            }
            Self::Operation(operation) => format!("an unfinished {operation}{place}"),
            Self::Commits(commits) => format!("commits{place} on no branch or tag ({commits})"),
            Self::Reflog(commits) => format!("commits{place} only in HEAD's reflog ({commits})"),
            Self::Reference { name, commits } => {
                format!("commits{place} only on its `{}` ({commits})", ShownPath(name))
            }
            Self::Unpushed(commits) => format!("commits{place} on none of its remotes ({commits})"),
            Self::Locked => format!("a locked worktree{place}"),
            Self::RepositoryOf(path) => format!("the repository{place} of the worktree {}", quoted(path)),
            Self::Orphaned(path) => format!("a worktree{place} of the repository {}, which is not there", quoted(path)),
            Self::Unreadable(said) => format!("something{place} that cannot be read: {said}"),
            Self::Misplaced(path) => {
                format!("something else at {}, which is registered as another worktree", quoted(path))
            }
            Self::Inside { path, item } => item.phrase(&format!(" in {}", quoted(path))),
            Self::Ignored(files) if self.needs_force() => {
                let largest = files.iter().max_by_key(|file| file.bytes);
                let largest = largest.map(|file| format!("{}, {} MB", quoted(&file.path), file.bytes / 1_000_000));
                format!(
                    "{} MB of ignored files that only it has, too much to move aside (the largest: {})",
                    bytes(files) / 1_000_000,
                    largest.unwrap_or_default()
                )
            }
            Self::Ignored(files) => {
                let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
                format!("ignored files that only it has: {}", listed(&paths))
            }
            Self::Service(name) => {
                format!("the data of the service `{}`, which may have changes found nowhere else", ShownPath(name))
            }
        }
    }
}

impl fmt::Display for UnsavedItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.phrase(""))
    }
}

impl fmt::Display for LooseCommits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = &self.commit[..self.commit.len().min(12)];
        match self.count {
            0 | 1 => f.write_str(commit),
            COUNTED => write!(f, "{commit} and at least {} more", COUNTED - 1),
            more => write!(f, "{commit} and {} more", more - 1),
        }
    }
}

/// Describes the items that only force removes, in one sentence.
pub(crate) fn all_of(items: &[UnsavedItem]) -> String {
    items.iter().filter(|item| item.needs_force()).map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

pub(crate) fn remedy_of(items: &[UnsavedItem]) -> Remedy {
    // Most leftovers of an unfinished operation are settled with it.
    if let Some(operation) = items.iter().find(|item| matches!(item, UnsavedItem::Operation(_))) {
        return operation.remedy();
    }
    let mut remedies = items.iter().filter(|item| item.needs_force()).map(UnsavedItem::remedy);
    match remedies.next() {
        Some(first) if remedies.all(|other| other == first) => first,
        _ => Remedy::SaveEachOrForce,
    }
}

pub(crate) fn remedy_of_gone(items: &[UnsavedItem]) -> Remedy {
    let is_data = |item: &&UnsavedItem| matches!(item, UnsavedItem::Service(_));
    match items.iter().filter(is_data).count() {
        0 => Remedy::RecoverOrForget,
        all if all == items.len() => Remedy::PruneOrLoseData,
        _ => Remedy::SaveEachOrForce,
    }
}

pub(crate) fn bytes(files: &[IgnoredFile]) -> u64 {
    files.iter().map(|file| file.bytes).sum()
}

const NAMED: usize = 5;

fn listed(paths: &[PathBuf]) -> String {
    let named = paths.iter().take(NAMED).map(|path| quoted(path)).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn quoted(path: &Path) -> String {
    format!("`{}`", ShownPath(path))
}
