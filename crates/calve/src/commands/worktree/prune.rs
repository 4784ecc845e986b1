use std::path::Path;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_core::internal::json::FromReport as _;
use calve_db::{LossRule, Service};
use calve_env::last_root;
use calve_git::worktree::{self, KeptEntry, MergedWorktree, PruneReport, RemoveWorktreeOptions};
use calve_receipt::human::{age, counted};
use calve_receipt::{ErrorReceipt, KeptWorktree, MergedWorktreeReceipt, PrunedData, WorktreePruneReceipt, path, paths};

use super::remove;
use crate::cli::worktree::PruneArguments;
use crate::commands::worktree::services::whose;
use crate::failure::{Failure, INTERRUPTED};
use crate::host::Program;
use crate::real_path::here;
use crate::wording::fitting::fitting;
use crate::wording::{self, unsaved};
use crate::{consent, output, reaper};

pub(crate) fn run(arguments: &PruneArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let start = here()?;
    let gone = worktree::plan_prune(&start)?;
    if !arguments.dry_run {
        // Record the entries' places, because the repository may have been moved.
        calve_env::database_home(&Program).iter().for_each(|home| calve_env::note_places(home, &gone.entries));
    }
    if !arguments.merged && !arguments.dry_run {
        return output::json_if(arguments.json, &forget(&start, arguments)?);
    }
    for path in &gone.forgotten {
        let words = if arguments.dry_run { "would forget" } else { "to forget:" };
        output::note(&format!("{words} `{}`, {}", ShownPath(path), fate(path)));
    }
    let data = gone_data(&gone, arguments.lose_data, true)?;
    let (found, kept) = if arguments.merged { find_merged(&start, arguments, cancel)? } else { Default::default() };
    // Missing worktrees are forgotten without a question, but not after a no to the question about the others.
    let question = format!("Remove {}?", counted(found.len() as u64, "worktree"));
    let confirmed = || consent::confirm("removing them", &question, "`--yes` removes them; `-n` only lists them");
    let is_agreed = !arguments.dry_run && (found.is_empty() || arguments.yes || confirmed()?);
    let mut receipt = match (is_agreed, arguments.dry_run) {
        (true, _) => forget(&start, arguments)?,
        (false, true) => receipt_of(&gone, data),
        (false, false) => WorktreePruneReceipt { forgotten: vec![], ..receipt_of(&gone, vec![]) },
    };
    receipt.kept.extend(kept);
    receipt.merged.extend(found.iter().map(merged_receipt));
    let removed =
        if is_agreed { remove_all(&start, &found, arguments.lose_data, &mut receipt, cancel) } else { Ok(()) };
    let is_unreported = removed.as_ref().err().is_none_or(|failure| failure.receipt.is_none());
    output::json_if(arguments.json && is_unreported, &receipt)?;
    removed
}

fn forget(start: &Path, arguments: &PruneArguments) -> Result<WorktreePruneReceipt, Failure> {
    let pruned = worktree::prune(start)?;
    for place in &pruned.places {
        reaper::start(place);
    }
    for path in &pruned.forgotten {
        output::note(&format!("forgot `{}`, {}", ShownPath(path), fate(path)));
    }
    for kept in &pruned.kept {
        output::note(&format!("kept the entry of `{}`: {}; {}", ShownPath(&kept.path), kept.reason, hint(kept)));
    }
    let data = gone_data(&pruned, arguments.lose_data, false)?;
    for path in &pruned.swept {
        output::note(&format!("removed `{}`, which a killed run had left", ShownPath(path)));
    }
    Ok(receipt_of(&pruned, data))
}

fn fate(path: &Path) -> &'static str {
    if path.symlink_metadata().is_ok() { "whose path holds something else" } else { "which is gone" }
}

fn receipt_of(pruned: &PruneReport, data: Vec<PrunedData>) -> WorktreePruneReceipt {
    let kept = |kept: &KeptEntry| KeptWorktree {
        path: path(&kept.path),
        reason: kept.reason.clone(),
        hint: hint(kept),
        unsaved: Vec::from_report(&kept.unsaved),
    };
    WorktreePruneReceipt {
        forgotten: paths(&pruned.forgotten),
        kept: pruned.kept.iter().map(kept).collect(),
        swept: paths(&pruned.swept),
        merged: vec![],
        data,
    }
}

fn hint(kept: &KeptEntry) -> String {
    kept.remedy.as_ref().map(wording::git::hint).map(fitting).unwrap_or_default()
}

