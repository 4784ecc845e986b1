//! Templates that a project's configuration describes: `engine`, `create` and `inputs` of a service.

use std::path::Path;
use std::process::Stdio;

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_db::{Caller, CommandEnd, CreateOptions, Error as DbError, Home, OwnedServer, Service};
use calve_git::hooks::{self, Hook, HookEnvironment, repository_of, word_of};
use calve_git::{ServiceConfig, TemplateRecipe, provenance_of};

use crate::consent::{self, Consent};
use crate::error::{Error, Result};
use crate::host::{Event, Host};
use crate::remedy::Remedy;

/// Makes sure that a template exists, by its name from [`name`]. A described one is made once for each content of its
/// inputs. Returns the name of the template that exists now.
pub(crate) fn ready(
    host: &dyn Host,
    home: &Home,
    root: &Path,
    mut name: String,
    (service, config): (&str, &ServiceConfig),
    consent: Consent,
    cancel: &CancelToken,
) -> Result<String> {
    let Some(recipe) = &config.recipe else {
        calve_db::service_template(home, &name)?;
        return Ok(name);
    };
    // The first time, a command may write some of its own inputs, such as a dump of the schema.
    for _ in 0..2 {
        // Made again if the engine's program was replaced by another version's, or the files are damaged.
        if calve_db::service_template(home, &name).is_ok_and(|template| template.program.path.is_file()) {
            return Ok(name);
        }
        make(host, home, root, &name, (service, config, recipe), consent, cancel)?;
        let now = self::name(root, service, config)?;
        if now == name {
            let prefix = &name[..name.rfind('-').map_or(0, |at| at + 1)];
            calve_db::remove_unused_templates(home, prefix, &name)?;
            return Ok(name);
        }
        // Its inputs existed for a moment only: no worktree has them.
        calve_db::remove_template(home, &name)?;
        name = now;
    }
    let text = format!("making the template of the service `{service}` changes its own `inputs`");
    Err(Error::failed(text, Remedy::CorrectWrittenInputs))
}

/// Returns a service's template name. A described template's depends on the present contents of its inputs.
pub(crate) fn name(root: &Path, service: &str, config: &ServiceConfig) -> Result<String> {
    name_by(root, root, service, config)
}

/// Returns [`name`] for another worktree of the same repository, with its inputs below `files`.
pub(crate) fn name_by(root: &Path, files: &Path, service: &str, config: &ServiceConfig) -> Result<String> {
    let Some(recipe) = &config.recipe else { return Ok(config.template.clone()) };
    let repository = word_of(&repository_of(root)?)?;
    let texts = [repository.as_str(), &recipe.engine, recipe.command.as_deref().unwrap_or_default()];
    let word = calve_db::recipe_word(&texts, &recipe.inputs, files).map_err(|error| match error {
        DbError::NoInput(pattern) => Error::refused(
            format!(
                "no file of this worktree matches `{}`, an input of the service `{service}`",
                pattern.escape_default()
            ),
            Remedy::CorrectInputs,
        ),
        other => other.into(),
    })?;
    Ok(format!("{service}-{:.6}-{word:.12}", repository))
}

/// Returns the engine that the configuration wants, if the data has another. A replaced template's data stays in use.
pub(crate) fn other_engine(home: &Home, config: &ServiceConfig, made: &Service) -> Option<String> {
    let engine = match &config.recipe {
        Some(recipe) => recipe.engine.clone(),
        None if config.template == made.template => return None,
        None => calve_db::template_with_program(home, &config.template).ok()?.program.engine,
    };
    (engine != made.program.engine).then_some(engine)
}

