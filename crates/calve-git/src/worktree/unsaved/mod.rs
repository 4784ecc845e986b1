//! Lists everything that exists only in a worktree and goes with it. All code that removes or replaces one asks it.

mod entry;
mod hidden;
mod ignored;
mod kept;
mod nested;
mod receipt;
pub(crate) mod reflog;
mod unpushed;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::joined;
use calve_core::report::SkippedEntry;

pub use kept::KeptFiles;
pub(crate) use kept::{check_place, keep, sweep_kept};
pub use receipt::UnsavedReceipt;

use crate::environment::is_own_env_file;
use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{if_there, real};
use crate::repository::entries::{DONOR, noted};
use crate::repository::state::LinkedWorktree;
use crate::repository::status::WorktreeState;
use crate::repository::{Repository, Worktree};
use crate::unsaved_item::UnsavedItem;
use crate::worktree::status::Status;
use crate::worktree::unsaved::ignored::{Donor, IgnoredSearch};
use crate::worktree::unsaved::nested::Nested;

/// Returns a part of a list. An error, which may hide items, becomes an item of `unread` if there is such a list.
pub(crate) fn part<T: Default>(part: Result<T>, unread: &mut Option<Vec<UnsavedItem>>) -> Result<T> {
    match (part, unread) {
        (Err(error), Some(unread)) if !matches!(error, Error::Interrupted) => {
            unread.push(UnsavedItem::Unreadable(error.to_string()));
            Ok(T::default())
        }
        (part, _) => part,
    }
}

/// Lists everything in a worktree and its entry that exists nowhere else. `unread`: see [`part`].
pub(crate) fn of_worktree(
    repository: &Repository,
    worktree: &Worktree,
    linked: &LinkedWorktree,
    cancel: &CancelToken,
    unread: &mut Option<Vec<UnsavedItem>>,
) -> Result<Vec<UnsavedItem>> {
    let git = Git::at(&linked.path);
    let root = real(&linked.path);
    let usable = repository.worktrees.iter().filter(|other| other.is_usable());
    let others = usable.map(|other| real(&other.path)).filter(|other| !other.starts_with(&root));
    let others: Vec<PathBuf> = others.collect();
    // In parallel: git takes longer to start than to answer, and the disk is waited for.
    let (entry, hidden, status, nested) = std::thread::scope(|scope| {
        let entry = scope.spawn(|| entry::find(repository, worktree, &linked.entry));
        let hidden = scope.spawn(|| hidden::find(&git, &linked.path, &|_, _| false));
        let nested = scope.spawn(|| Nested::find(linked, &root, &others, cancel));
        let status = Status::with_submodules(&git);
        (joined(entry), joined(hidden), status, joined(nested))
    });
    let (mut items, mut status, mut nested) = (part(entry, unread)?, part(status, unread)?, part(nested, unread)?);
    status.untracked.retain(|found| found.is_directory || !is_own_env_file(&root, &found.path));
    let changed = status.uncommitted();
    if !changed.is_empty() {
        items.push(UnsavedItem::Uncommitted(changed));
    }
    items.extend(part(hidden, unread)?);
    items.append(&mut nested.items);
    items.extend(misplaced(repository, worktree));
    let cloned = fs_err::metadata(linked.entry.join(DONOR)).ok().map(|note| (note.mtime(), note.mtime_nsec()));
    let donor = noted(&linked.entry, DONOR).map(|donor| Donor { root: real(&donor), cloned });
    let is_other = |main: &Donor| donor.as_ref().is_none_or(|donor| donor.root != main.root);
    let main = repository.main().map(|main| Donor { root: real(main), cloned: None }).filter(is_other);
    let donors = donor.into_iter().chain(main).filter(|donor| others.contains(&donor.root)).collect();
    let mut search = IgnoredSearch::new(&root, donors, cancel);
    search.add_all(&status.ignored, Path::new(""));
    for (path, ignored) in &nested.ignored {
        search.add_all(ignored, path);
    }
    for SkippedEntry { path, reason } in nested.unread {
        search.add_unread(path, reason.text());
    }
    cancel.check()?;
    items.extend(search.unread());
    let ignored = search.found();
    if !ignored.is_empty() {
        items.push(UnsavedItem::Ignored(ignored));
    }
    Ok(items)
}

/// Lists the items that exist only in the entry of a worktree whose directory is gone or was replaced.
pub(crate) fn of_entry(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Vec<UnsavedItem>> {
    let mut items = entry::find(repository, worktree, entry)?;
    items.extend(entry::staged(repository, worktree, entry)?);
    Ok(items)
}

/// Lists the items that exist only in an entry that git takes for broken.
pub(crate) fn of_broken(repository: &Repository, entry: &Path) -> Result<Vec<UnsavedItem>> {
    // Half made or half removed: git reads nothing in it.
    let Some(text) = if_there(fs_err::read(entry.join("HEAD")))? else { return Ok(Vec::new()) };
    let branch = String::from_utf8_lossy(&text).trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned);
    let git = Git::at(&repository.common).with("GIT_DIR", entry);
    let head = git.answer(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let worktree = Worktree { path: entry.to_path_buf(), branch, head, ..Worktree::default() };
    of_entry(repository, &worktree, entry)
}

pub(crate) fn check_none_lost(path: &Path, is_gone: bool, items: &[UnsavedItem]) -> Result<()> {
    match items.iter().any(UnsavedItem::needs_force) {
        true => Err(Error::Unsaved { path: path.to_path_buf(), is_gone, items: items.to_vec() }),
        false => Ok(()),
    }
}

/// Returns paths inside at which another worktree is registered, but something of unknown owner is.
fn misplaced(repository: &Repository, worktree: &Worktree) -> Vec<UnsavedItem> {
    let outer = real(&worktree.path);
    let others = repository.worktrees.iter().filter(|other| other.path != worktree.path && !other.is_bare);
    let strange = others
        .filter(|other| !matches!(other.status, WorktreeState::Intact | WorktreeState::Gone | WorktreeState::Moved(_)));
    let inside = strange.filter(|other| real(&other.path).starts_with(&outer));
    inside.map(|other| UnsavedItem::Misplaced(other.path.clone())).collect()
}
