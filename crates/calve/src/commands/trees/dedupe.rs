use calve_core::space::{DedupeMode, DedupeOptions, dedupe};
use calve_core::{CancelToken, Error, Mounts};

use super::space;
use crate::cli::DedupeArguments;
use crate::failure::Failure;
use crate::progress_bar::watched;
use crate::{home, output};
use calve_receipt::{DedupeReceipt, paths};

/// The library finishes each file or leaves it unchanged.
const INTERRUPTED: &str = "the files shared so far stay shared; run the same command again for the others";

pub(crate) fn run(arguments: &DedupeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = DedupeOptions::default();
    options.mode = if arguments.dry_run { DedupeMode::DryRun } else { DedupeMode::Share };
    options.against.clone_from(&arguments.against);
    options.cache = if arguments.no_cache { None } else { cache() };
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.threads = space::threads_of_a_test();
    options.cancel = cancel.clone();
    let report = match watched("compared", &options.progress, || dedupe(&arguments.paths, &options)) {
        Err(Error::Interrupted) => return Err(Failure::interrupted(INTERRUPTED)),
        other => other?,
    };
    let paths = paths(&arguments.paths);
    output::json_if(arguments.json, &DedupeReceipt { dry_run: arguments.dry_run, report: &report, paths })?;
    space::say_sharing(&report, arguments.dry_run);
    space::complete(report.unreadable)
}

/// Returns the cache of hashes, or `None` without a home.
fn cache() -> Option<std::path::PathBuf> {
    match home::directory() {
        Ok(home) => Some(home.join("hashes")),
        Err(why) => {
            output::warn(&format!("hashes are not kept for the next run: {why}"));
            None
        }
    }
}
