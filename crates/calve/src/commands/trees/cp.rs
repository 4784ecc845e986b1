use std::path::Path;

use calve_core::internal::{InlinedBytes, NOT_INDEPENDENT, with_source};
use calve_core::{
    CancelToken, Choice, CloneOptions, CloneReport, CloneVerification, Durability, ExistingDestination, Mounts,
    Strategy, clone_tree, plan,
};
use calve_git::environment::linked_entry;
use calve_receipt::{CloneReceipts, PlanReceipt, PlanReceipts, path};

use crate::cli::CpArguments;
use crate::failure::Failure;
use crate::progress_bar::watched;
use crate::{destination, home, operands, output, real_path, reaper, wording};

pub(crate) fn run(arguments: &CpArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let into = arguments.target_directory.as_deref();
    let targets = destination::targets(&arguments.paths, into, arguments.no_target_directory)?;
    let options = options(arguments, cancel);
    let several = targets.len() > 1;
    let mut made = CloneReceipts { clones: Vec::new() };
    let mut planned = PlanReceipts { plans: Vec::new() };
    let ended = operands::each(&targets, |(src, dst)| match arguments.dry_run {
        true => plan_one(src, dst, &options).map(|receipt| planned.plans.push(receipt)),
        false => clone_one(src, dst, &options).map(|receipt| made.clones.push(receipt)),
    })?;
    if arguments.json {
        match (arguments.dry_run, several) {
            (false, false) => output::json(&made.clones.first())?,
            (false, true) => output::json(&made)?,
            (true, false) => output::json(&planned.plans.first())?,
            (true, true) => output::json(&planned)?,
        }
    }
    ended
}

fn plan_one(src: &Path, dst: &Path, options: &CloneOptions) -> Result<PlanReceipt, Failure> {
    let report = with_source(src, options, home::directory, |src, options| plan(src, dst, options));
    let mut report = report.map_err(|error| Failure::of_clone(&error, src))?;
    // As given: `@NAME` for a template.
    report.src = src.to_path_buf();
    output::note(&wording::clone::plan_sentence(&report));
    if report.strategy == Strategy::Hardlink {
        output::warn(NOT_INDEPENDENT);
    }
    warn_of_shared_index(src);
    let CloneReport { src, dst, strategy, refused, .. } = report;
    Ok(PlanReceipt { src: path(src), dst: path(dst), strategy, refused })
}

fn clone_one(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Failure> {
    let report = watched("cloned", &options.progress, || {
        with_source(src, options, home::directory, |src, options| clone_tree(src, dst, options))
    });
    let mut report = report.map_err(|error| Failure::of_clone(&error, src))?;
    // As given: `@NAME` for a template.
    report.src = src.to_path_buf();
    // The replaced entry, or leftovers of a killed reaper.
    if report.trash_waits {
        reaper::start(real_path::parent(&report.dst));
    }
    if report.spares_wanted {
        reaper::start_background(reaper::REFILL);
    }
    output::note(&wording::clone::sentence(&report));
    wording::clone::attention(&report).iter().for_each(|line| output::warn(line));
    warn_of_shared_index(dst);
    Ok(report)
}

/// Warns if `path`, a clone or a source, is a linked worktree: its `.git` names the original's index and HEAD.
fn warn_of_shared_index(path: &Path) {
    if linked_entry(path).is_some() {
        output::warn(
            "git commands in a copy of a linked worktree change the index and HEAD of the original; \
             `calve worktree add` makes a worktree of its own",
        );
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
    // The text output does not need the extents of every small file.
    options.internal.inlined = if arguments.json { InlinedBytes::Counted } else { InlinedBytes::WithShared };
    options.threads = arguments.threads;
    options.protect = home::protected();
    options.cancel = cancel.clone();
    options.spares = home::spares();
    options
}
