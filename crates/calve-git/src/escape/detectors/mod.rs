//! The kinds of references, one file per kind.

mod cargo;
mod cmake;
pub(super) mod detector;
pub(super) mod dist_info;
mod editable;
mod git_pointer;
mod links;
mod shebang;
mod texts;
mod web;

use detector::Detector;

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
