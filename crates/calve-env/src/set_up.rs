use std::path::PathBuf;

use calve_core::CancelToken;
use calve_git::Config;
use calve_git::environment::{WorktreeId, remove_own_env_files};
use calve_git::escape::worktrees_of;
use calve_git::hooks::{Hook, HookEnvironment, repository_of};
use calve_git::worktree::{self, FillReport};

use crate::add::AddFailure;
use crate::complete::{Incomplete, Maker, OwnParts};
use crate::consent::{Consent, is_approved};
use crate::data_from::DataFrom;
use crate::error::{Error, Result};
use crate::host::{Event, Host};

/// Carries ignored files into a worktree, gives it ports and data, and runs the project's hook if it is approved: there
/// is no user to ask. Calls `is_complete` before the hook. Returns the worktree's root.
pub fn set_up(
    host: &dyn Host,
    options: &worktree::AddOptions,
    maker: &str,
    is_complete: &mut dyn FnMut(&FillReport, &OwnParts<'_>),
    cancel: &CancelToken,
) -> std::result::Result<PathBuf, AddFailure> {
    let filled = worktree::fill(options).map_err(Error::from)?;
    let mut own = OwnParts::default();
    let completed = complete(host, &filled, &mut own, cancel);
    own.errors.extend(completed.err());
    is_complete(&filled, &own);
    if let Some(error) = own.errors.pop() {
        return Err(AddFailure { earlier: own.errors, ..error.into() });
    }
    hook(host, &filled, &own, cancel)?;
    worktree::finish_for_agent(&filled.path, maker).map_err(Error::from)?;
    Ok(filled.path)
}

fn complete<'h>(host: &'h dyn Host, filled: &FillReport, own: &mut OwnParts<'h>, cancel: &CancelToken) -> Result<()> {
    remove_own_env_files(&filled.path, &filled.untracked.env_files)?;
    let is_untrusted = filled.provenance.is_untrusted();
    let donor = if is_untrusted { None } else { WorktreeId::read(&filled.donor)? };
    let incomplete = Incomplete {
        root: &filled.path,
        donor: &filled.donor,
        files: &filled.untracked,
        env_file: None,
        maker: Maker::Another,
        data_from: &DataFrom::Donor,
        data_source: (donor.as_ref(), (!is_untrusted).then_some(&*filled.donor)),
        consent: Consent::Approved,
    };
    own.fill(host, &incomplete, None, cancel)
}

fn hook(host: &dyn Host, filled: &FillReport, own: &OwnParts<'_>, cancel: &CancelToken) -> Result<()> {
    let hooks =
        if filled.provenance.is_untrusted() { Default::default() } else { Config::of_worktree(&filled.path)?.hooks };
    let Some(text) = hooks.post_add else { return Ok(()) };
    if !is_approved(host, &repository_of(&filled.path)?, Hook::PostAdd, &text)? {
        let text = "the project's post-add hook did not run: it is not approved (`calve hook approve`)";
        host.report(Event::Warning(text.into()));
        return Ok(());
    }
    let (worktree, source) = (filled.path.clone(), Some(filled.donor.clone()));
    let main = worktrees_of(&filled.path)?.main;
    let surroundings = HookEnvironment { worktree, main, source, ..HookEnvironment::default() };
    own.run_hook(host, &text, surroundings, true, cancel)
}
