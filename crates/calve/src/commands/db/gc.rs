use calve_core::CancelToken;

use super::data;
use crate::cli::db::GcArguments;
use crate::failure::{Failure, USAGE};
use crate::host::Program;
use crate::{consent, output};
use calve_receipt::DbGcReceipt;

pub(crate) fn run(arguments: &GcArguments, cancel: &CancelToken) -> Result<(), Failure> {
    // A moved repository looks like a deleted one, so only named data may be lost.
    if arguments.lose_data && arguments.names.is_empty() {
        let text = "`--lose-data` discards only the data that you name";
        return Err(Failure::stated(USAGE, text, "`calve db gc` lists the names; then `calve db gc --lose-data NAME`"));
    }
    let home = calve_env::database_home(&Program)?;
    let (mut removed, mut ended) = data::remove(&home, &arguments.names, arguments.lose_data)?;
    let mut orphans = data::orphans(&home)?;
    if arguments.names.is_empty() && !orphans.is_empty() {
        data::say_orphans(&orphans);
        let may_ask = !arguments.json && !output::is_quiet() && consent::can_ask();
        if may_ask && consent::yes("Discard all of this data with its changes, and end its servers?") {
            let names: Vec<String> = orphans.into_iter().map(|data| data.service.name).collect();
            (removed, ended) = data::remove(&home, &names, true)?;
            orphans = data::orphans(&home)?;
        }
    }
    let swept = calve_db::sweep(&home)?;
    calve_db::delete_trash(&swept, cancel)?;
    swept.servers.iter().for_each(|name| output::note(&format!("removed what was left of `{name}`")));
    for name in &swept.builds {
        output::note(&format!("removed what was left of a build of the template `{name}`"));
    }
    for (name, why) in swept.kept {
        output::warn(&format!("{name} is still there: {why}"));
    }
    let orphans = orphans.iter().map(data::KeptData::receipt).collect();
    output::json_if(arguments.json, &DbGcReceipt { servers: swept.servers, orphans, removed })?;
    ended
}
