use std::path::Path;

use calve_core::CancelToken;
use calve_db::{DatabaseTemplate, LossRule, Service};
use calve_env::{Environment, Services, StartedServices};
use calve_receipt::human::size;
use calve_receipt::{ServiceReceipt, ServiceState, ServicesReceipt, path};

use crate::cli::services::{DownArguments, ResetServiceArguments, ServicesArguments};
use crate::commands::db;
use crate::commands::worktree::{env, services};
use crate::failure::Failure;
use crate::host::Program;
use crate::{consent, output, real_path};

const NONE: &str = "this worktree has no services: `[services.NAME]` in .calve.toml names them";

pub(crate) fn up(arguments: &ServicesArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let environment = here()?;
    let StartedServices { ports, mut services, started, env_files } = environment.up(&arguments.names, cancel)?;
    for service in services.receipts()?.iter().filter(|service| services.is_chosen(&service.name)) {
        let url = service.url.as_deref().unwrap_or_default();
        match (started.contains(&service.name), service.state) {
            (true, _) => output::note(&format!("started `{}`: {url}", service.name)),
            (false, ServiceState::Running) => output::note(&format!("`{}` is already running: {url}", service.name)),
            (false, _) => {}
        }
    }
    env::say_rewritten(&env_files);
    env::ports_line(&ports).iter().for_each(|line| output::note(line));
    finish(&environment.root, &services, arguments.json)?;
    services::complete(&mut services)
}

pub(crate) fn down(arguments: &DownArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let environment = here()?;
    let unsaved = LossRule::from_consent(arguments.force);
    let services = environment.chosen(&arguments.common.names)?;
    let stopped = services.stop(unsaved, cancel)?;
    for service in services.receipts()?.iter().filter(|service| services.is_chosen(&service.name)) {
        output::note(&match stopped.contains(&service.name) {
            true => format!("stopped `{}`", service.name),
            false => format!("`{}` was not running", service.name),
        });
    }
    finish(&environment.root, &services, arguments.common.json)
}

pub(crate) fn reset(arguments: &ResetServiceArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let environment = here()?;
    let may_lose = |service: &Service, wanted: &DatabaseTemplate| {
        let (was, now) = (&service.program.engine, &wanted.program.engine);
        let lost = if was == now { "everything written to".to_owned() } else { format!("the {was} data of") };
        let lost = format!("{lost} the {}", services::whose(service));
        let question = format!("Discard {lost}? It becomes a new clone of the template `{}` ({now}).", wanted.name);
        let refused = format!("a reset would discard {lost}");
        consent::require(arguments.yes, &question, &refused, "`--yes` resets it all the same")
    };
    let reset = environment.reset(arguments.service.as_deref(), may_lose, cancel)?;
    output::note(&format!("reset `{}`", reset.service));
    reset.env_files.iter().for_each(env::say_rewritten);
    reset.started?;
    reset.env_files?;
    finish(&environment.root, &reset.services, arguments.json)
}

pub(crate) fn status(json: bool) -> Result<(), Failure> {
    let environment = here()?;
    let services = environment.services()?;
    let receipts = services.measured()?;
    if let Ok(home) = calve_env::database_home(&Program) {
        db::home::warn_of_unreadable(&home)?;
    }
    if services.is_empty() && !json {
        output::note(NONE);
    }
    let row = |service: &ServiceReceipt| {
        let url = service.url.as_deref().unwrap_or_default();
        let taken = taken(service).map(|taken| format!("  {taken}")).unwrap_or_default();
        (service.name.clone(), format!("{:7}  {}{taken}  {url}", service.state, service.template))
    };
    let text = output::table(receipts.iter().map(row));
    output::json_or(json, &ServicesReceipt { path: path(&environment.root), services: receipts }, &text)
}

/// Describes a service's memory and disk space, as in "31 MB memory, 12 MB disk". `None` if neither is known.
pub(crate) fn taken(service: &ServiceReceipt) -> Option<String> {
    let memory = service.memory_bytes.map(|bytes| format!("{} memory", size(bytes)));
    let disk = service.disk_bytes.map(|bytes| format!("{} disk", size(bytes)));
    let both: Vec<String> = memory.into_iter().chain(disk).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

pub(crate) fn logs(service: Option<&str>) -> Result<(), Failure> {
    output::log(&here()?.services()?.log(service)?)
}

fn here() -> Result<Environment<'static>, Failure> {
    Ok(Environment::find(&Program, &real_path::here()?)?)
}

fn finish(root: &Path, services: &Services<'_>, json: bool) -> Result<(), Failure> {
    if services.is_empty() {
        output::note(NONE);
    }
    if json { output::json(&ServicesReceipt { path: path(root), services: services.receipts()? }) } else { Ok(()) }
}
