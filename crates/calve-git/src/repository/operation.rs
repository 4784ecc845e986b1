//! Recognizes an unfinished operation of git by the files that git keeps for it.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::remedy::UnfinishedOperation;
use crate::trust::is_object_id;

pub(crate) const UNFINISHED: [(&str, UnfinishedOperation); 7] = [
    ("rebase-merge", UnfinishedOperation::Rebase),
    ("rebase-apply", UnfinishedOperation::RebaseOrAm),
    ("MERGE_HEAD", UnfinishedOperation::Merge),
    ("MERGE_AUTOSTASH", UnfinishedOperation::Merge),
    ("CHERRY_PICK_HEAD", UnfinishedOperation::CherryPick),
    ("REVERT_HEAD", UnfinishedOperation::Revert),
    ("BISECT_LOG", UnfinishedOperation::Bisect),
];

/// Returns the unfinished operation here: its stash and its commits so far exist nowhere else.
pub(crate) fn unfinished(directory: &Path) -> Option<UnfinishedOperation> {
    let is_there = |name: &str| fs_err::symlink_metadata(directory.join(name)).is_ok();
    UNFINISHED.iter().find(|(name, _)| is_there(name)).map(|(_, operation)| *operation)
}

/// Returns the unfinished operation here, if it will go back to a branch with one of these names.
pub(crate) fn returning(directory: &Path, names: &HashSet<String>) -> Option<UnfinishedOperation> {
    let files = [
        ("rebase-merge/head-name", UnfinishedOperation::Rebase),
        ("rebase-apply/head-name", UnfinishedOperation::Rebase),
        ("BISECT_START", UnfinishedOperation::Bisect),
    ];
    files.into_iter().find(|(file, _)| names_one(&directory.join(file), names)).map(|(_, operation)| operation)
}

/// Returns the unfinished operation here, if it will go back to a branch with one of these names, or move it.
pub(crate) fn holding(directory: &Path, names: &HashSet<String>) -> Option<UnfinishedOperation> {
    let moves = || names_one(&directory.join("rebase-merge/update-refs"), names);
    returning(directory, names).or_else(|| moves().then_some(UnfinishedOperation::Rebase))
}

/// Returns whether a line of git's file is one of these names, in full or without `refs/heads/`.
pub(crate) fn names_one(file: &Path, names: &HashSet<String>) -> bool {
    let text = fs_err::read(file).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().any(|line| {
        let line = line.strip_prefix("ref: ").unwrap_or(line);
        names.contains(line) || names.contains(&format!("refs/heads/{line}"))
    })
}

#[derive(Debug)]
pub(crate) struct RebaseNote {
    pub(crate) commit: String,
    pub(crate) since_unix_s: i64,
}

pub(crate) fn unfinished_rebase(directory: &Path) -> Option<RebaseNote> {
    let notes = ["rebase-merge/orig-head", "rebase-apply/orig-head"];
    let found = notes.iter().find_map(|note| {
        let path = directory.join(note);
        Some((fs_err::read_to_string(&path).ok()?, fs_err::symlink_metadata(&path).ok()?.mtime()))
    });
    let (text, since_unix_s) = found?;
    let commit = text.trim_end().to_owned();
    is_object_id(&commit).then_some(RebaseNote { commit, since_unix_s })
}
