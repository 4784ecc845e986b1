//! `calve db list`.

use super::home;
use crate::cli::db::ListArguments;
use crate::failure::Failure;
use crate::{db_receipt, output};
use calve_receipt::DbServersReceipt;

pub(crate) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let home = home()?;
    let (records, endings) = (calve_db::list(&home)?, calve_db::endings(&home));
    if arguments.json {
        let servers = records.iter().map(db_receipt::server).collect();
        let ended = Some(endings.into_iter().map(db_receipt::ended).collect());
        return output::json(&DbServersReceipt { servers, ended });
    }
    let names = records.iter().map(|record| &record.name).chain(endings.iter().map(|ending| &ending.name));
    let widest = names.map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for record in records {
        let template = record.template.as_deref().unwrap_or("-");
        text.push_str(&format!(
            "{:widest$}  {template}  {}  {}\n",
            record.name,
            if record.is_down { "down" } else { record.strategy_name() },
            record.address.url
        ));
    }
    for ending in endings {
        text.push_str(&format!("{:widest$}  {}\n", ending.name, ending.reason));
    }
    output::result(&text)
}
