use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_db::{Home, OwnedServer, Ownership, Server, StartOptions};

use super::home::supervisor;
use super::pool;
use crate::cli::db::{ServerOptions, StartArguments};
use crate::failure::Failure;
use crate::host::Program;
use crate::output;
use calve_receipt::{DbServerReceipt, human};

pub(crate) fn run(arguments: &StartArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = options(&arguments.server, cancel);
    options.name.clone_from(&arguments.name);
    if !arguments.owner_pid.is_empty() {
        options.owner = Ownership::Processes(arguments.owner_pid.clone());
    }
    let home = calve_env::database_home(&Program)?;
    // Starting the next standby sweeps in the background. With a given name, sweep now: it may be a killed server's.
    let has_sweeper =
        options.may_be_standby() && options.name.is_none() && calve_db::has_pool(&home, &arguments.template);
    if !has_sweeper {
        calve_env::reap_trash(&Program, &home)?;
    }
    pool::configure(&home, &arguments.template, &options)?;
    let owned = started(&home, &arguments.template, &options)?;
    let server = owned.record.server.clone();
    let url = format!("{}\n", server.address.url);
    output::json_or(arguments.json, &DbServerReceipt { server }, &url)?;
    // Only after the caller has its answer.
    pool::refill(&home, &arguments.template);
    Ok(())
}

pub(super) fn options(server: &ServerOptions, cancel: &CancelToken) -> StartOptions {
    let (ttl, cancel) = (server.ttl.0, cancel.clone());
    StartOptions { tcp: server.tcp, ttl, strategy: server.strategy, cancel, ..StartOptions::default() }
}

pub(super) fn started(home: &Home, template: &str, options: &StartOptions) -> Result<OwnedServer, Failure> {
    let server = calve_db::start(home, template, options, &supervisor()?)?;
    announce_copies(&server.record.server);
    Ok(server)
}

/// Number of files to name, largest first.
const NAMED: usize = 5;

/// Announces files that an overlay copies whole, which will delay the server.
pub(super) fn announce_copies(server: &Server) {
    let files = &server.launch.copied_on_first_open;
    if files.is_empty() {
        return;
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    output::note(&format!(
        "an overlay without reflinks copies a file as a whole when the server first opens it. Large files: {}, {}",
        human::count(files.len() as u64),
        human::size(bytes)
    ));
    for file in files.iter().take(NAMED) {
        output::note(&format!("  {}  {}", ShownPath(&file.path), human::size(file.bytes)));
    }
}
