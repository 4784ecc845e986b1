//! `calve du`.

use std::path::PathBuf;
use std::sync::Arc;

use calve_core::{CancelToken, DiskUsageOptions, Mounts, Progress, disk_usage};

use crate::cli::DuArguments;
use crate::failure::Failure;
use crate::progress_bar::Watch;
use crate::{output, space_receipt};
use calve_receipt::DiskUsageReceipt;

/// Returns what deleting these trees would free at most. What they share with each other counts once, and what they share with others not.
pub(crate) fn taken(paths: &[PathBuf], cancel: &CancelToken) -> Result<u64, Failure> {
    let mut options = DiskUsageOptions::default();
    options.scratch = Some(std::env::temp_dir());
    options.cancel = cancel.clone();
    Ok(disk_usage(paths, &options)?.total.frees_max)
}

pub(crate) fn run(arguments: &DuArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = DiskUsageOptions::default();
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.scratch = Some(std::env::temp_dir());
    options.threads = super::threads_of_a_test();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let watch = Watch::start("looked at", &options.progress);
    let usage = disk_usage(&arguments.paths, &options);
    drop(watch);
    let usage = usage?;
    match arguments.json {
        true => output::json(&DiskUsageReceipt::from(&usage))?,
        false => output::result(&space_receipt::usage_table(&usage))?,
    }
    for warning in &usage.warnings {
        output::say(&format!("warning: {}", warning.message));
    }
    if let Some(first) = usage.skipped.first() {
        output::say(&space_receipt::unreadable(usage.unreadable, first));
    }
    space_receipt::complete(usage.unreadable)
}
