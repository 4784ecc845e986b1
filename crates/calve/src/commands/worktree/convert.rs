use std::path::Path;

use calve_core::internal::ShownPath;
use calve_core::{CancelToken, CloneOptions};
use calve_git::environment::{LeasingWorktree, root_of};
use calve_git::worktree;

use crate::failure::{FAILED, Failure};
use crate::host::Program;
use crate::progress_bar::watched;
use crate::real_path::here;
use crate::{home, output, reaper};
use calve_receipt::human::duration;

pub(crate) fn run(path: &Path, json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let options = CloneOptions { protect: home::protected(), cancel: cancel.clone(), ..CloneOptions::default() };
    let start = here()?.join(path);
    let former = root_of(&start).and_then(|root| LeasingWorktree::find(&root));
    let report = watched("cloned", &options.progress, || worktree::convert(&start, &options))?;
    if let Some(trashed) = &report.trashed {
        reaper::start(&trashed.parent);
    }
    if let Ok(former) = former
        && let Err(error) = calve_env::carry_ports(&Program, &former, &report.path)
    {
        output::warn(&format!("the worktree may get other ports: {error}"));
    }
    let path = ShownPath(&report.path);
    output::note(&match report.converted {
        true => format!("`{path}` is a subvolume now, made in {}", duration(report.elapsed)),
        false => format!("`{path}` is already a subvolume"),
    });
    output::json_if(json, &report)?;
    match &report.kept {
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
