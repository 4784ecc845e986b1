//! Finds out why git opens no repository at a place, by asking it in other ways: it has one exit code for all reasons.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use calve_core::internal::ShownPath;

use crate::error::Error;
use crate::git::Git;
use crate::paths::is_missing;
use crate::remedy::Remedy;
use crate::trust;

pub(super) fn unopened(start: &Path, said: &str) -> Error {
    let place = ShownPath(start);
    let words = || said.split_whitespace().collect::<Vec<_>>().join(" ").trim_start_matches("fatal: ").to_owned();
    let answer = |git: Git, question| git.answer(&["rev-parse", question]).ok().flatten();
    if answer(Git::at(start), "--is-inside-work-tree").as_deref() == Some("false") {
        let text = format!("`{place}` is in a git repository, but not in a worktree of it");
        return Error::refused(text, Remedy::EnterWorktree);
    }
    let found = start.ancestors().map(|above| above.join(".git")).find(|git| fs_err::symlink_metadata(git).is_ok());
    let Some(git) = found else {
        return Error::refused(format!("`{place}` is not in a git repository"), Remedy::EnterRepository);
    };
    let user = rustix::process::geteuid().as_raw();
    let is_anothers = |path: &Path| fs_err::metadata(path).is_ok_and(|found| found.uid() != user);
    // git checks no owner of a repository that is named to it. Only its words tell whom it trusts and what it supports.
    let own = answer(Git::at(start).with("GIT_DIR", &git), "--absolute-git-dir");
    let has_other_owner = match &own {
        Some(own) => is_anothers(own.as_ref()) || git.ancestors().take(2).any(is_anothers),
        None => said.contains("dubious ownership"),
    };
    if has_other_owner {
        let text = format!("`{place}` is in another user's repository, and git does not trust it");
        return Error::refused(text, Remedy::TrustOwner);
    }
    if own.is_none() && said.contains("unknown repository extension") {
        return Error::refused(words(), Remedy::UpdateGit);
    }
    // A worktree that has lost its entry counts as untrusted, and then git was not asked.
    let entry = git.parent().and_then(|root| trust::entry_of(root).ok().flatten());
    if entry.is_some_and(|entry| is_missing(&entry)) {
        let text = format!("`{}` points to a repository that is not there", ShownPath(&git));
        return Error::refused(text, Remedy::RepairMovedMain);
    }
    Error::refused(words(), Remedy::EnterRepository)
}
