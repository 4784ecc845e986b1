//! `calve dedupe`.

use std::sync::Arc;

use calve_core::{CancelToken, DedupeMode, DedupeOptions, Error, Mounts, Progress, dedupe};

use crate::cli::DedupeArguments;
use crate::failure::Failure;
use crate::progress_bar::Watch;
use crate::{home, output, space_receipt};
use calve_receipt::DedupeReceipt;

/// The library's work on each file is done completely or not at all.
const INTERRUPTED: &str = "the files shared so far stay shared; run the same command again for the others";

pub(crate) fn run(arguments: &DedupeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = DedupeOptions::default();
    options.mode = if arguments.dry_run { DedupeMode::DryRun } else { DedupeMode::Share };
    options.against.clone_from(&arguments.against);
    options.cache = if arguments.no_cache { None } else { cache() };
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.threads = super::threads_of_a_test();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let watch = Watch::start("compared", &options.progress);
    let report = dedupe(&arguments.paths, &options);
    drop(watch);
    let report = match report {
        Err(Error::Interrupted) => return Err(Failure::Interrupted(INTERRUPTED)),
        other => other?,
    };
    if arguments.json {
        output::json(&DedupeReceipt::new(&report, arguments.dry_run, &arguments.paths))?;
    }
    if !output::is_quiet() {
        space_receipt::sharing_sentences(&report, arguments.dry_run).iter().for_each(|line| output::say(line));
    }
    space_receipt::complete(report.unreadable)
}

/// Returns where hashes are kept; without a home they are not.
fn cache() -> Option<std::path::PathBuf> {
    match home::directory() {
        Ok(home) => Some(home.join("hashes")),
        Err(why) => {
            output::say(&format!("warning: hashes are not kept for the next run: {why}"));
            None
        }
    }
}
