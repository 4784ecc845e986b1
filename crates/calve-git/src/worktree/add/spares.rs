//! Spares of whole worktrees, or of ignored directories, which are handed over instead of cloning.
//!
//! A worktree's spare has everything but `.git`. Handed over and brought up to date, it equals the donor. Then the rules for cloned files choose
//! which of its files stay, git checks out files that differ in the commit, and it is registered as any other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::StagedTree;
use calve_core::options::SpareUse;
use calve_core::spares::{SpareOptions, Spares};
use calve_core::{Choice, CloneOptions, CloneReport, Strategy, UnreadableEntry, clone_tree};

use crate::error::Result;
use crate::repository::Repository;
use crate::worktree::add::request::no_donor;
use crate::worktree::add::selector::{Selector, rules_below};
use crate::worktree::status::UntrackedEntry;

/// Entries that a worktree's spare is made without.
const WITHOUT: &str = "/.git";

/// Returns the root of the worktree around `start`, as the source of spares, and sets the `options` that these need.
pub fn of_worktree(start: &Path, options: &mut SpareOptions) -> Result<PathBuf> {
    let repository = Repository::open(start)?;
    let root = repository.here.clone().ok_or_else(|| no_donor(&repository))?;
    options.staged = true;
    options.like.exclude = vec![WITHOUT.to_owned()];
    Ok(root)
}

/// Returns how to use spares of the whole donor, if it is to have any.
pub(crate) fn of_donor(donor: &Path, options: &CloneOptions) -> Result<Option<SpareUse>> {
    let Some(mut using) = options.spares.clone() else { return Ok(None) };
    using.made_without = vec![WITHOUT.to_owned()];
    Ok(Spares::at(&using.home).are_wanted(donor, &using.made_without)?.then_some(using))
}

/// Returns the roots that have spares and contain only ignored entries.
pub(crate) fn with_spares(
    donor: &Path,
    roots: &[UntrackedEntry],
    options: &CloneOptions,
    is_elsewhere: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>> {
    let Some(using) = &options.spares else { return Ok(Vec::new()) };
    // A snapshot has the directory already, and no spare can be moved into a subvolume.
    if calve_core::internal::is_subvolume(donor)? {
        return Ok(Vec::new());
    }
    let spares = Spares::at(&using.home);
    let mut found = Vec::new();
    for root in roots.iter().filter(|root| root.is_directory) {
        if spares.are_wanted(&donor.join(&root.path), &[])? && !is_elsewhere(&root.path) {
            found.push(root.path.clone());
        }
    }
    Ok(found)
}

/// Makes a directory of the staged worktree from a spare of `src`. `None` if no spare can be used: then it is cloned.
pub(crate) fn claim(
    staged: &StagedTree<'_>,
    src: &Path,
    at: &Path,
    plan: &Arc<Selector>,
    options: &CloneOptions,
) -> Option<CloneReport> {
    let mut only = options.clone();
    only.strategy = Choice::Only(Strategy::Spare);
    only.select = Some(rules_below(plan, at));
    only.unreadable = UnreadableEntry::default();
    clone_tree(src, &staged.path().join(at), &only).ok()
}