fn find_merged(
    start: &Path,
    arguments: &PruneArguments,
    cancel: &CancelToken,
) -> Result<(Vec<MergedWorktree>, Vec<KeptWorktree>), Failure> {
    let mut options = RemoveWorktreeOptions::default();
    (options.start, options.loses_data) = (start.to_path_buf(), arguments.lose_data);
    options.remove.cancel = cancel.clone();
    let (found, stay) = calve_env::merged(&Program, &options, arguments.older_than)?;
    let stay = stay.into_iter().filter_map(|(path, why)| Some(kept(&path, *Failure::from(why).receipt?))).collect();
    let tell = output::prompt_if(!arguments.dry_run && !arguments.yes);
    for one in &found {
        tell(&format!("{} {}", if arguments.dry_run { "would remove" } else { "to remove:" }, described(one)));
        for item in &one.unsaved {
            tell(&format!("  {}", unsaved::planned_line(item)));
        }
    }
    if found.is_empty() {
        output::note("no merged worktree can be removed");
    }
    Ok((found, stay))
}

fn remove_all(
    start: &Path,
    found: &[MergedWorktree],
    lose_data: bool,
    receipt: &mut WorktreePruneReceipt,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    let mut worst = 0;
    for (number, one) in found.iter().enumerate() {
        // It may have changed since it was listed.
        if !worktree::is_still_merged(start, one)? {
            output::warn(&format!("kept `{}`: it has changed meanwhile", ShownPath(&one.worktree.path)));
            continue;
        }
        match remove::merged(start, &one.worktree.path, lose_data, cancel) {
            Ok(()) => receipt.merged[number].removed = true,
            Err(failure) if failure.code != INTERRUPTED => {
                output::failure(&failure);
                worst = worst.max(failure.code);
            }
            Err(failure) => return Err(failure),
        }
    }
    if worst > 0 { Err(Failure::reported(worst)) } else { Ok(()) }
}

fn kept(worktree: &Path, why: ErrorReceipt) -> KeptWorktree {
    let (reason, hint, unsaved) = (why.message, why.hint.unwrap_or_default(), why.unsaved.unwrap_or_default());
    output::note(&format!("kept `{}`: {reason}; {hint}", ShownPath(worktree)));
    KeptWorktree { path: path(worktree), reason, hint, unsaved }
}

/// Describes a merged worktree: "`PATH`: branch `x`, all in `main`, 12 days old", or "squashed into `main`".
fn described(one: &MergedWorktree) -> String {
    let branch =
        one.worktree.branch.as_ref().map(|branch| format!("branch `{}`, ", ShownPath(branch))).unwrap_or_default();
    let age = one.age.map(|since| format!(", {} old", age(since))).unwrap_or_default();
    let how = if one.is_squashed { "squashed into" } else { "all in" };
    format!("`{}`: {branch}{how} `{}`{age}", ShownPath(&one.worktree.path), ShownPath(&one.merged_into))
}

fn merged_receipt(one: &MergedWorktree) -> MergedWorktreeReceipt {
    MergedWorktreeReceipt {
        path: path(&one.worktree.path),
        branch: one.worktree.branch.clone(),
        merged_into: one.merged_into.clone(),
        squashed: one.is_squashed,
        removed: false,
        unsaved: Vec::from_report(&one.unsaved),
    }
}

/// Removes the data of worktrees that are gone, or if `is_planned`, lists what would go.
fn gone_data(pruned: &PruneReport, lose_data: bool, is_planned: bool) -> Result<Vec<PrunedData>, Failure> {
    let mut data = Vec::new();
    let mut say = |service: &Service, judged: calve_db::Result<()>| {
        let whose = whose(service);
        match judged {
            Ok(()) => {
                output::note(&match is_planned {
                    true => format!("its data goes too: {whose}, which is gone"),
                    false => format!("removed the data of the {whose}, which is gone"),
                });
                let (worktree, server) = (path(last_root(service)), service.name.clone());
                data.push(PrunedData { worktree, service: service.service.clone(), server, removed: !is_planned });
            }
            Err(calve_db::Error::ServiceWritten { .. }) => output::warn(&format!(
                "kept the data of the {whose}, which is gone: it may have changes found nowhere else; `calve worktree add --data-from {}` gives it to a new \
                 worktree, and `calve worktree prune --lose-data` removes it",
                service.name
            )),
            Err(error) => _ = output::failure(&error.into()),
        }
    };
    calve_env::prune_data(&Program, pruned, LossRule::from_consent(lose_data), is_planned, &mut say)?;
    Ok(data)
}
