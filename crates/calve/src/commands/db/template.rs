use std::process::Stdio;

use calve_core::CancelToken;
use calve_db::{Caller, CommandEnd, CreateOptions, OwnedServer};
use calve_env::Host as _;

use super::data;
use super::home::{command_for, home, runtimes, supervisor};
use crate::cli::db::TemplateCreateArguments;
use crate::failure::Failure;
use crate::host::{Program, say_building};
use crate::{operands, output, real_path, sys};
use calve_receipt::human::{counted, size};
use calve_receipt::{DbTemplateReceipt, DbTemplatesReceipt};

pub(crate) fn create(arguments: &TemplateCreateArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let options = CreateOptions {
        name: arguments.name.clone(),
        engine: arguments.engine.clone(),
        from: arguments.from.clone(),
        base: arguments.base.clone(),
        mark: arguments.from_mark.clone(),
        inputs: arguments.input.clone(),
        rebuild: arguments.rebuild,
        command: arguments.command.clone(),
        server_bin: arguments.server_bin.clone(),
        image: arguments.image.clone(),
        runtime: arguments.runtime.clone(),
        runtimes: runtimes(),
        search: Program.search(),
        directory: real_path::here()?,
    };
    let mut say = |event| say_building(&arguments.name, event);
    let mut not_started = None;
    let mut run = |server: &OwnedServer| command(arguments, server, &mut not_started);
    let mut caller = Caller { say: &mut say, run: &mut run, cancel };
    let home = home()?;
    let built = calve_db::create_template(&home, &options, &supervisor()?, &mut caller);
    let built = built.map_err(|error| not_started.unwrap_or_else(|| error.into()))?;
    // The replaced template.
    calve_env::reap_trash(&Program, &home)?;
    if !built.reused {
        super::pool::refill(&home, &arguments.name);
    }
    let template = &built.template;
    let what = if built.reused { "already exists, from the same inputs" } else { "was created" };
    let (files, bytes) = (counted(template.files, "file"), size(template.bytes));
    output::note(&format!("the template `{}` {what}: {files}, {bytes}", template.name));
    output::json_if(arguments.json, &DbTemplateReceipt { template: built.template.into(), reused: built.reused })
}

/// Runs the user's command with its stdout on stderr, because its output is not this command's result.
fn command(
    arguments: &TemplateCreateArguments,
    server: &OwnedServer,
    not_started: &mut Option<Failure>,
) -> calve_db::Result<Option<CommandEnd>> {
    let Some(mut command) = command_for(&server.record.server, &arguments.command)? else { return Ok(None) };
    let failed = |source: std::io::Error| {
        let (program, kind) = (&arguments.command[0], source.kind());
        *not_started = Some(Failure::not_started(program, source));
        calve_db::Error::io("run", program, kind)
    };
    server.tie(&mut command)?;
    command.stdin(Stdio::null()).stdout(output::for_command());
    Ok(sys::command_end(sys::run_command(&mut command).map_err(failed)?))
}

pub(crate) fn list(json: bool) -> Result<(), Failure> {
    let home = home()?;
    super::home::warn_of_unreadable(&home)?;
    let templates = calve_db::list_templates(&home)?;
    let row = |template: &calve_db::DatabaseTemplate| {
        let (files, bytes) = (counted(template.files, "file"), size(template.bytes));
        (template.name.clone(), format!("{}  {files}, {bytes}", template.program.engine))
    };
    let text = output::table(templates.iter().map(row));
    let templates = templates.into_iter().map(Into::into).collect();
    output::json_or(json, &DbTemplatesReceipt { templates }, &text)
}

pub(crate) fn remove(names: &[String]) -> Result<(), Failure> {
    let home = home()?;
    operands::each(names, |name| {
        data::say_users(&home, name)?;
        calve_db::remove_template(&home, name)?;
        output::note(&format!("removed the template `{name}`"));
        Ok(calve_env::reap_trash(&Program, &home)?)
    })?
}
