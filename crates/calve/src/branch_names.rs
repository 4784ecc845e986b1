//! Branches and worktrees offered by completions.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use calve_git::Git;
use calve_git::worktree::{Worktree, list_of_git};
use clap_complete::CompletionCandidate;

/// Returns branches that no worktree has checked out, remote ones without the remote's name.
pub(crate) fn free() -> Vec<CompletionCandidate> {
    let taken: BTreeSet<OsString> = checked_out().into_iter().collect();
    let locals = lines(&["for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads"]);
    let remotes = lines(&["for-each-ref", "--format=%(refname:lstrip=3)", "refs/remotes"]);
    let remotes = remotes.into_iter().filter(|name| name != "HEAD");
    let names: BTreeSet<OsString> = locals.into_iter().chain(remotes).collect();
    names.difference(&taken).map(CompletionCandidate::new).collect()
}

pub(crate) fn of_worktrees() -> Vec<CompletionCandidate> {
    checked_out().into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the linked worktrees by branch, or by directory name if HEAD is detached.
pub(crate) fn removable() -> Vec<CompletionCandidate> {
    let directory = |path: PathBuf| path.file_name().unwrap_or_default().to_owned();
    let name = |listed: Worktree| listed.branch.map_or_else(|| directory(listed.path), OsString::from);
    // The first one is the main worktree.
    worktrees().into_iter().skip(1).map(name).map(CompletionCandidate::new).collect()
}

fn checked_out() -> Vec<OsString> {
    worktrees().into_iter().filter_map(|listed| listed.branch).map(OsString::from).collect()
}

fn worktrees() -> Vec<Worktree> {
    list_of_git(&Git::at(".")).unwrap_or_default()
}

/// Returns git's lines, or none if it fails, so that nothing is offered.
fn lines(arguments: &[&str]) -> Vec<OsString> {
    let printed = Git::at(".").run(arguments).unwrap_or_default();
    printed
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| crate::sys::path(line).into())
        .collect()
}
