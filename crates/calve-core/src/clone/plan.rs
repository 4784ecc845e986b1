//! Predicting a clone's strategy or failure.

use std::path::Path;

use super::check::{CloneRequest, check};
use super::stage::StagedTree;
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::ClonePlan;
use crate::tree::fill::room;
use crate::tree::stable::check_all_frozen;
use crate::vocabulary::strategy::Strategy;

/// Returns the strategy that [`clone_tree`](super::clone_tree) would use, and why no better one. Leaves nothing behind.
///
/// # Errors
/// Fails as the clone certainly would: without room, or if the source is a template that was changed.
pub fn plan(src: &Path, dst: &Path, options: &CloneOptions) -> Result<ClonePlan, Error> {
    let request = check(src, dst, options)?;
    let CloneRequest { source, destination, exclude } = &request;
    let (method, refused) = StagedTree::for_clone(destination, options)?.plan(source)?;
    if let Some(method) = method {
        if method.strategy == Strategy::Copy {
            room::check(source, destination.parent(), dst, exclude, &options.cancel)?;
        }
        if method.makes_each_file {
            check_all_frozen(source, exclude, options)?;
        }
    }
    let strategy = method.map_or(Strategy::Spare, |method| method.strategy);
    Ok(ClonePlan { src: src.into(), dst: dst.into(), strategy, refused })
}

/// Returns the strategy that [`clone_tree`](super::clone_tree) would use if there is room.
pub(crate) fn strategy(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Strategy, Error> {
    let CloneRequest { source, destination, .. } = check(src, dst, options)?;
    let (method, _) = StagedTree::for_clone(&destination, options)?.plan(&source)?;
    Ok(method.map_or(Strategy::Spare, |method| method.strategy))
}
