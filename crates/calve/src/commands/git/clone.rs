//! `calve git clone`.

use std::path::PathBuf;

use calve_core::{CancelToken, ShownPath};
use calve_git::remote::{
    GitCloneOptions, NoticeCode, Purpose, RemoteError, RepositoryUrl, Tip, clone_repository, plan_clone,
};

use super::{Line, failure, prompts};
use crate::cli::git::GitCloneArguments;
use crate::failure::Failure;
use crate::{git_receipt, output, wording};
use calve_receipt::GitClonePlanReceipt;

pub(crate) fn run(arguments: &GitCloneArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let request = request(arguments, cancel).map_err(failure)?;
    let (recipe, git) = plan_clone(&request).map_err(failure)?;
    if arguments.dry_run {
        if arguments.json {
            return output::json(&GitClonePlanReceipt { plan: git_receipt::plan(&recipe, &git, &request.dst) });
        }
        return output::result(&git_receipt::plan_text(&recipe, &request.dst));
    }
    output::note(&git_receipt::plan_text(&recipe, &request.dst).trim_end().replace('\n', "\n  "));
    let line = Line::new();
    let receipt = clone_repository(&request, &|text| line.show(text));
    drop(line);
    let receipt = receipt.map_err(failure)?;
    for notice in &receipt.notices {
        let is_warning = notice.code.is_warning();
        if is_warning || !output::is_quiet() {
            output::say(&format!("{}: {}", if is_warning { "warning" } else { "note" }, wording::git::notice(notice)));
        }
    }
    if receipt.notices.iter().any(|notice| notice.code == NoticeCode::SparseMissing) {
        output::say(&format!(
            "hint: `git -C {} ls-tree -rd --name-only HEAD` lists the directories",
            ShownPath(&request.dst)
        ));
    }
    output::note(&git_receipt::clone_sentence(&receipt, &request.dst));
    if arguments.json {
        return output::json(&git_receipt::clone(&receipt, &request.dst));
    }
    output::result(&format!("{}\n", ShownPath(&request.dst)))
}

fn request(arguments: &GitCloneArguments, cancel: &CancelToken) -> Result<GitCloneOptions, RemoteError> {
    let url = RepositoryUrl::parse(&arguments.url)?;
    let dst = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => url.directory_name().map(PathBuf::from).ok_or_else(|| RemoteError::NoName(url.to_string()))?,
    };
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let purpose = arguments.purpose.unwrap_or(if in_ci { Purpose::Ci } else { Purpose::Dev });
    let mut request = GitCloneOptions::new(url, dst, purpose);
    request.tip = match (&arguments.branch, &arguments.rev) {
        (Some(branch), _) => Tip::Branch(branch.clone()),
        (None, Some(id)) => Tip::Revision(id.to_ascii_lowercase()),
        (None, None) => Tip::Default,
    };
    request.sparse.clone_from(&arguments.sparse);
    request.require.clone_from(&arguments.require);
    request.prompts = prompts();
    request.cancel = cancel.clone();
    Ok(request)
}
