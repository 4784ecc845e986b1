//! Symlinks: absolute ones into another tree, and relative ones that leave the tree.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::escape::entry::{EntryName, WalkEntry};
use crate::escape::report::{Action, Explanation, Finding, ReferenceKind, Step};
use crate::escape::trees::{Trees, relative};
use crate::paths::plain;

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.is_link()
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    found.extend(entry.link().and_then(|target| match target.is_absolute() {
        true => into_another(ReferenceKind::AbsoluteLink, entry, trees, &plain(&target), target),
        false => leaving(entry, trees, &target),
    }));
}

/// Finds a relative link that leaves the tree: its target depends on the tree's place.
fn leaving(entry: &WalkEntry<'_>, trees: &Trees, target: &Path) -> Option<Finding> {
    if !leaves(entry.folder, target) {
        return None;
    }
    let here = trees.new.join(entry.folder);
    let into_another = |path: &Path| into_another(ReferenceKind::LeavingLink, entry, trees, path, path.to_path_buf());
    let leads_to = plain(&here.join(target));
    into_another(&leads_to).or_else(|| {
        // In the copied tree, the same text led elsewhere, if that tree is elsewhere.
        let led_to = plain(&trees.old_path()?.join(entry.folder).join(target));
        if led_to == leads_to || led_to.starts_with(&trees.new) {
            return None;
        }
        into_another(&led_to).or_else(|| {
            led_to.symlink_metadata().ok()?;
            let instead = relative(&here, &led_to);
            Some(to(ReferenceKind::LeavingLink, entry, led_to.clone(), &instead, Explanation::SameTarget(led_to)))
        })
    })
}

/// Returns whether following `target` from `folder` leads above the root of the tree.
fn leaves(folder: &Path, target: &Path) -> bool {
    let mut depth = folder.components().count();
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
    }
    false
}

/// Finds a link to `path` in another tree. The finding shows `names`.
fn into_another(
    kind: ReferenceKind,
    entry: &WalkEntry<'_>,
    trees: &Trees,
    path: &Path,
    names: PathBuf,
) -> Option<Finding> {
    let below = trees.below_another(path)?;
    let reported = |why| Some(Finding::reported(kind, entry.path(), names.clone(), why));
    if below == entry.path() {
        return reported(Explanation::NoOtherTarget);
    } else if !trees.has(&below) {
        return reported(Explanation::TargetMissing(below));
    }
    let there = trees.new.join(below);
    let instead = match kind {
        ReferenceKind::AbsoluteLink => there,
        _ => relative(&trees.new.join(entry.folder), &there),
    };
    Some(to(kind, entry, names, &instead, Explanation::NamesThisTree(kind)))
}

fn to(kind: ReferenceKind, entry: &WalkEntry<'_>, names: PathBuf, instead: &Path, explanation: Explanation) -> Finding {
    let (path, target) = (entry.path(), instead.as_os_str().as_bytes().to_vec());
    let steps = vec![Step::Relink { path: path.clone(), target }];
    Finding { kind, path, names, action: Action::Repaired, explanation, steps }
}
