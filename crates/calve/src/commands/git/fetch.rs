//! `calve git fetch`.

use calve_core::CancelToken;
use calve_git::remote::{FetchOptions, fetch, plan_fetch};

use super::{Line, failure, prompts};
use crate::cli::git::GitFetchArguments;
use crate::failure::Failure;
use crate::{git_receipt, output};
use calve_receipt::GitFetchPlanReceipt;

pub(crate) fn run(arguments: &GitFetchArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let request = FetchOptions {
        directory: arguments.directory.clone(),
        references: arguments.references.clone(),
        prompts: prompts(),
        cancel: cancel.clone(),
    };
    let plan = plan_fetch(&request).map_err(failure)?;
    let what = git_receipt::fetch_text(&plan);
    if arguments.dry_run {
        if arguments.json {
            return output::json(&GitFetchPlanReceipt { plan: git_receipt::fetch_plan(&plan) });
        }
        return output::result(&what);
    }
    output::note(what.trim_end());
    let line = Line::new();
    let receipt = fetch(&request, &|text| line.show(text));
    drop(line);
    let receipt = receipt.map_err(failure)?;
    for notice in &receipt.notices {
        output::say(&format!("warning: {}", notice.message));
    }
    if !output::is_quiet() {
        receipt.updated.iter().for_each(|line| output::say(&format!("  {line}")));
        output::say(&git_receipt::fetch_sentence(&receipt));
    }
    if arguments.json {
        return output::json(&git_receipt::fetch(&receipt));
    }
    Ok(())
}
