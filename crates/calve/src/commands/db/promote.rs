use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_db::{Home, Service};
use calve_env::services_of_named;
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
    for service in services_of_named(&home, &real_path::here()?, &arguments.worktree, arguments.service.as_deref())? {
        match promote(&home, &service, arguments, cancel) {
            Ok(done) => receipt.templates.push(done),
            Err(failure) => {
                // Report the services promoted before.
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
    arguments: &PromoteArguments,
    cancel: &CancelToken,
) -> Result<DbPromotedTemplate, Failure> {
    let template = &service.template;
    let what = format!("the data of `{}` in `{}`", service.service.escape_default(), ShownPath(&arguments.worktree));
    if arguments.dry_run {
        output::note(&format!("would make {what} the template `{template}`"));
        return Ok(DbPromotedTemplate { template: template.clone(), promoted: false });
    }
    let question = format!("Replace the template `{template}` by {what}?");
    let replacing = format!("replacing the template `{template}`");
    if !arguments.yes && !consent::confirm(&replacing, &question, "`--yes` replaces it")? {
        return Ok(DbPromotedTemplate { template: template.clone(), promoted: false });
    }
    calve_db::promote(home, &service.name, &supervisor()?, &mut |event| say_building(template, event), cancel)?;
    output::note(&format!("the template `{template}` has the data of `{}` now", ShownPath(&arguments.worktree)));
    // Failing to remove the replaced template is no failure: the new one is complete.
    if let Err(error) = calve_env::reap_trash(&Program, home) {
        output::warn("the former template was not removed; `calve db gc` removes it");
        output::failure(&error.into());
    }
    pool::refill(home, template);
    Ok(DbPromotedTemplate { template: template.clone(), promoted: true })
}
