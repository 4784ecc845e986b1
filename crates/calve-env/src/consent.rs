use std::path::Path;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::hooks::{self, Approvals, Hook, HookEnvironment};

use crate::error::{Error, Result};
use crate::host::{Host, required_home};
use crate::remedy::Remedy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Commands that the user has approved, or approves now.
    Approved,
    Everything,
    Nothing,
}

pub fn approvals(host: &dyn Host) -> Result<Approvals> {
    Ok(Approvals::at(required_home(host, "approvals")?.join("approved-hooks")))
}

pub fn approvals_failed(error: calve_git::Error) -> Error {
    Error::failed(error.to_string(), Remedy::CheckApprovals)
}

pub(crate) fn is_approved(host: &dyn Host, repository: &Path, hook: Hook, text: &str) -> Result<bool> {
    approvals(host)?.has(repository, hook, text).map_err(approvals_failed)
}

/// Refuses unless `text` may run as this hook of this repository (the directory that its worktrees share). The user is
/// asked, and may answer with a signal.
pub(crate) fn require(host: &dyn Host, repository: &Path, hook: Hook, text: &str, cancel: &CancelToken) -> Result<()> {
    if is_approved(host, repository, hook, text)? {
        return Ok(());
    }
    if host.may_run(hook, text) {
        return approvals(host)?.add(repository, hook, text).map_err(approvals_failed);
    }
    check_uninterrupted(cancel)?;
    Err(not_approved(hook))
}

pub(crate) fn not_approved(hook: Hook) -> Error {
    Error::refused(format!("the {} of this project is not approved", hook.title()), Remedy::approve(hook))
}

fn check_uninterrupted(cancel: &CancelToken) -> Result<()> {
    if cancel.is_cancelled() { Err(calve_git::Error::Interrupted.into()) } else { Ok(()) }
}

pub(crate) fn run(
    host: &dyn Host,
    hook: Hook,
    text: &str,
    surroundings: &HookEnvironment,
    cancel: &CancelToken,
) -> Result<()> {
    check_uninterrupted(cancel)?;
    let status = host.run(&mut hooks::command(hook, text, surroundings))?;
    // An interrupt counts, however the hook handled the signal.
    check_uninterrupted(cancel)?;
    let (name, worktree) = (hook.name(), ShownPath(&surroundings.worktree));
    if hook == Hook::PostAdd && !surroundings.worktree.join(".git").exists() {
        let text = format!("the {name} hook removed or moved its own worktree, `{worktree}`");
        return Err(Error::failed(text, Remedy::LeaveWorktree));
    }
    if status.success() {
        return Ok(());
    }
    let remedy = if hook == Hook::PreRemove { Remedy::CorrectHook } else { Remedy::RunCommandsOfHook };
    Err(Error::failed(format!("the {name} hook failed in `{worktree}`: {status}"), remedy))
}
