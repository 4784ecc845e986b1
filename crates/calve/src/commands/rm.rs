//! `calve rm`.

use std::path::Path;
use std::sync::Arc;

use calve_core::{CancelToken, Error, Progress, RemovalWait, RemoveOptions, RemoveReport, ShownPath, remove_tree};

use super::{protected, reap};
use crate::cli::RmArguments;
use crate::failure::{Failure, INTERRUPTED};
use crate::output;
use crate::progress_bar::Watch;
use calve_receipt::human::{duration, entries};
use calve_receipt::{RemoveReceipt, RemoveReceipts, path as receipt_path};

pub(crate) fn run(arguments: &RmArguments, cancel: &CancelToken) -> Result<(), Failure> {
    if arguments.pending {
        return super::pending::run(arguments, cancel);
    }
    let mut options = RemoveOptions::default();
    options.wait = if arguments.wait { RemovalWait::Yes } else { RemovalWait::No };
    options.protect = protected();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let mut receipts = RemoveReceipts { removed: Vec::new(), would_remove: arguments.dry_run.then(Vec::new) };
    let mut worst = 0;
    for path in &arguments.paths {
        match one(path, arguments, &options, &mut receipts) {
            Ok(()) => {}
            // As rm does: the others are still removed.
            Err(failure) if arguments.paths.len() > 1 && failure.code() != INTERRUPTED => {
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        output::json(&receipts)?;
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

/// No reaper is started: who interrupts may want the disk to be quiet.
const UNFINISHED: &str =
    "the rest has a hidden name, .calve-trash-*; the next `calve cp` or `calve rm` in that directory deletes it";

/// Removes one tree and adds it to the receipts. In a dry run, adds its path alone.
fn one(
    path: &Path,
    arguments: &RmArguments,
    options: &RemoveOptions,
    receipts: &mut RemoveReceipts,
) -> Result<(), Failure> {
    if arguments.dry_run {
        match calve_core::check_removable(path, options) {
            Err(Error::Missing(_)) if arguments.force => return Ok(()),
            other => other?,
        }
        output::note(&format!("would remove `{}`", ShownPath(path)));
        receipts.would_remove.get_or_insert_default().push(receipt_path(path));
        return Ok(());
    }
    let watch = Watch::start("deleted", &options.progress);
    let removed = remove_tree(path, options);
    drop(watch);
    let report = match removed {
        Err(Error::Missing(_)) if arguments.force => return Ok(()),
        Err(Error::Interrupted) => return Err(Failure::Interrupted(UNFINISHED)),
        Err(error) => return Err(super::pending::left_in_trash(path, error)),
        other => other?,
    };
    if let Some(trashed) = &report.trashed {
        reap::start(&trashed.parent);
    }
    if !output::is_quiet() {
        output::say(&sentence(&report));
        for warning in &report.warnings {
            output::say(&format!("warning: {}", warning.message));
        }
        super::pending::warn_of_stuck(&report);
    }
    receipts.removed.push(RemoveReceipt::from(&report));
    Ok(())
}

fn sentence(report: &RemoveReport) -> String {
    let took = duration(report.elapsed);
    let path = ShownPath(&report.path);
    match &report.trashed {
        Some(_) => format!("removed `{path}` in {took}; its files are being deleted in the background"),
        None => format!("removed `{path}`: {} deleted in {took}", entries(report.deleted)),
    }
}
