//! Copied `.git` files, which make git work on the original, and repositories that borrow another tree's objects.

use std::path::Path;

use crate::directory::{open_directory, read};
use crate::escape::entry::{EntryName, TEXT_BYTES, WalkEntry};
use crate::escape::report::{Explanation, Finding, ReferenceKind};
use crate::escape::trees::Trees;
use crate::paths::{path_of, plain, pointed_to};

pub(super) fn wants(entry: &EntryName<'_>) -> bool {
    entry.name() == b".git" && (entry.is_directory() || entry.is_file())
}

pub(super) fn look(entry: &WalkEntry<'_>, trees: &Trees, found: &mut Vec<Finding>) {
    if entry.is_directory() {
        found.extend(borrowed(entry, trees));
    } else if let Some(repository) = entry.text().as_deref().and_then(pointed_to) {
        match entry.folder.as_os_str().is_empty() {
            true => found.extend(of_the_root(trees, &repository)),
            false => found.extend(nested(entry, trees, &repository)),
        }
    }
}

/// Reports the worktree's own pointer, unless the repository points back: then it is right.
fn of_the_root(trees: &Trees, repository: &Path) -> Option<Finding> {
    let repository = plain(&trees.new.join(repository));
    // A submodule's repository, or a separate one, has nothing that points back.
    let back = fs_err::read(repository.join("gitdir")).ok()?;
    let back = repository.join(path_of(back.trim_ascii_end()));
    let own = trees.new.join(".git");
    let same = |a: &Path, b: &Path| a == b || fs_err::canonicalize(a).ok() == fs_err::canonicalize(b).ok();
    if same(&plain(&back), &own) {
        return None;
    }
    Some(Finding::reported(ReferenceKind::GitPointer, ".git".into(), back, Explanation::IndexOfAnother))
}

fn nested(entry: &WalkEntry<'_>, trees: &Trees, repository: &Path) -> Option<Finding> {
    let here = plain(&trees.new.join(entry.folder).join(repository));
    if here.strip_prefix(&trees.new).is_ok_and(|below| trees.has(below)) {
        return None;
    }
    let led_to = match repository.is_absolute() {
        true => here,
        // Above the copied tree; here it leads nowhere.
        false => plain(&trees.old_path()?.join(entry.folder).join(repository)),
    };
    trees.below_another(&led_to)?;
    let explanation = match led_to.components().any(|part| part.as_os_str() == "modules") {
        true => Explanation::InitSubmodule,
        false => Explanation::PlainFiles,
    };
    Some(Finding::dropped(ReferenceKind::GitPointer, entry.path(), led_to, explanation))
}

/// Reports a nested repository that borrows objects from another tree, and so has only some of its own.
fn borrowed(entry: &WalkEntry<'_>, trees: &Trees) -> Option<Finding> {
    let mut directory = open_directory(entry.directory, c".git").ok()?;
    for name in [c"objects", c"info"] {
        directory = open_directory(&directory, name).ok()?;
    }
    let text = read(&directory, c"alternates", TEXT_BYTES)?;
    let names = trees.first_named(&text)?;
    let path = entry.path().join("objects/info/alternates");
    Some(Finding::reported(ReferenceKind::GitPointer, path, names, Explanation::BorrowsObjects))
}
