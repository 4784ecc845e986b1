//! `calve cp`.

use std::path::Path;
use std::sync::Arc;

use calve_core::{
    CancelToken, Choice, CloneOptions, CloneReport, CloneVerification, Durability, ExistingDestination, InlinedBytes,
    Mounts, Progress, clone_tree, plan, with_source,
};
use calve_receipt::{CloneReceipt, CloneReceipts, PlanReceipt, PlanReceipts};

use super::{protected, reap, spares};
use crate::cli::CpArguments;
use crate::failure::{Failure, INTERRUPTED};
use crate::progress_bar::Watch;
use crate::{clone_receipt, destination, home, linked, output};

pub(crate) fn run(arguments: &CpArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let into = arguments.target_directory.as_deref();
    let targets = destination::targets(&arguments.paths, into, arguments.no_target_directory)?;
    let options = options(arguments, cancel);
    let several = targets.len() > 1;
    let mut made = CloneReceipts { clones: Vec::new() };
    let mut planned = PlanReceipts { plans: Vec::new() };
    let mut worst = 0;
    for (src, dst) in &targets {
        let done = match arguments.dry_run {
            true => plan_one(src, dst, &options).map(|receipt| planned.plans.push(receipt)),
            false => one(src, dst, &options).map(|receipt| made.clones.push(receipt)),
        };
        match done {
            Ok(()) => {}
            Err(failure) if several && failure.code() != INTERRUPTED => {
                // As cp does: the others are still cloned.
                output::failure(&failure);
                worst = worst.max(failure.code());
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        match (arguments.dry_run, several) {
            (false, false) => output::json(&made.clones.first())?,
            (false, true) => output::json(&made)?,
            (true, false) => output::json(&planned.plans.first())?,
            (true, true) => output::json(&planned)?,
        }
    }
    if worst > 0 { Err(Failure::Reported(worst)) } else { Ok(()) }
}

fn plan_one(src: &Path, dst: &Path, options: &CloneOptions) -> Result<PlanReceipt, Failure> {
    let plan = with_source(src, options, home::directory, |src, options| plan(src, dst, options));
    let plan = plan.map_err(|error| Failure::Clone { error, src: src.to_path_buf() })?;
    if !output::is_quiet() {
        output::say(&clone_receipt::plan_sentence(src, dst, &plan));
        warn_of_shared_index(src);
    }
    Ok(PlanReceipt::new(src, dst, &plan))
}

fn one(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReceipt, Failure> {
    let watch = Watch::start("cloned", &options.progress);
    let report = with_source(src, options, home::directory, |src, options| clone_tree(src, dst, options));
    drop(watch);
    let mut report = report.map_err(|error| Failure::Clone { error, src: src.to_path_buf() })?;
    // As it was given: `@NAME` for a template.
    report.src = src.to_path_buf();
    delete_trash(&report);
    if report.spares_wanted {
        spares::start_refill();
    }
    if !output::is_quiet() {
        output::say(&clone_receipt::sentence(&report));
        for line in clone_receipt::attention(&report) {
            output::say(&line);
        }
        warn_of_shared_index(dst);
    }
    Ok(CloneReceipt::from(&report))
}

/// Warns when the clone at `path`, or what it would be made of, is a linked worktree: its `.git` names the original's index and HEAD.
fn warn_of_shared_index(path: &Path) {
    if linked::repository_of(path).is_some() {
        output::say(
            "warning: git commands in a copy of a linked worktree change the index and HEAD of the original; \
             `calve worktree add` makes a worktree of its own",
        );
    }
}

/// Deletes the entry that was replaced, and the leftovers of a reaper that was killed.
fn delete_trash(report: &CloneReport) {
    let parent = report.dst.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if report.trash_waits {
        reap::start(parent);
    }
}

fn options(arguments: &CpArguments, cancel: &CancelToken) -> CloneOptions {
    let mut options = CloneOptions::default();
    options.strategy = arguments.strategy.map_or(Choice::Fastest, Choice::Only);
    options.require.clone_from(&arguments.require);
    options.exclude.clone_from(&arguments.exclude);
    options.existing = if arguments.replace { ExistingDestination::Replace } else { ExistingDestination::Refuse };
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.durability = if arguments.sync { Durability::Synced } else { Durability::Cached };
    options.verify = if arguments.verify { CloneVerification::Contents } else { CloneVerification::No };
    // The line for people does without a look at the extents of every small file.
    options.inlined = if arguments.json { InlinedBytes::Counted } else { InlinedBytes::WithShared };
    options.threads = arguments.threads;
    options.protect = protected();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    options.spares = home::spares();
    options
}
