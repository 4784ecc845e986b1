//! `calve db url`.

use calve_db::Record;

use super::home;
use crate::cli::db::UrlArguments;
use crate::failure::{FAILED, Failure};
use crate::{db_receipt, output};
use calve_receipt::DbServerReceipt;

pub(crate) fn run(arguments: &UrlArguments) -> Result<(), Failure> {
    let record = calve_db::find(&home()?, &arguments.name)?;
    let address = &record.address;
    let line = match arguments.format.as_str() {
        "json" => return output::json(&DbServerReceipt { server: db_receipt::server(&record) }),
        "env" => return output::result(&lines(&record)),
        "dsn" => &address.dsn,
        "tcp" => address.tcp_url.as_ref().ok_or_else(|| {
            let text = format!("the server `{}` does not listen on a port", record.name);
            Failure::stated(FAILED, text, "start it with --tcp")
        })?,
        _ => &address.url,
    };
    output::result(&format!("{line}\n"))
}

/// Returns the variables as lines for `eval`. The values are paths, numbers and names; the quotes are for an odd path.
fn lines(record: &Record) -> String {
    let variables = record.address.environment();
    let line = |(name, value): &(String, String)| format!("export {name}='{}'\n", value.replace('\'', "'\\''"));
    let unset = format!("unset {}\n", record.address.foreign_variables().join(" "));
    std::iter::once(unset).chain(variables.iter().map(line)).collect()
}
