use std::path::PathBuf;

use calve_core::internal::ShownPath;
use calve_core::space::{DedupeMode, DedupeOptions, dedupe};
use calve_core::{CancelToken, Error, Mounts};

use super::space;
use crate::cli::DedupeArguments;
use crate::failure::{FAILED, Failure};
use crate::progress_bar::watched;
use crate::real_path::resolve;
use crate::{home, output};

/// The library finishes each file or leaves it unchanged.
const INTERRUPTED: &str = "the files shared so far stay shared; run the same command again for the others";

pub(crate) fn run(arguments: &DedupeArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = DedupeOptions::default();
    options.mode = if arguments.dry_run { DedupeMode::DryRun } else { DedupeMode::Share };
    // A link names what it leads to.
    let followed = |path: &PathBuf| if path.is_symlink() && path.exists() { resolve(path) } else { Ok(path.clone()) };
    let trees = arguments.paths.iter().map(followed).collect::<Result<Vec<_>, _>>()?;
    options.against = arguments.against.iter().map(followed).collect::<Result<_, _>>()?;
    for (path, kept) in trees.iter().flat_map(|path| options.against.iter().map(move |kept| (path, kept))) {
        // One that cannot be found is reported with the others.
        let (Ok(inner), Ok(outer)) = (fs_err::canonicalize(path), fs_err::canonicalize(kept)) else { continue };
        // With `-x`, DIR may end above PATH. It may be one of several PATHs, which then share with it.
        let (is_refused, place) = match inner == outer {
            true => (trees.len() == 1, "the same as"),
            false => (!arguments.one_file_system && inner.starts_with(outer), "inside"),
        };
        if is_refused {
            let text =
                format!("`{}` is {place} `{}`, which `--against` leaves alone", ShownPath(path), ShownPath(kept));
            let hint = "name a DIR beside it, or all of them as PATHs, without `--against`";
            return Err(Failure::stated(FAILED, text, hint));
        }
    }
    options.cache = if arguments.no_cache { None } else { cache() };
    options.mounts = if arguments.one_file_system { Mounts::Stay } else { Mounts::Cross };
    options.threads = space::threads_of_a_test();
    options.cancel = cancel.clone();
    let mut report = match watched("compared", &options.progress, || dedupe(&trees, &options)) {
        Err(Error::Interrupted) => return Err(Failure::interrupted(INTERRUPTED)),
        other => other?,
    };
    report.paths.clone_from(&arguments.paths);
    output::json_if(arguments.json, &report)?;
    space::say_sharing(&report);
    space::complete(report.unreadable, &report.skipped)
}

/// Returns the cache of hashes, or `None` without a home.
fn cache() -> Option<PathBuf> {
    let warn = |why: &&str| output::warn(&format!("hashes are not kept for the next run: {why}"));
    Some(home::directory().inspect_err(warn).ok()?.join("hashes"))
}
