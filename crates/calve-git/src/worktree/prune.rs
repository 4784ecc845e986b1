use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::{Error, Result};
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::repository::status::WorktreeState;
use crate::unsaved_item::UnsavedItem;
use crate::worktree::add::target;
use crate::worktree::registration::{self, sweep};
use crate::worktree::unsaved;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// git's own directory of the repository.
    pub common: PathBuf,
    /// Worktrees that are gone or replaced, and which git no longer lists.
    pub forgotten: Vec<PathBuf>,
    /// Their entries in the repository. Only in a plan.
    pub entries: Vec<PathBuf>,
    /// Worktrees that are not where git lists them, and stay listed.
    pub kept: Vec<KeptEntry>,
    /// Hidden trees of killed runs.
    pub swept: Vec<PathBuf>,
    /// Directories that may contain trash: work for [`calve_core::reap`].
    pub places: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptEntry {
    /// Where git lists it, or its entry if git does not.
    pub path: PathBuf,
    pub reason: String,
    pub remedy: Option<Remedy>,
    /// The items that only its entry has, if that is the reason.
    pub unsaved: Vec<UnsavedItem>,
}

/// Makes git forget worktrees that are gone or replaced, unless they are locked or their entry has the last copy of something. Also removes
/// the leftovers of killed runs. Never touches the directory at a worktree's path.
pub fn prune(start: &Path) -> Result<PruneReport> {
    let repository = Repository::open(start)?;
    repository.check_references(Remedy::RemoveWithGit)?;
    let swept = sweep(&repository.common)?;
    let repository = if swept.places.is_empty() { repository } else { Repository::open(start)? };
    let common = repository.common.clone();
    let mut pruned = PruneReport { common, swept: swept.trees, ..PruneReport::default() };
    registration::remove_broken(&repository.common, |entry| {
        let unsaved = unsaved::of_broken(&repository, entry);
        repository.own != entry
            && pruned
                .may_go(entry.to_path_buf(), unsaved.and_then(|items| unsaved::check_none_lost(entry, true, &items)))
    })?;
    target::sweep_fetched(&repository.git())?;
    let mut places: BTreeSet<PathBuf> =
        repository.worktrees.iter().filter_map(|worktree| Some(worktree.path.parent()?.to_path_buf())).collect();
    places.extend(swept.places);
    if let Some(here) = &repository.here {
        // Where `add` makes nothing, it left nothing.
        let usual =
            Config::of_worktree(here)?.place(&repository, "x").and_then(|place| place.check().map(|()| place.path()));
        places.extend(usual.ok().and_then(|path| Some(path.parent()?.to_path_buf())));
    }
    for place in places {
        if place.is_dir() {
            pruned.swept.extend(calve_core::internal::sweep(&place)?);
            pruned.places.push(place);
        }
    }
    // Later failures are only recorded: an error would hide which worktrees were forgotten.
    // Deleting leftovers takes a while, in which a worktree may have come back.
    let repository = if pruned.swept.is_empty() { repository } else { Repository::open(start).unwrap_or(repository) };
    for (path, entry) in pruned.find_gone(&repository) {
        if pruned.may_go(path.clone(), registration::remove(&entry)) {
            pruned.forgotten.push(path);
        }
    }
    Ok(pruned)
}

/// Returns which worktrees [`prune`] would forget, and which keep. Changes nothing.
pub fn plan_prune(start: &Path) -> Result<PruneReport> {
    let repository = Repository::open(start)?;
    repository.check_references(Remedy::RemoveWithGit)?;
    let mut planned = PruneReport { common: repository.common.clone(), ..PruneReport::default() };
    (planned.forgotten, planned.entries) = planned.find_gone(&repository).into_iter().unzip();
    Ok(planned)
}

impl PruneReport {
    /// Returns the worktrees that are not where git lists them, with their entries. Records those that stay listed.
    fn find_gone(&mut self, repository: &Repository) -> Vec<(PathBuf, PathBuf)> {
        let mut gone = Vec::new();
        for worktree in repository.worktrees.iter().filter(|worktree| worktree.locked.is_none()) {
            let (Some(entry), Some(problem)) = (&worktree.entry, worktree.status.problem(&worktree.path)) else {
                continue;
            };
            let forgettable = match worktree.status {
                WorktreeState::Gone | WorktreeState::Foreign(_) | WorktreeState::Replaced(_) => {
                    unsaved::of_entry(repository, worktree, entry)
                        .and_then(|items| unsaved::check_none_lost(&worktree.path, true, &items))
                }
                _ => Err(problem),
            };
            if self.may_go(worktree.path.clone(), forgettable) {
                gone.push((worktree.path.clone(), entry.clone()));
            }
        }
        gone
    }

    fn may_go(&mut self, path: PathBuf, checked: Result<()>) -> bool {
        let Err(error) = checked else { return true };
        let (reason, remedy) = (error.to_string(), error.remedy());
        let unsaved = if let Error::Unsaved { items, .. } = error { items } else { Vec::new() };
        self.kept.push(KeptEntry { path, reason, remedy, unsaved });
        false
    }
}
