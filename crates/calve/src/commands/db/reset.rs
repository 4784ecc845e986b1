//! `calve db reset`.

use calve_core::CancelToken;

use super::{copies, home};
use crate::cli::db::ResetArguments;
use crate::db_receipt;
use crate::failure::Failure;
use crate::output;
use calve_receipt::DbServersReceipt;
use calve_receipt::human::duration;

pub(crate) fn run(arguments: &ResetArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let mut servers = Vec::new();
    for name in &arguments.names {
        let reset = calve_db::reset(&home, name, arguments.to.as_deref(), cancel)?;
        let record = reset.record;
        copies::announce(&record);
        if !output::is_quiet() {
            let how = if record.standby { "a standby" } else { record.strategy_name() };
            output::say(&format!("reset `{name}` by {how} in {}", duration(reset.took)));
        }
        servers.push(db_receipt::server(&record));
    }
    if arguments.json { output::json(&DbServersReceipt { servers, ended: None, services: None }) } else { Ok(()) }
}
