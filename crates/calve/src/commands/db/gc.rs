//! `calve db gc`.

use super::{data, unswept_home};
use crate::cli::db::GcArguments;
use crate::failure::Failure;
use crate::output;
use calve_receipt::DbGcReceipt;

pub(crate) fn run(arguments: &GcArguments) -> Result<(), Failure> {
    let home = unswept_home()?;
    let (orphans, removed) = data::orphans(&home, arguments.lose_data)?;
    let swept = calve_db::sweep(&home)?;
    calve_db::delete_trash(&swept)?;
    for name in &swept.servers {
        output::note(&format!("removed what was left of `{name}`"));
    }
    for name in &swept.builds {
        output::note(&format!("removed what was left of a build of the template `{name}`"));
    }
    for (name, why) in swept.kept {
        output::say(&format!("{name} is still there: {why}"));
    }
    let receipt = DbGcReceipt { servers: swept.servers, orphans, removed };
    if arguments.json { output::json(&receipt) } else { Ok(()) }
}
