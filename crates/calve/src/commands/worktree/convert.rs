//! `calve worktree convert`.

use std::sync::Arc;

use calve_core::{CancelToken, CloneOptions, Progress, ShownPath};
use calve_git::worktree;

use crate::cli::worktree::ConvertArguments;
use crate::commands::{protected, reap};
use crate::failure::{FAILED, Failure};
use crate::output;
use crate::progress_bar::Watch;
use calve_receipt::human::duration;
use calve_receipt::{WorktreeConvertReceipt, path as receipt_path};

pub(crate) fn run(arguments: &ConvertArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = CloneOptions::default();
    options.protect = protected();
    options.progress = Arc::new(Progress::default());
    options.cancel = cancel.clone();
    let start = super::here()?.join(&arguments.path);
    let watch = Watch::start("cloned", &options.progress);
    let converted = worktree::convert(&start, &options);
    drop(watch);
    let converted = converted?;
    if let Some(trashed) = &converted.trashed {
        reap::start(&trashed.parent);
    }
    let path = ShownPath(&converted.path);
    if converted.was_one {
        output::say(&format!("`{path}` is a subvolume already"));
    } else {
        output::say(&format!("`{path}` is a subvolume now, made in {}", duration(converted.elapsed)));
    }
    if arguments.json {
        output::json(&WorktreeConvertReceipt {
            path: receipt_path(&converted.path),
            converted: !converted.was_one,
            kept: converted.kept.as_ref().map(receipt_path),
            elapsed_ms: converted.elapsed.into(),
        })?;
    }
    match &converted.kept {
        None => Ok(()),
        Some(kept) => Err(Failure::stated(
            FAILED,
            format!(
                "something was written in `{path}` during the exchange, so the old directory was kept as `{}`",
                ShownPath(kept)
            ),
            "compare the two, copy what the new one lacks, and remove the old one with `calve rm`",
        )),
    }
}
