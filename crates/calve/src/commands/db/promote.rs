use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_db::{Home, Service};
use calve_env::promotable_data;
use calve_receipt::{DbPromoteReceipt, DbPromotedTemplate};

use super::home::{home, supervisor};
use super::pool;
use crate::cli::db::PromoteArguments;
use crate::failure::Failure;
use crate::host::{Program, say_building};
use crate::{consent, output, real_path};

pub(crate) fn run(arguments: &PromoteArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let mut receipt = DbPromoteReceipt { templates: Vec::new() };
    let (here, service) = (real_path::here()?, arguments.service.as_deref());
    for (service, template) in promotable_data(&Program, &here, &arguments.worktree, service)? {
        match promote(&home, &service, &template, arguments, cancel) {
            Ok(promoted) => receipt.templates.push(DbPromotedTemplate { template, promoted }),
            Err(failure) => {
                // Those before it are promoted.
                output::json_if(arguments.json && !receipt.templates.is_empty(), &receipt)?;
                return Err(failure);
            }
        }
    }
    output::json_if(arguments.json, &receipt)
}

fn promote(
    home: &Home,
    service: &Service,
    template: &str,
    arguments: &PromoteArguments,
    cancel: &CancelToken,
) -> Result<bool, Failure> {
    let what = format!("the data of `{}` in `{}`", service.service.escape_default(), ShownPath(&arguments.worktree));
    if arguments.dry_run {
        output::note(&format!("would make {what} the template `{template}`"));
        return Ok(false);
    }
    let question = format!("Replace the template `{template}` by {what}?");
    let replacing = format!("replacing the template `{template}`");
    if !arguments.yes && !consent::confirm(&replacing, &question, "`--yes` replaces it")? {
        return Ok(false);
    }
    let say = &mut |event| say_building(template, event);
    calve_db::promote(home, &service.name, template, &supervisor()?, say, cancel)?;
    output::note(&format!("the template `{template}` has the data of `{}` now", ShownPath(&arguments.worktree)));
    // The template that it replaces. It may stay: the new one is made.
    if let Err(error) = calve_env::reap_trash(&Program, home) {
        output::warn("the former template was not removed; `calve db gc` removes it");
        output::failure(&error.into());
    }
    pool::refill(home, template);
    Ok(true)
}
