//! `calve up`, `down`, `status` and `logs`: the services of a worktree.

use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_db::UnsavedDataRule;
use calve_git::Config;
use calve_git::environment::root_of;
use calve_receipt::human::size;
use calve_receipt::{ServiceReceipt, ServiceState, ServicesReceipt, path};

use crate::cli::services::{DownArguments, LogsArguments, ResetServiceArguments, ServicesArguments, StatusArguments};
use crate::commands::env;
use crate::commands::services::Services;
use crate::failure::{Failure, REFUSED};
use crate::{consent, output};

const NONE: &str = "this worktree has no services: `[services.NAME]` in .calve.toml names them";

pub(crate) fn up(arguments: &ServicesArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, config, mut services) = here()?;
    services.choose(&arguments.names)?;
    let ports = env::leased(&root, &config)?;
    let started = services.start(&root, cancel)?;
    if !output::is_quiet() {
        for service in services.receipts()?.iter().filter(|service| services.is_chosen(&service.name)) {
            let url = service.url.as_deref().unwrap_or_default();
            match (started.contains(&service.name), service.state) {
                (true, _) => output::say(&format!("started `{}`: {url}", service.name)),
                (false, ServiceState::Running) => output::say(&format!("`{}` runs already: {url}", service.name)),
                (false, _) => {}
            }
        }
        env::say_ports(&ports);
    }
    finish(&root, &services, arguments.json)?;
    services.complete()
}

pub(crate) fn down(arguments: &DownArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, _, mut services) = here()?;
    services.choose(&arguments.common.names)?;
    let unsaved = if arguments.force { UnsavedDataRule::Lose } else { UnsavedDataRule::Refuse };
    let stopped = services.stop(unsaved, cancel)?;
    if !output::is_quiet() {
        for service in services.receipts()?.iter().filter(|service| services.is_chosen(&service.name)) {
            output::say(&match stopped.contains(&service.name) {
                true => format!("stopped `{}`", service.name),
                false => format!("`{}` did not run", service.name),
            });
        }
    }
    finish(&root, &services, arguments.common.json)
}

pub(crate) fn reset(arguments: &ResetServiceArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, _, mut services) = here()?;
    let consent = |name: &str| {
        if arguments.yes || consent::can_ask() && consent::yes(&format!("Lose what was written to `{name}` here?")) {
            return Ok(());
        }
        let text = format!("the data of the service `{name}` may have been written to");
        Err(Failure::stated(REFUSED, text, "`--yes` puts it back to its template all the same"))
    };
    let reset = services.reset(&root, arguments.service.as_deref(), consent, cancel)?;
    output::note(&format!("reset `{reset}`"));
    finish(&root, &services, arguments.json)
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let (root, _, services) = here()?;
    let receipts = services.measured()?;
    if arguments.json {
        return output::json(&ServicesReceipt { path: path(&root), services: receipts });
    }
    if services.is_empty() {
        output::say(NONE);
    }
    let widest = receipts.iter().map(|service| service.name.len()).max().unwrap_or(0);
    let line = |service: &ServiceReceipt| {
        let url = service.url.as_deref().unwrap_or_default();
        let taken = taken(service).map(|taken| format!("  {taken}")).unwrap_or_default();
        let line = format!("{:widest$}  {:7}  {}{taken}  {url}", service.name, service.state, service.template);
        line.trim_end().to_owned() + "\n"
    };
    output::result(&receipts.iter().map(line).collect::<String>())
}

/// Describes the space that a service takes up, as in "31 MB memory, 12 MB disk". `None` if neither is known.
pub(crate) fn taken(service: &ServiceReceipt) -> Option<String> {
    let memory = service.memory_bytes.map(|bytes| format!("{} memory", size(bytes)));
    let disk = service.disk_bytes.map(|bytes| format!("{} disk", size(bytes)));
    let both: Vec<String> = memory.into_iter().chain(disk).collect();
    (!both.is_empty()).then(|| both.join(", "))
}

pub(crate) fn logs(arguments: &LogsArguments) -> Result<(), Failure> {
    let (_, _, services) = here()?;
    // Clients choose part of what is in it.
    let is_plain = |c: &char| !c.is_control() || "\n\t".contains(*c);
    output::result(&services.log(arguments.service.as_deref())?.chars().filter(is_plain).collect::<String>())
}

/// Returns the worktree around the current directory, its configuration, and its services.
fn here() -> Result<(PathBuf, Config, Services), Failure> {
    let root = root_of(&std::env::current_dir()?)?;
    let config = Config::of_worktree(&root)?;
    let services = Services::of(&root, config.services.clone())?;
    Ok((root, config, services))
}

/// Says so if the worktree has no services. Prints them as JSON if that is wanted.
fn finish(root: &Path, services: &Services, json: bool) -> Result<(), Failure> {
    if services.is_empty() {
        output::note(NONE);
    }
    if !json {
        return Ok(());
    }
    output::json(&ServicesReceipt { path: path(root), services: services.receipts()? })
}
