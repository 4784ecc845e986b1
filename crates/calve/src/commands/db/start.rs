//! `calve db start`.

use calve_core::Shown;
use calve_db::{Ownership, Record, StartOptions};

use super::{home, supervisor};
use crate::cli::db::{ServerOptions, StartArguments};
use crate::failure::Failure;
use crate::{db_receipt, output};

pub(crate) fn run(arguments: &StartArguments) -> Result<(), Failure> {
    let mut options = options(&arguments.server);
    options.name.clone_from(&arguments.name);
    options.owner = arguments.owner_pid.map_or(Ownership::Nobody, Ownership::Process);
    let owned = calve_db::start(&home()?, &arguments.template, &options, &supervisor()?)?;
    announce(&owned.record);
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

/// The largest are named.
const NAMED: usize = 5;

/// What will make somebody wait.
pub(super) fn announce(record: &Record) {
    let files = &record.copy_up;
    if files.is_empty() {
        return;
    }
    let bytes = files.iter().map(|file| file.bytes).sum();
    output::say(&format!(
        "an overlay without reflinks copies a file as a whole when the server first opens it. Large files: {}, {}",
        output::count(files.len() as u64),
        output::size(bytes)
    ));
    for file in files.iter().take(NAMED) {
        output::say(&format!("  {}  {}", Shown(&file.path), output::size(file.bytes)));
    }
}
