//! The kinds of references, one file per kind.

mod activate;
mod cargo;
mod cmake;
pub(super) mod dist_info;
mod editable;
mod git_pointer;
mod links;
mod pnpm;
mod pyvenv;
mod shebang;
mod web;

use super::entry::Entry;
use super::report::Found;
use super::trees::Trees;

/// One kind of reference.
pub(super) trait Detector: Sync {
    /// Whether an entry is worth a look, by its name and place alone.
    fn wants(&self, entry: &Entry<'_>) -> bool;
    /// Looks at it.
    fn look(&self, entry: &Entry<'_>, trees: &Trees, found: &mut Vec<Found>);
}

/// All kinds, in the order in which an entry is offered to them.
pub(super) const DETECTORS: &[&dyn Detector] = &[
    &links::Absolute,
    &links::Leaving,
    &git_pointer::GitPointer,
    &activate::Activate,
    &shebang::Shebang,
    &pyvenv::PyvenvCfg,
    &editable::Editable,
    &dist_info::DirectUrl,
    &pnpm::Pnpm,
    &web::Web,
    &cmake::CMake,
    &cargo::Cargo,
];
