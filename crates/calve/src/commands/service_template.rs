//! The templates that a project's configuration describes: `engine`, `create` and `inputs` of a service.

use std::path::Path;
use std::process::Stdio;

use calve_core::{CancelToken, ShownPath};
use calve_db::{Caller, CommandEnd, CreateOptions, Error, Home, OwnedServer};
use calve_git::hooks::{self, Hook, HookEnvironment, repository_of, word_of};
use calve_git::{ServiceConfig, TemplateRecipe, provenance_of};

use super::db;
use crate::failure::{FAILED, Failure, REFUSED};
use crate::{consent, sys};

/// Whether the project's commands may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Those that the user has approved, or approves now.
    Approved,
    /// The user has said `--yes`.
    Everything,
    /// The user has said `--no-hooks`.
    Nothing,
}

/// Makes sure that the template `name` is there, which is that of [`name`]. One that the configuration describes is made, once for each content
/// of its inputs. Returns the name of the template that is there now.
pub(crate) fn ready(
    home: &Home,
    root: &Path,
    mut name: String,
    (service, config): (&str, &ServiceConfig),
    consent: Consent,
    cancel: &CancelToken,
) -> Result<String, Failure> {
    let Some(recipe) = &config.recipe else {
        calve_db::service_template(home, &name)?;
        return Ok(name);
    };
    // A command may write some of its own inputs, as a dump of the schema, the first time.
    for _ in 0..2 {
        // An engine that was replaced meanwhile, by its next version, has none of it.
        if calve_db::service_template(home, &name).is_ok_and(|template| template.program.is_file()) {
            return Ok(name);
        }
        make(home, root, &name, (service, config, recipe), consent, cancel)?;
        let now = self::name(root, service, config)?;
        if now == name {
            let prefix = &name[..name.rfind('-').map_or(0, |at| at + 1)];
            calve_db::remove_unused_templates(home, prefix, &name)?;
            return Ok(name);
        }
        // It is of inputs that nobody has had.
        calve_db::remove_template(home, &name)?;
        name = now;
    }
    let text =
        format!("the files that are the `inputs` of the service `{service}` change whenever its template is made");
    Err(Failure::stated(FAILED, text, "take what `create` writes out of `inputs` in .calve.toml"))
}

/// Returns the name of a service's template: of one that the configuration describes, that for the present contents of its inputs.
pub(crate) fn name(root: &Path, service: &str, config: &ServiceConfig) -> Result<String, Failure> {
    let Some(recipe) = &config.recipe else { return Ok(config.template.clone()) };
    let repository = word_of(&repository_of(root)?)?;
    let texts = [repository.as_str(), &recipe.engine, recipe.command.as_deref().unwrap_or_default()];
    let word = calve_db::recipe_word(&texts, &recipe.inputs, root).map_err(|error| match error {
        Error::NoInput(pattern) => Failure::stated(
            REFUSED,
            format!(
                "no file of this worktree matches `{}`, an input of the service `{service}`",
                pattern.escape_default()
            ),
            "correct `inputs` in .calve.toml",
        ),
        other => other.into(),
    })?;
    Ok(format!("{service}-{:.6}-{word:.12}", repository))
}

/// Returns why `calve up` would not make the data of a service, as far as that can be told beforehand.
pub(crate) fn obstacle(
    home: &Home,
    root: &Path,
    service: &str,
    config: &ServiceConfig,
) -> Result<Option<String>, Failure> {
    let there = calve_db::service_template(home, &name(root, service, config)?);
    let Some(recipe) = &config.recipe else { return Ok(there.err().map(|error| error.to_string())) };
    let Some(command) = recipe.command.as_deref().filter(|_| there.is_err()) else { return Ok(None) };
    let is_approved =
        consent::approvals()?.has(&repository_of(root)?, Hook::Create, command).map_err(consent::failed)?;
    Ok((!is_approved).then(|| "its create command is not approved; `calve hook approve` shows it".into()))
}

/// Makes the template, if that may be.
fn make(
    home: &Home,
    root: &Path,
    name: &str,
    (service, config, recipe): (&str, &ServiceConfig, &TemplateRecipe),
    consent: Consent,
    cancel: &CancelToken,
) -> Result<(), Failure> {
    if provenance_of(root)?.is_untrusted() {
        let text =
            format!("nothing has made the template of the service `{service}` yet, and a pull request makes none");
        let hint = "`calve up` in a worktree of your own makes it";
        return Err(Failure::stated(REFUSED, text, hint));
    }
    match (recipe.command.as_deref(), consent) {
        (Some(command), Consent::Approved) => consent::require(&repository_of(root)?, Hook::Create, command)?,
        (Some(_), Consent::Nothing) => {
            let text = format!("`--no-hooks` keeps the create command of the service `{service}` from running");
            return Err(Failure::stated(REFUSED, text, "`calve up` runs it"));
        }
        _ => {}
    }
    let mut options = CreateOptions::default();
    options.name = name.to_owned();
    options.engine = Some(recipe.engine.clone());
    options.inputs.clone_from(&recipe.inputs);
    options.command = recipe.command.iter().flat_map(|command| ["sh", "-c", command]).map(Into::into).collect();
    options.search = db::search();
    options.directory = root.to_path_buf();
    let mut run = |server: &OwnedServer| {
        recipe.command.as_deref().map_or(Ok(None), |command| fill(root, command, config, server))
    };
    let mut say = db::template::saying(name);
    let mut caller = Caller { say: &mut say, run: &mut run, cancel };
    calve_db::create_template(home, &options, &db::supervisor()?, &mut caller).map_err(|error| match error {
        Error::Command { how, log, .. } => Failure::stated(
            FAILED,
            format!(
                "the create command of the service `{service}` failed ({how}); the server's log is `{}`",
                ShownPath(&log)
            ),
            "put right what the command said; `calve up` runs it again",
        ),
        Error::NotConnected { .. } => Failure::stated(
            FAILED,
            format!("the create command of the service `{service}` ended well, but never connected to its server"),
            format!("let it use `{}`", config.variable),
        ),
        other => other.into(),
    })?;
    Ok(())
}

/// Runs the command that fills the template, in the worktree. It finds the server by the variable of the service, too.
fn fill(root: &Path, text: &str, config: &ServiceConfig, server: &OwnedServer) -> calve_db::Result<Option<CommandEnd>> {
    let failed = |source| Error::io(calve_db::Operation::Run, "sh", source);
    let address = &server.record.address;
    let mut command = hooks::command(Hook::Create, text, &HookEnvironment::of(root));
    db::introduce(address, &mut command)?;
    command.env(&config.variable, &address.url).stdout(sys::stderr_for_command().map_err(failed)?);
    server.tie(&mut command)?;
    let end = sys::command_end(sys::run_hook(command.stdin(Stdio::null())).map_err(failed)?);
    Ok(end.map(|(code, how)| CommandEnd { code, how }))
}
