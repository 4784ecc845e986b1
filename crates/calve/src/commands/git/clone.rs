use calve_core::CancelToken;
use calve_git::remote::{
    GitCloneOptions, NoticeCode, Purpose, RemoteError, RepositoryUrl, Tip, clone_repository, plan_clone,
};

use super::interaction::{prompts, with_progress};
use super::receipt;
use crate::cli::git::GitCloneArguments;
use crate::failure::Failure;
use crate::wording::word;
use crate::{output, wording};
use calve_receipt::GitClonePlanReceipt;

pub(crate) fn run(arguments: &GitCloneArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let request = request(arguments, cancel)?;
    let (recipe, git) = plan_clone(&request)?;
    if arguments.dry_run {
        if arguments.json {
            return output::json(&GitClonePlanReceipt { plan: receipt::plan(&recipe, &git, &request.dst) });
        }
        return output::result(&receipt::plan_text(&recipe, &request.dst));
    }
    output::note(&receipt::plan_text(&recipe, &request.dst).trim_end().replace('\n', "\n  "));
    let receipt = with_progress(|listener| clone_repository(&request, listener))?;
    for notice in &receipt.notices {
        let text = wording::git::notice(notice);
        match notice.code.is_warning() {
            true => output::warn(&text),
            false => output::note(&format!("note: {text}")),
        }
    }
    if receipt.notices.iter().any(|notice| notice.code == NoticeCode::SparseMissing) {
        output::hint(&format!("`git -C {} ls-tree -rd --name-only HEAD` lists the directories", word(&request.dst)));
    }
    output::note(&receipt::clone_sentence(&receipt, &request.dst));
    if arguments.json {
        return output::json(&receipt::clone(&receipt, &request.dst));
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
    let tip = match (&arguments.branch, &arguments.rev) {
        (Some(branch), _) => Tip::Branch(branch.clone()),
        (None, Some(id)) => Tip::Revision(id.to_ascii_lowercase()),
        (None, None) => Tip::Default,
    };
    let (sparse, require) = (arguments.sparse.clone(), arguments.require.clone());
    Ok(GitCloneOptions { url, dst, purpose, tip, sparse, require, prompts: prompts(), cancel: cancel.clone() })
}
