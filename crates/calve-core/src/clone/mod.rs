//! The plot of a clone: check, sweep, stage, fill, publish, report. Both engines follow it.

mod check;

pub(crate) mod build;
mod finish;
pub(crate) mod follow;
pub(crate) mod merge;
pub(crate) mod revert;
mod scrub;
pub(crate) mod stage;
mod update;

use std::path::Path;
use std::time::Instant;

use self::check::{CloneRequest, check, sweep_leftovers};
use crate::clone::stage::StagedTree;
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::CloneReport;
use crate::strategy::method::{Outcome, StrategyRun};
use crate::tree::fill::room;
use crate::tree::notes::Notes;
use crate::tree::stable::check_all_frozen;
use crate::vocabulary::strategy::Strategy;

/// Makes `dst` an independent, writable copy of `src` by the fastest strategy that these two places offer.
///
/// `dst` is the new entry, never a directory to copy into; its parent must exist. It is absent (or as it was) or
/// complete at any time, whatever happens to this process. The source is never written.
///
/// # Errors
/// Leaves nothing behind, whatever the error. Fails with [`Error::RequirementRefused`] if a requirement cannot be met.
pub fn clone_tree(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
    clone_and_change(src, dst, options, |_| Ok(()))
}

/// Does the same as [`clone_tree`], with the changes that `change` makes to the staged tree.
pub(crate) fn clone_and_change(
    src: &Path,
    dst: &Path,
    options: &CloneOptions,
    change: impl FnOnce(&StagedTree<'_>) -> Result<(), Error>,
) -> Result<CloneReport, Error> {
    let started = Instant::now();
    let CloneRequest { source, destination, exclude } = check(src, dst, options)?;
    let notes = Notes::default();
    let trash_waits = sweep_leftovers(&destination, &notes, options)?;
    let mut staged = StagedTree::for_clone(&destination, options)?;
    let run = staged.fill(source, exclude, &notes, options)?;
    change(&staged)?;
    let trashed = staged.publish(&notes)?;
    let report = run.report(src, dst, &notes, started);
    Ok(CloneReport { trash_waits: trash_waits || trashed.is_some(), trashed, ..report })
}

/// Returns the report of a dry run: the strategy that [`clone_tree`] would use, and why no better one. Knows nothing of
/// entries and bytes, which only a clone counts. Leaves nothing behind.
///
/// # Errors
/// Fails as the clone certainly would: without room, or if the source is a template that was changed.
pub fn plan(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
    let started = Instant::now();
    let CloneRequest { source, destination, exclude } = check(src, dst, options)?;
    let (method, refused) = StagedTree::for_clone(&destination, options)?.plan(&source)?;
    if let Some(method) = method {
        if method.strategy.needs_room() {
            room::check(&source, destination.parent(), dst, &exclude, &options.cancel)?;
        }
        if method.makes_each_file {
            check_all_frozen(&source, &exclude, options)?;
        }
    }
    let strategy = method.map_or(Strategy::Spare, |method| method.strategy);
    let run = StrategyRun { strategy, refused, spare: None, spares_wanted: false, outcome: Outcome::default() };
    Ok(run.report(src, dst, &Notes::default(), started))
}

/// Returns the strategy that [`clone_tree`] would use if there is room.
pub(crate) fn strategy(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Strategy, Error> {
    let CloneRequest { source, destination, .. } = check(src, dst, options)?;
    let (method, _) = StagedTree::for_clone(&destination, options)?.plan(&source)?;
    Ok(method.map_or(Strategy::Spare, |method| method.strategy))
}
