//! `calve db start`.

use calve_core::CancelToken;
use calve_db::{Home, OwnedServer, Ownership, StartOptions};

use super::copies::{self, CopyPrinter};
use super::{home, pool, supervisor, unswept_home};
use crate::cli::db::{ServerOptions, StartArguments};
use crate::failure::Failure;
use crate::{db_receipt, output};
use calve_receipt::DbServerReceipt;

pub(crate) fn run(arguments: &StartArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let mut options = options(&arguments.server, cancel);
    options.name.clone_from(&arguments.name);
    if !arguments.owner_pid.is_empty() {
        options.owner = Ownership::Processes(arguments.owner_pid.clone());
    }
    let home = if may_wait_for_a_sweep(arguments, &options)? { unswept_home()? } else { home()? };
    pool::configure(&home, &arguments.template, &options)?;
    let (owned, following) = started(&home, &arguments.template, &arguments.server, &options)?;
    if let Some(following) = following {
        following.end();
        output::say(&format!("trace: what comes later is shown by `calve db trace {}`", owned.record.name));
    }
    if arguments.json {
        output::json(&DbServerReceipt { server: db_receipt::server(&owned.record) })?;
    } else {
        output::result(&format!("{}\n", owned.record.address.url))?;
    }
    // Once whoever asked has the answer.
    pool::refill(&home, &arguments.template);
    Ok(())
}

/// Returns whether a standby may be there, and the process that starts the next one can sweep. A name may be that of a server that was killed.
fn may_wait_for_a_sweep(arguments: &StartArguments, options: &StartOptions) -> Result<bool, Failure> {
    let is_possible = options.may_be_standby() && options.name.is_none();
    Ok(is_possible && calve_db::has_pool(&unswept_home()?, &arguments.template))
}

pub(super) fn options(server: &ServerOptions, cancel: &CancelToken) -> StartOptions {
    let mut options = StartOptions::default();
    options.tcp = server.tcp;
    options.ttl = server.ttl.0;
    options.strategy = server.strategy;
    options.trace = server.trace;
    options.cancel = cancel.clone();
    options
}

/// Starts it, and says meanwhile what an overlay will copy, and with `--trace` what it has.
pub(super) fn started(
    home: &Home,
    template: &str,
    server: &ServerOptions,
    options: &StartOptions,
) -> Result<(OwnedServer, Option<CopyPrinter>), Failure> {
    let mut following = None;
    let owned = calve_db::start(home, template, options, &supervisor()?, &mut |starting| {
        if !server.quiet {
            copies::announce(starting);
        }
        if server.trace {
            following = Some(CopyPrinter::begin(starting));
        }
    });
    match owned {
        Ok(owned) => {
            if server.trace && following.is_none() {
                output::say(&format!(
                    "trace: a clone by {}: nothing is copied as a whole",
                    owned.record.strategy_name()
                ));
            }
            Ok((owned, following))
        }
        Err(error) => {
            if let Some(following) = following {
                following.end();
            }
            Err(error.into())
        }
    }
}
