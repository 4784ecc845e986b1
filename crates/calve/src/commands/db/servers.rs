use std::time::Instant;

use calve_core::CancelToken;
use calve_db::{Address, Error, Record};
use calve_receipt::human::duration;
use calve_receipt::{DbServerReceipt, DbServersReceipt};

use super::data;
use super::home::{home, warn_of_unreadable};
use super::start::announce_copies;
use crate::cli::db::{ServerListArguments, StopArguments};
use crate::failure::{FAILED, Failure};
use crate::{operands, output};

pub(super) fn list(arguments: &ServerListArguments) -> Result<(), Failure> {
    let home = home()?;
    warn_of_unreadable(&home)?;
    let (records, endings) = (calve_db::list(&home)?, calve_db::endings(&home));
    let services = if arguments.all { data::all(&home)? } else { Vec::new() };
    if arguments.json {
        let servers = records.into_iter().map(|record| record.server).collect();
        let ended = Some(endings.into_iter().map(Into::into).collect());
        let services = arguments.all.then(|| services.iter().map(data::KeptData::receipt).collect());
        return output::json(&DbServersReceipt { servers, ended, services });
    }
    let running = records.into_iter().map(|Record { server, .. }| {
        let template = server.template.as_deref().unwrap_or("-");
        let state = if server.is_down { "down" } else { server.launch.strategy_name() };
        let more = format!("{template}  {state}  {}", server.address.url);
        (server.name, more)
    });
    let ended = endings.into_iter().map(|ending| (ending.name, ending.reason.to_string()));
    let kept = services.iter().map(|data| (data.service.name.clone(), data.line()));
    output::result(&output::table(running.chain(ended).chain(kept)))
}

pub(super) fn logs(name: &str) -> Result<(), Failure> {
    let (text, ending) = calve_db::log(&home()?, name)?;
    if let Some(ending) = &ending {
        output::note(&format!("`{}` {}", ending.name, ending.reason));
    }
    output::log(&text)
}

pub(super) fn reset(names: &[String], to: Option<&str>, json: bool, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let mut servers = Vec::new();
    let ended = operands::each(names, |name| {
        let started = Instant::now();
        let server = calve_db::reset(&home, name, to, cancel)?.server;
        let took = duration(started.elapsed());
        announce_copies(&server);
        let how = if server.standby { "a standby" } else { server.launch.strategy_name() };
        output::note(&format!("reset `{name}` by {how} in {took}"));
        servers.push(server);
        Ok(())
    })?;
    output::json_if(json, &DbServersReceipt { servers, ended: None, services: None })?;
    ended
}

pub(super) fn stop(arguments: &StopArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    // `calve down` stops worktrees' servers.
    let names = if arguments.all { calve_db::throwaway(&home)? } else { arguments.names.clone() };
    let mut servers = Vec::new();
    let ended = operands::each(&names, |name| {
        let started = Instant::now();
        match calve_db::stop(&home, name, cancel) {
            Ok(stopped) => {
                output::note(&format!("stopped `{name}` in {}", duration(started.elapsed())));
                servers.extend(stopped.map(|record| record.server));
                Ok(())
            }
            // It has just ended, with its owner or by its age.
            Err(Error::UnknownServer(_) | Error::ServerEnded { .. }) if arguments.all => Ok(()),
            Err(error) => Err(error.into()),
        }
    })?;
    if arguments.all && data::orphans(&home)?.iter().any(|data| data.runs) {
        output::note("servers of missing worktrees are still running: `calve db gc` lists them");
    }
    output::json_if(arguments.json, &DbServersReceipt { servers, ended: None, services: None })?;
    ended
}

pub(super) fn url(name: &str, format: &str) -> Result<(), Failure> {
    let Record { server, durable, .. } = calve_db::find(&home()?, name)?;
    let address = &server.address;
    let line = match format {
        "json" => return output::json(&DbServerReceipt { server }),
        "env" => return output::result(&lines(address)),
        "dsn" => &address.dsn,
        "tcp" => address.tcp_url.as_ref().ok_or_else(|| {
            let text = format!("the server `{}` does not listen on a port", server.name);
            let hint = match durable {
                true => "services listen on sockets only; a server that `calve db start --tcp` starts has a port",
                false => "start it with --tcp",
            };
            Failure::stated(FAILED, text, hint)
        })?,
        _ => &address.url,
    };
    output::result(&format!("{line}\n"))
}

/// Formats the variables for `eval`. Values are paths, numbers and names; only an odd path needs the quotes.
fn lines(address: &Address) -> String {
    let (mut unset, mut lines) = (String::new(), String::new());
    for (name, value) in &address.environment {
        match value {
            Some(value) => lines += &format!("export {name}='{}'\n", value.replace('\'', "'\\''")),
            None => unset += &format!("unset {name}\n"),
        }
    }
    unset + &lines
}
