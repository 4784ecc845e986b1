use calve_core::CancelToken;

use super::copies;
use super::home::home;
use crate::cli::db::ResetArguments;
use crate::failure::Failure;
use crate::{operands, output};
use calve_receipt::DbServersReceipt;
use calve_receipt::human::duration;

pub(crate) fn run(arguments: &ResetArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let mut servers = Vec::new();
    let ended = operands::each(&arguments.names, |name| {
        let reset = calve_db::reset(&home, name, arguments.to.as_deref(), cancel)?;
        let record = reset.record;
        copies::announce(&record.server);
        let how = if record.server.standby { "a standby" } else { record.server.launch.strategy_name() };
        output::note(&format!("reset `{name}` by {how} in {}", duration(reset.took)));
        servers.push(record.server);
        Ok(())
    })?;
    if arguments.json {
        output::json(&DbServersReceipt { servers, ended: None, services: None })?;
    }
    ended
}
