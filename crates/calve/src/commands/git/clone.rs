use calve_core::CancelToken;
use calve_git::remote::{
    GitCloneOptions, NoticeCode, Purpose, RemoteError, RepositoryUrl, clone_repository, plan_clone,
};

use super::interaction::{prompts, with_progress};
use super::lines;
use crate::cli::git::GitCloneArguments;
use crate::failure::Failure;
use crate::output;
use crate::wording::word;
use calve_receipt::GitClonePlanReceipt;

pub(crate) fn run(arguments: &GitCloneArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let request = request(arguments, cancel)?;
    let plan = plan_clone(&request)?;
    let how = lines::plan_text(&plan);
    if arguments.dry_run {
        return output::json_or(arguments.json, &GitClonePlanReceipt { plan }, &how);
    }
    output::note(&how.trim_end().replace('\n', "\n  "));
    let report = with_progress(|listener| clone_repository(&request, listener))?;
    for notice in &report.warnings {
        match notice.code.is_warning() {
            true => output::warn(&notice.message),
            false => output::note(&format!("note: {}", notice.message)),
        }
    }
    if report.warnings.iter().any(|notice| notice.code == NoticeCode::SparseMissing) {
        output::hint(&format!("`git -C {} ls-tree -rd --name-only HEAD` lists the directories", word(&request.dst)));
    }
    output::note(&lines::clone_sentence(&report));
    if arguments.json {
        return output::json(&report);
    }
    output::path(&request.dst)
}

fn request(arguments: &GitCloneArguments, cancel: &CancelToken) -> Result<GitCloneOptions, RemoteError> {
    let url = RepositoryUrl::parse(&arguments.url)?;
    let dst = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => url.directory_name()?.into(),
    };
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let purpose = arguments.purpose.unwrap_or(if in_ci { Purpose::Ci } else { Purpose::Dev });
    let revision = arguments.rev.as_ref().map(|id| id.to_ascii_lowercase());
    Ok(GitCloneOptions {
        url,
        dst,
        purpose,
        branch: arguments.branch.clone(),
        revision,
        sparse: arguments.sparse.clone(),
        require: arguments.require.clone(),
        prompts: prompts(),
        cancel: cancel.clone(),
    })
}
