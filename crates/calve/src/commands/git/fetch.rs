use calve_core::CancelToken;
use calve_git::remote::{FetchOptions, fetch, plan_fetch};

use super::interaction::{prompts, with_progress};
use super::lines;
use crate::cli::git::GitFetchArguments;
use crate::failure::Failure;
use crate::output;
use calve_receipt::GitFetchPlanReceipt;

pub(crate) fn run(arguments: &GitFetchArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let request = FetchOptions {
        directory: arguments.directory.clone(),
        references: arguments.references.clone(),
        prompts: prompts(),
        cancel: cancel.clone(),
    };
    let plan = plan_fetch(&request)?;
    let what = format!("{}: {}", plan.commands.join(" && "), plan.reason);
    if arguments.dry_run {
        return output::json_or(arguments.json, &GitFetchPlanReceipt { plan }, &(what + "\n"));
    }
    output::note(&what);
    let report = with_progress(|listener| fetch(&request, listener))?;
    for notice in &report.warnings {
        output::warn(&notice.message);
    }
    report.updated.iter().for_each(|line| output::note(&format!("  {line}")));
    output::note(&lines::fetch_sentence(&report));
    output::json_if(arguments.json, &report)
}
