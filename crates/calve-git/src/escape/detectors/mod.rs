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

use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::Finding;
use crate::escape::trees::Trees;

/// A check by name and folder alone, and the inspection of an entry that passes it.
type Detector = (fn(&EntryName<'_>) -> bool, fn(&WalkEntry<'_>, &Trees, &mut Vec<Finding>));

/// In the order in which an entry is offered to them.
pub(super) const DETECTORS: [Detector; 8] = [
    (links::wants, links::look),
    (git_pointer::wants, git_pointer::look),
    (texts::wants, texts::look),
    (shebang::wants, shebang::look),
    (editable::wants, editable::look),
    (web::wants, web::look),
    (cmake::wants, cmake::look),
    (cargo::wants, cargo::look),
];
