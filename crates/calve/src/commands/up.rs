//! `calve up`, `down`, `status` and `logs`: the services of a worktree.

use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_db::UnsavedDataRule;
use calve_git::Config;
use calve_git::environment::root_of;
use calve_receipt::human::size;
use calve_receipt::{ServiceReceipt, ServicesReceipt, path};

use crate::cli::services::{DownArguments, LogsArguments, ResetServiceArguments, ServicesArguments, StatusArguments};
use crate::commands::services::Services;
use crate::failure::{Failure, REFUSED};
use crate::{consent, output};

const NONE: &str = "this worktree has no services: `[services.NAME]` in .calve.toml names them";

pub(crate) fn up(arguments: &ServicesArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, mut services) = here()?;
    let started = services.start(&root, cancel)?;
    report(&root, &services, arguments, "started", &started)?;
    services.complete()
}

pub(crate) fn down(arguments: &DownArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, services) = here()?;
    let unsaved = if arguments.force { UnsavedDataRule::Lose } else { UnsavedDataRule::Refuse };
    let stopped = services.stop(unsaved, cancel)?;
    report(&root, &services, &arguments.common, "stopped", &stopped)
}

pub(crate) fn reset(arguments: &ResetServiceArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let (root, mut services) = here()?;
    let consent = |name: &str| {
        if arguments.yes || consent::can_ask() && consent::yes(&format!("Lose what was written to `{name}` here?")) {
            return Ok(());
        }
        let text = format!("the data of the service `{name}` may have been written to");
        Err(Failure::stated(REFUSED, text, "`--yes` puts it back to its template all the same"))
    };
    let reset = services.reset(&root, arguments.service.as_deref(), consent, cancel)?;
    let printed = ServicesArguments { json: arguments.json };
    report(&root, &services, &printed, "reset", &[reset])
}

pub(crate) fn status(arguments: &StatusArguments) -> Result<(), Failure> {
    let (root, services) = here()?;
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
    let (_, services) = here()?;
    // Clients choose part of what is in it.
    let is_plain = |c: &char| !c.is_control() || "\n\t".contains(*c);
    output::result(&services.log(arguments.service.as_deref())?.chars().filter(is_plain).collect::<String>())
}

/// Returns the worktree around the current directory, and its services.
fn here() -> Result<(PathBuf, Services), Failure> {
    let root = root_of(&std::env::current_dir()?)?;
    let services = Services::of(&root, Config::of_worktree(&root)?.services)?;
    Ok((root, services))
}

fn report(
    root: &Path,
    services: &Services,
    arguments: &ServicesArguments,
    done: &str,
    names: &[String],
) -> Result<(), Failure> {
    if !output::is_quiet() {
        if services.is_empty() {
            output::say(NONE);
        }
        names.iter().for_each(|name| output::say(&format!("{done} `{name}`")));
    }
    if !arguments.json {
        return Ok(());
    }
    output::json(&ServicesReceipt { path: path(root), services: services.receipts()? })
}
