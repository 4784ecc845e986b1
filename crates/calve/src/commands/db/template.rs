//! `calve db template`.

use std::env;
use std::process::Stdio;

use calve_core::CancelToken;
use calve_db::{BuildEvent, Caller, CommandEnd, CreateOptions, OwnedServer};

use super::{command_for, data, home, reap_trash, runtimes, search, supervisor};
use crate::cli::db::{ListArguments, TemplateCreateArguments, TemplateRemoveArguments};
use crate::failure::Failure;
use crate::{db_receipt, output, sys};
use calve_receipt::human::{count, size};
use calve_receipt::{DbTemplateReceipt, DbTemplatesReceipt};

pub(crate) fn create(arguments: &TemplateCreateArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = CreateOptions::default();
    options.name.clone_from(&arguments.name);
    options.engine.clone_from(&arguments.engine);
    options.from.clone_from(&arguments.from);
    options.base.clone_from(&arguments.base);
    options.mark.clone_from(&arguments.from_mark);
    options.inputs.clone_from(&arguments.input);
    options.rebuild = arguments.rebuild;
    options.command.clone_from(&arguments.command);
    options.server_bin.clone_from(&arguments.server_bin);
    options.image.clone_from(&arguments.image);
    options.runtime.clone_from(&arguments.runtime);
    options.runtimes = runtimes();
    options.search = search();
    options.directory = env::current_dir()?;
    let mut say = saying(&arguments.name);
    let mut run = |server: &OwnedServer| command(arguments, server);
    let mut caller = Caller { say: &mut say, run: &mut run, cancel };
    let home = home()?;
    let built = calve_db::create_template(&home, &options, &supervisor()?, &mut caller)?;
    // The template that it replaces.
    reap_trash(&home)?;
    if !built.reused {
        super::pool::refill(&home, &arguments.name);
    }
    let template = &built.template;
    if !output::is_quiet() {
        let what = if built.reused { "is there, made of the same" } else { "is made" };
        let (files, bytes) = (count(template.files), size(template.bytes));
        output::say(&format!("the template `{}` {what}: {files} files, {bytes}", template.name));
    }
    if !arguments.json {
        return Ok(());
    }
    output::json(&DbTemplateReceipt { template: db_receipt::template(template), reused: built.reused })
}

/// Says the events of making the template `name`.
pub(crate) fn saying(name: &str) -> impl FnMut(BuildEvent) {
    move |said| {
        let text = match said {
            BuildEvent::Waiting => format!("waiting for another process that makes the template `{name}`"),
            BuildEvent::Unfinished(what) => format!("warning: {what}"),
            BuildEvent::Neutralised(what) => format!("in the template: {what}"),
        };
        output::note(&text);
    }
}

/// Runs what fills the template. Its output is no result of this command's.
fn command(arguments: &TemplateCreateArguments, server: &OwnedServer) -> calve_db::Result<Option<CommandEnd>> {
    let Some(mut command) = command_for(&server.record.address, &arguments.command)? else { return Ok(None) };
    let failed = |source| {
        calve_db::Error::io(calve_db::Operation::Run, arguments.command.first().cloned().unwrap_or_default(), source)
    };
    server.tie(&mut command)?;
    command.stdin(Stdio::null()).stdout(sys::stderr_for_command().map_err(failed)?);
    let end = sys::command_end(sys::run_command(&mut command).map_err(failed)?);
    Ok(end.map(|(code, how)| CommandEnd { code, how }))
}

pub(crate) fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let templates = calve_db::list_templates(&home()?)?;
    if arguments.json {
        return output::json(&DbTemplatesReceipt { templates: templates.iter().map(db_receipt::template).collect() });
    }
    let widest = templates.iter().map(|template| template.name.len()).max().unwrap_or(0);
    let line = |template: &calve_db::DatabaseTemplate| {
        let (files, bytes) = (count(template.files), size(template.bytes));
        format!("{:widest$}  {}  {files} files, {bytes}\n", template.name, template.engine)
    };
    output::result(&templates.iter().map(line).collect::<String>())
}

pub(crate) fn remove(arguments: &TemplateRemoveArguments) -> Result<(), Failure> {
    let home = home()?;
    for name in &arguments.names {
        data::say_users(&home, name)?;
        calve_db::remove_template(&home, name)?;
        output::note(&format!("removed the template `{name}`"));
        reap_trash(&home)?;
    }
    Ok(())
}
