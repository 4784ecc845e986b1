use calve_db::Record;

use super::data;
use super::home::home;
use crate::cli::db::ServerListArguments;
use crate::failure::Failure;
use crate::output;
use calve_receipt::DbServersReceipt;

pub(crate) fn run(arguments: &ServerListArguments) -> Result<(), Failure> {
    let home = home()?;
    super::home::warn_of_unreadable(&home)?;
    let (records, endings) = (calve_db::list(&home)?, calve_db::endings(&home));
    let services = if arguments.all { data::all(&home)? } else { Vec::new() };
    if arguments.json {
        let servers = records.into_iter().map(|record| record.server).collect();
        let ended = Some(endings.into_iter().map(Into::into).collect());
        let services = arguments.all.then(|| services.iter().map(data::KeptData::receipt).collect());
        return output::json(&DbServersReceipt { servers, ended, services });
    }
    let names = records.iter().map(|record| &record.server.name).chain(endings.iter().map(|ending| &ending.name));
    let widest = names.chain(services.iter().map(data::KeptData::name)).map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for Record { server, .. } in records {
        let template = server.template.as_deref().unwrap_or("-");
        let state = if server.is_down { "down" } else { server.launch.strategy_name() };
        text.push_str(&format!("{:widest$}  {template}  {state}  {}\n", server.name, server.address.url));
    }
    for ending in endings {
        text.push_str(&format!("{:widest$}  {}\n", ending.name, ending.reason));
    }
    for data in &services {
        text.push_str(&format!("{:widest$}  {}\n", data.name(), data.line()));
    }
    output::result(&text)
}
