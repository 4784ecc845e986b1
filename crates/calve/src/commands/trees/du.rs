use std::io::ErrorKind;
use std::path::PathBuf;

use calve_core::space::{DiskUsageOptions, disk_usage};
use calve_core::{CancelToken, Error, Mounts};

use super::space;
use crate::cli::DuArguments;
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::progress_bar::watched;

pub(crate) fn run(arguments: &DuArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = DiskUsageOptions::default();
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.scratch = Some(std::env::temp_dir());
    options.threads = space::threads_of_a_test();
    options.cancel = cancel.clone();
    let is_missing = |path: &PathBuf| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let (missing, paths): (Vec<_>, Vec<_>) =
        arguments.paths.iter().cloned().partition(|path| arguments.paths.len() > 1 && is_missing(path));
    for path in &missing {
        output::failure(&Error::Missing(path.clone()).into());
    }
    if paths.is_empty() {
        return Err(Failure::reported(FAILED));
    }
    let usage = watched("looked at", &options.progress, || disk_usage(&paths, &options))?;
    output::json_or(arguments.json, &usage, &space::usage_table(&usage))?;
    for warning in &usage.warnings {
        output::warn(&warning.message);
    }
    space::complete(usage.unreadable, &usage.skipped)?;
    if missing.is_empty() { Ok(()) } else { Err(Failure::reported(FAILED)) }
}
