//! `calve db list`.

use super::{data, home};
use crate::cli::db::ServerListArguments;
use crate::failure::Failure;
use crate::{db_receipt, output};
use calve_receipt::DbServersReceipt;

pub(crate) fn run(arguments: &ServerListArguments) -> Result<(), Failure> {
    let home = home()?;
    let (records, endings) = (calve_db::list(&home)?, calve_db::endings(&home));
    let services = if arguments.all { data::all(&home)? } else { Vec::new() };
    if arguments.json {
        let servers = records.iter().map(db_receipt::server).collect();
        let ended = Some(endings.into_iter().map(db_receipt::ended).collect());
        let services = arguments.all.then(|| services.iter().map(data::KeptData::receipt).collect());
        return output::json(&DbServersReceipt { servers, ended, services });
    }
    let names = records.iter().map(|record| &record.name).chain(endings.iter().map(|ending| &ending.name));
    let widest = names.chain(services.iter().map(data::KeptData::name)).map(String::len).max().unwrap_or(0);
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
    for data in &services {
        text.push_str(&format!("{:widest$}  {}\n", data.name(), data.line()));
    }
    output::result(&text)
}
