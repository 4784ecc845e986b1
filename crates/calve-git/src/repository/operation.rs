//! Tells which operation git is in the middle of, by the files that it keeps meanwhile.

use std::path::Path;

use crate::remedy::UnfinishedOperation;
use crate::trust::is_object_id;

/// The files that git keeps during an operation.
pub(crate) const UNFINISHED: [(&str, UnfinishedOperation); 7] = [
    ("rebase-merge", UnfinishedOperation::Rebase),
    ("rebase-apply", UnfinishedOperation::RebaseOrAm),
    ("MERGE_HEAD", UnfinishedOperation::Merge),
    ("MERGE_AUTOSTASH", UnfinishedOperation::Merge),
    ("CHERRY_PICK_HEAD", UnfinishedOperation::CherryPick),
    ("REVERT_HEAD", UnfinishedOperation::Revert),
    ("BISECT_LOG", UnfinishedOperation::Bisect),
];

/// Returns the operation that git is in the middle of, in the worktree with these files of git's: its own stash and the commits so far
/// exist nowhere else.
pub(crate) fn unfinished(directory: &Path) -> Option<UnfinishedOperation> {
    let is_there = |name: &str| fs_err::symlink_metadata(directory.join(name)).is_ok();
    UNFINISHED.iter().find(|(name, _)| is_there(name)).map(|(_, operation)| *operation)
}

/// Returns the commit that an unfinished rebase began with.
pub(crate) fn rebased_commit(directory: &Path) -> Option<String> {
    let notes = ["rebase-merge/orig-head", "rebase-apply/orig-head"];
    let text = notes.iter().find_map(|note| fs_err::read_to_string(directory.join(note)).ok())?;
    Some(text.trim_end().to_owned()).filter(|text| is_object_id(text))
}
