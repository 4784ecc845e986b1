//! `calve db list`.

use super::home;
use crate::cli::db::ListArguments;
use crate::failure::Failure;
use crate::{db_receipt, output};

pub(crate) fn run(arguments: &ListArguments) -> Result<(), Failure> {
    let records = calve_db::list(&home()?)?;
    if arguments.json {
        return output::json(&db_receipt::servers(&records));
    }
    let widest = records.iter().map(|record| record.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for record in records {
        let template = record.template.as_deref().unwrap_or("-");
        text.push_str(&format!("{:widest$}  {template}  {}  {}\n", record.name, record.strategy, record.address.url));
    }
    output::result(&text)
}
