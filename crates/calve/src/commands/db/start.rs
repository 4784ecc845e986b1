//! `calve db start`.

use calve_db::{Ownership, StartOptions};

use super::{home, supervisor};
use crate::cli::db::{ServerOptions, StartArguments};
use crate::failure::Failure;
use crate::{db_receipt, output};

pub(crate) fn run(arguments: &StartArguments) -> Result<(), Failure> {
    let mut options = options(&arguments.server);
    options.name.clone_from(&arguments.name);
    options.owner = arguments.owner_pid.map_or(Ownership::Nobody, Ownership::Process);
    let owned = calve_db::start(&home()?, &arguments.template, &options, &supervisor()?)?;
    if arguments.json {
        output::json(&db_receipt::server(&owned.record))
    } else {
        output::result(&format!("{}\n", owned.record.address.url))
    }
}

pub(super) fn options(server: &ServerOptions) -> StartOptions {
    let mut options = StartOptions::default();
    options.tcp = server.tcp;
    options.ttl = server.ttl.0;
    options.strategy = server.strategy;
    options
}
