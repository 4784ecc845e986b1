//! `calve reshare`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::{CancelToken, DedupeMode, DedupeOptions, Error, Progress, ShownPath, reshare};

use super::dedupe::INTERRUPTED;
use crate::cli::ReshareArguments;
use crate::failure::{Failure, USAGE};
use crate::progress_bar::Watch;
use crate::{linked, output, real_path, space_receipt};
use calve_receipt::ReshareReceipt;

pub(crate) fn run(arguments: &ReshareArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let src = match &arguments.src {
        Some(src) => src.clone(),
        None => in_main_worktree(&arguments.dst)?,
    };
    let mut options = DedupeOptions::default();
    options.mode = if arguments.dry_run { DedupeMode::DryRun } else { DedupeMode::Share };
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let watch = Watch::start("compared", &options.progress);
    let report = reshare(&src, &arguments.dst, &options);
    drop(watch);
    let report = match report {
        Err(Error::Interrupted) => return Err(Failure::Interrupted(INTERRUPTED)),
        other => other?,
    };
    if arguments.json {
        output::json(&ReshareReceipt::new(&report, arguments.dry_run, &src, &arguments.dst))?;
    }
    if !output::is_quiet() {
        space_receipt::sharing_sentences(&report, arguments.dry_run).iter().for_each(|line| output::say(line));
    }
    space_receipt::complete(report.unreadable)
}

/// Returns the same path in the main worktree, for a path in a linked one.
fn in_main_worktree(dst: &Path) -> Result<PathBuf, Failure> {
    let dst = real_path::of(dst)?;
    let found = dst.ancestors().find_map(|worktree| {
        let repository = linked::repository_of(worktree).filter(|repository| repository.ends_with(".git"))?;
        Some(repository.parent()?.join(dst.strip_prefix(worktree).ok()?))
    });
    found.ok_or_else(|| {
        let text = format!("`{}` is in no linked git worktree: name its source with `--with SRC`", ShownPath(&dst));
        Failure::stated(USAGE, text, "see `calve reshare --help`")
    })
}