/// Returns the known reason why a service's data would not be made from the template `name`.
pub(crate) fn obstacle(
    host: &dyn Host,
    home: &Home,
    root: &Path,
    name: &str,
    config: &ServiceConfig,
    consent: Consent,
) -> Result<Option<String>> {
    let there = calve_db::service_template(home, name);
    let Some(recipe) = &config.recipe else { return Ok(there.err().map(|error| error.to_string())) };
    let Some(command) = recipe.command.as_deref().filter(|_| there.is_err()) else { return Ok(None) };
    let is_approved = match consent {
        Consent::Approved => consent::is_approved(host, &repository_of(root)?, Hook::Create, command)?,
        Consent::Everything => true,
        Consent::Nothing => return Ok(Some("its create command would not run".into())),
    };
    Ok((!is_approved).then(|| "its create command is not approved; `calve hook approve` shows it".into()))
}

fn make(
    host: &dyn Host,
    home: &Home,
    root: &Path,
    name: &str,
    (service, config, recipe): (&str, &ServiceConfig, &TemplateRecipe),
    consent: Consent,
    cancel: &CancelToken,
) -> Result<()> {
    if provenance_of(root)?.is_untrusted() {
        let text =
            format!("the template of the service `{service}` does not exist yet, and a pull request may not create it");
        return Err(Error::refused(text, Remedy::StartServicesInOwnWorktree));
    }
    match (recipe.command.as_deref(), consent) {
        (Some(command), Consent::Approved) => {
            consent::require(host, &repository_of(root)?, Hook::Create, command, cancel)?
        }
        (Some(command), Consent::Nothing) => {
            let text = format!("`--no-hooks` keeps the create command of the service `{service}` from running");
            let remedy = match consent::is_approved(host, &repository_of(root)?, Hook::Create, command)? {
                true => Remedy::StartServices,
                false => Remedy::ApproveAndStartServices,
            };
            return Err(Error::refused(text, remedy));
        }
        _ => {}
    }
    let mut options = CreateOptions::default();
    options.name = name.to_owned();
    options.engine = Some(recipe.engine.clone());
    options.inputs.clone_from(&recipe.inputs);
    options.command = recipe.command.iter().flat_map(|command| ["sh", "-c", command]).map(Into::into).collect();
    options.search = host.search();
    options.directory = root.to_path_buf();
    let mut run = |server: &OwnedServer| {
        recipe.command.as_deref().map_or(Ok(None), |command| fill(host, root, command, config, server))
    };
    let mut say = |event| host.report(Event::Template { name, event });
    let mut caller = Caller { say: &mut say, run: &mut run, cancel };
    calve_db::create_template(home, &options, &host.supervisor()?, &mut caller).map_err(|error| match error {
        DbError::Command { how, log, .. } => Error::failed(
            format!(
                "the create command of the service `{service}` failed ({how}); the server's log is `{}`",
                ShownPath(&log)
            ),
            Remedy::CorrectCommand,
        ),
        DbError::NotConnected { .. } => Error::failed(
            format!("the create command of the service `{service}` succeeded, but never connected to its server"),
            Remedy::UseVariable(config.variable.clone()),
        ),
        DbError::TemplateDamaged { .. } => Error::refused(error.to_string(), Remedy::RemoveTemplate(name.to_owned())),
        other => other.into(),
    })?;
    if recipe.command.is_some() && recipe.inputs.is_empty() {
        let text = format!("no file rebuilds the template of `{service}`: name those that `create` reads as `inputs`");
        host.report(Event::Note(text));
    }
    Ok(())
}

/// Runs the command that fills the template, in the worktree. The service's variable also names the server.
fn fill(
    host: &dyn Host,
    root: &Path,
    text: &str,
    config: &ServiceConfig,
    server: &OwnedServer,
) -> calve_db::Result<Option<CommandEnd>> {
    let surroundings = HookEnvironment { worktree: root.to_path_buf(), ..HookEnvironment::default() };
    let mut command = hooks::command(Hook::Create, text, &surroundings);
    host.introduce(&server.record.server, &mut command)?;
    command.env(&config.variable, &server.record.server.address.url);
    server.tie(&mut command)?;
    let ended = host.fill(command.stdin(Stdio::null()));
    ended.map_err(|source| DbError::io("run", "sh", source))
}
