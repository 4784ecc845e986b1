//! Tells which operation git is in the middle of, by the files that it keeps meanwhile.

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

/// Returns the operation that git is in the middle of here: its stash and its commits so far exist nowhere else.
pub(crate) fn unfinished(directory: &Path) -> Option<UnfinishedOperation> {
    let is_there = |name: &str| fs_err::symlink_metadata(directory.join(name)).is_ok();
    UNFINISHED.iter().find(|(name, _)| is_there(name)).map(|(_, operation)| *operation)
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
