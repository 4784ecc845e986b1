//! Symlinks: absolute ones into another tree, and relative ones that leave the tree.

use std::path::{Path, PathBuf};

use crate::escape::detectors::detector::Detector;
use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::{Action, Explanation, PendingFinding, ReferenceKind, Step};
use crate::escape::trees::{Trees, relative};
use crate::paths::{path_of, plain};

pub(super) struct AbsoluteLinks;

impl Detector for AbsoluteLinks {
    fn wants(&self, entry: &EntryName<'_>) -> bool {
        entry.is_link()
    }

    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>) {
        let Some(target) = entry.link().filter(|target| target.starts_with(b"/")).map(path_of) else { return };
        let Some(below) = trees.below_another(&plain(&target)) else { return };
        let instead = trees.new_path().join(&below);
        found.push(relinked(ReferenceKind::AbsoluteLink, entry, trees, target, &below, &instead));
    }
}

/// Relative targets above the tree. Where they lead depends on where the tree is.
pub(super) struct LeavingLinks;

impl Detector for LeavingLinks {
    fn wants(&self, entry: &EntryName<'_>) -> bool {
        entry.is_link()
    }

    fn look(&self, entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<PendingFinding>) {
        let Some(target) = entry.link().filter(|target| !target.starts_with(b"/")).map(path_of) else { return };
        if !leaves(entry.folder, &target) {
            return;
        }
        let here = trees.new_path().join(entry.folder);
        let leads_to = plain(&here.join(&target));
        if let Some(below) = trees.below_another(&leads_to) {
            let instead = relative(&here, &trees.new_path().join(&below));
            found.push(relinked(ReferenceKind::LeavingLink, entry, trees, leads_to, &below, &instead));
            return;
        }
        // In the tree that was copied the same text led elsewhere, if that one is elsewhere.
        let Some(old) = trees.old_path() else { return };
        let led_to = plain(&old.join(entry.folder).join(&target));
        if led_to == leads_to || led_to.starts_with(trees.new_path()) {
            return;
        }
        if let Some(below) = trees.below_another(&led_to) {
            let instead = relative(&here, &trees.new_path().join(&below));
            found.push(relinked(ReferenceKind::LeavingLink, entry, trees, led_to, &below, &instead));
            return;
        }
        if led_to.symlink_metadata().is_ok() {
            let instead = relative(&here, &led_to);
            found.push(to(ReferenceKind::LeavingLink, entry, led_to, &instead, Explanation::SameTarget));
        }
    }
}

/// Returns whether going along `target` from `folder` comes above the root of the tree.
fn leaves(folder: &Path, target: &Path) -> bool {
    let mut depth = folder.components().count();
    for part in target.components() {
        match part {
            std::path::Component::ParentDir if depth == 0 => return true,
            std::path::Component::ParentDir => depth -= 1,
            std::path::Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    false
}

fn relinked(
    kind: ReferenceKind,
    entry: &WalkEntry<'_>,
    trees: &Trees,
    names: PathBuf,
    below: &Path,
    instead: &Path,
) -> PendingFinding {
    // It must not lead to itself either.
    if !trees.has(below) || below == entry.path() {
        return PendingFinding::reported(kind, entry.path(), names, Explanation::TargetMissing(below.to_path_buf()));
    }
    to(kind, entry, names, instead, Explanation::NamesThisTree)
}

fn to(
    kind: ReferenceKind,
    entry: &WalkEntry<'_>,
    names: PathBuf,
    instead: &Path,
    explanation: Explanation,
) -> PendingFinding {
    use std::os::unix::ffi::OsStrExt as _;
    let (path, target) = (entry.path(), instead.as_os_str().as_bytes().to_vec());
    let steps = vec![Step::Relink { path: path.clone(), target }];
    PendingFinding { kind, path, names, action: Action::Repaired, explanation, steps }
}
