use calve_core::CancelToken;
use calve_git::remote::{FetchOptions, fetch, plan_fetch};

use super::interaction::{prompts, with_progress};
use super::receipt;
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
    let what = receipt::fetch_text(&plan);
    if arguments.dry_run {
        if arguments.json {
            return output::json(&GitFetchPlanReceipt { plan });
        }
        return output::result(&what);
    }
    output::note(what.trim_end());
    let receipt = with_progress(|listener| fetch(&request, listener))?;
    for notice in &receipt.notices {
        output::warn(&notice.message);
    }
    receipt.updated.iter().for_each(|line| output::note(&format!("  {line}")));
    output::note(&receipt::fetch_sentence(&receipt));
    output::json_if(arguments.json, &receipt::fetch(&receipt))
}
