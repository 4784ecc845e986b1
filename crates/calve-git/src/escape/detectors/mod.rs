//! The kinds of references, one file per kind.

mod cargo;
mod cmake;
pub(super) mod dist_info;
mod editable;
mod git_pointer;
mod links;
mod shebang;
mod texts;
mod web;

use super::entry::{EntryName, WalkEntry};
use super::report::PendingFinding;
use super::trees::Trees;

/// One kind of reference.
pub(super) trait Detector: Sync {
    /// Returns whether an entry is worth a look, by its name and folder alone.
    fn wants(&self, entry: &EntryName<'_>) -> bool;
    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>);
}

/// All kinds, in the order in which an entry is offered to them.
pub(super) const DETECTORS: &[&dyn Detector] = &[
    &links::AbsoluteLinks,
    &links::LeavingLinks,
    &git_pointer::GitPointer,
    &texts::ACTIVATE,
    &shebang::Shebang,
    &texts::PYVENV,
    &texts::PATH_FILES,
    &editable::Finder,
    &texts::DIRECT_URL,
    &texts::PNPM,
    &texts::NEXT,
    &web::Web,
    &cmake::CMake,
    &cargo::Cargo,
];
