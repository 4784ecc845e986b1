use calve_db::{Address, Record};

use super::home::home;
use crate::cli::db::UrlArguments;
use crate::failure::{FAILED, Failure};
use crate::output;
use calve_receipt::DbServerReceipt;

pub(crate) fn run(arguments: &UrlArguments) -> Result<(), Failure> {
    let Record { server, durable, .. } = calve_db::find(&home()?, &arguments.name)?;
    let address = &server.address;
    let line = match arguments.format.as_str() {
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

/// Returns the variables as lines for `eval`. The values are paths, numbers and names; the quotes are for an odd path.
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
