//! `calve db gc`.

use super::unswept_home;
use crate::cli::db::GcArguments;
use crate::failure::Failure;
use crate::output;
use calve_receipt::DbGcReceipt;

pub(crate) fn run(arguments: &GcArguments) -> Result<(), Failure> {
    let swept = calve_db::sweep(&unswept_home()?)?;
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
    if arguments.json { output::json(&DbGcReceipt { servers: swept.servers }) } else { Ok(()) }
}
