//! Finding out how a clone would be made, and that it would fail.

use std::ffi::CStr;
use std::path::Path;

use super::check::{CloneRequest, check};
use super::stage::StagedTree;
use crate::error::Error;
use crate::options::CloneOptions;
use crate::options::internal::FrozenSince;
use crate::report::ClonePlan;
use crate::scan::{ScanOptions, scan_tree};
use crate::tree::exclude::Exclusions;
use crate::tree::fill::room;
use crate::tree::stable::check_frozen;
use crate::tree::walk::{Descent, EntryKind, Folder, Visitor};
use crate::vocabulary::strategy::Strategy;

/// Returns the strategy that [`clone_tree`](super::clone_tree) would use, and why nothing better. Tries as much, and makes nothing that stays.
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
        if options.internal.frozen.is_some() && method.makes_each_file {
            check_all(src, exclude, options)?;
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

/// Fails if an entry of a template was changed.
fn check_all(root: &Path, exclude: &Exclusions, options: &CloneOptions) -> Result<(), Error> {
    let scan = ScanOptions { threads: options.threads, cancel: options.cancel.clone(), ..ScanOptions::default() };
    let visitor = || FrozenVisitor { root, exclude, frozen: options.internal.frozen.as_ref(), checked: Ok(()) };
    scan_tree(root, &scan, visitor)?.visitors.into_iter().try_for_each(|visitor| visitor.checked)
}

struct FrozenVisitor<'a> {
    root: &'a Path,
    exclude: &'a Exclusions,
    frozen: Option<&'a FrozenSince>,
    checked: Result<(), Error>,
}

impl Visitor for FrozenVisitor<'_> {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent {
        let path = || folder.path().join(crate::sys::path(name));
        let is_left_out = || self.exclude.matches(&path(), kind == EntryKind::Directory);
        if self.checked.is_err() || (!self.exclude.is_empty() && is_left_out()) {
            return Descent::No;
        }
        if let Ok(stat) = crate::sys::stat_at(folder.directory(), name) {
            self.checked = check_frozen(self.frozen, &stat, || self.root.join(path()));
        }
        Descent::Yes
    }
}
