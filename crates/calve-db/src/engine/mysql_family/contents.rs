//! The contents of a server's databases, by `SHOW CREATE` and sums of hashes.

use std::time::Duration;

use super::USER;
use super::wire::{Row, Session};
use crate::address::Address;
use crate::engine::connection::Connection;
use crate::engine::{DatabaseObject, Rows};

/// The sums of a large table take a while.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest answer with definitions.
const LONGEST_ANSWER: usize = 32 << 20;

/// Values are written in one way, whatever the server sets.
const SETTINGS: &[&str] =
    &["SET NAMES utf8mb4", "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1"];

const OWN: &str = "NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')";

/// Kinds with a definition of their own: the words between SHOW CREATE and the name, the column that has the definition, and the query for the
/// databases and names.
const PARTS: &[(&str, usize, &str)] = &[
    (
        "PROCEDURE",
        2,
        "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'PROCEDURE' AND routine_schema",
    ),
    (
        "FUNCTION",
        2,
        "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND routine_schema",
    ),
    ("TRIGGER", 2, "SELECT trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema"),
    ("EVENT", 3, "SELECT event_schema, event_name FROM information_schema.events WHERE event_schema"),
];

pub(super) fn read(server: &Address) -> Result<Vec<DatabaseObject>, String> {
    objects(server).map_err(|error| error.to_string())
}

fn objects(server: &Address) -> std::io::Result<Vec<DatabaseObject>> {
    let connection = Connection::open(server, PATIENCE).ok_or(std::io::ErrorKind::ConnectionRefused)?;
    let mut session = Session::connect(connection.allowing(LONGEST_ANSWER), USER)?;
    for setting in SETTINGS {
        session.query(setting)?;
    }
    let mut objects = Vec::new();
    let schemas = format!("SELECT schema_name FROM information_schema.schemata WHERE schema_name {OWN}");
    for [database] in session.query(&schemas)?.into_iter().filter_map(texts) {
        let definition = shown(&mut session, &format!("DATABASE {}", quoted(&database)), 1)?;
        objects.push(object(&database, "database", &database, definition, None));
    }
    let tables =
        format!("SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema {OWN}");
    for [database, name, kind] in session.query(&tables)?.into_iter().filter_map(texts) {
        let path = format!("{}.{}", quoted(&database), quoted(&name));
        if kind == "VIEW" {
            let definition = shown(&mut session, &format!("VIEW {path}"), 1)?;
            objects.push(object(&database, "view", &name, definition, None));
            continue;
        }
        let definition = without_counter(&shown(&mut session, &format!("TABLE {path}"), 1)?);
        let rows = rows(&mut session, &database, &name, &path)?;
        objects.push(object(&database, "table", &name, definition, rows));
    }
    for (what, column, query) in PARTS {
        for [database, name] in session.query(&format!("{query} {OWN}"))?.into_iter().filter_map(texts) {
            let path = format!("{what} {}.{}", quoted(&database), quoted(&name));
            let definition = shown(&mut session, &path, *column)?;
            objects.push(object(&database, &what.to_lowercase(), &name, definition, None));
        }
    }
    Ok(objects)
}

fn object(database: &str, kind: &str, name: &str, definition: String, rows: Option<Rows>) -> DatabaseObject {
    DatabaseObject { database: database.into(), kind: kind.into(), name: name.into(), definition, rows }
}

/// Returns the columns of a row that has no NULL in it, and `None` for another row.
fn texts<const N: usize>(row: Row) -> Option<[String; N]> {
    row.into_iter().collect::<Option<Vec<_>>>()?.try_into().ok()
}

fn shown(session: &mut Session<Connection>, what: &str, column: usize) -> std::io::Result<String> {
    let row = session.query(&format!("SHOW CREATE {what}"))?.pop().unwrap_or_default();
    Ok(row.into_iter().nth(column).flatten().unwrap_or_default())
}

/// Counts a table's rows and sums their hashes. It hashes each value by itself, so that no row is too long; the sum does not depend on the
/// order of rows.
fn rows(session: &mut Session<Connection>, database: &str, table: &str, path: &str) -> std::io::Result<Option<Rows>> {
    let columns = format!(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = {} AND table_name = {} ORDER BY ordinal_position",
        text(database),
        text(table)
    );
    let values: Vec<String> = session
        .query(&columns)?
        .into_iter()
        .filter_map(texts)
        .map(|[name, kind]| {
            // As text a FLOAT has six digits only.
            let value =
                if kind.eq_ignore_ascii_case("float") { format!("({} + 0e0)", quoted(&name)) } else { quoted(&name) };
            format!("IFNULL(SHA2({value}, 256), '-')")
        })
        .collect();
    let hash = format!("CONV(LEFT(SHA2(CONCAT('', {}), 256), 15), 16, 10)", values.join(", "));
    let sum = format!("SELECT COUNT(*), COALESCE(SUM(CAST({hash} AS DECIMAL(20, 0))), 0) FROM {path}");
    let found = session.query(&sum)?.pop().and_then(texts);
    Ok(found.and_then(|[count, sum]| Rows::new(count.parse().ok()?, &sum)))
}

/// Removes the next number of an AUTO_INCREMENT from a definition: it is no part of the definition.
fn without_counter(definition: &str) -> String {
    const COUNTER: &str = " AUTO_INCREMENT=";
    let Some(at) = definition.rfind(COUNTER).filter(|at| definition[..*at].rfind("\n)").is_some()) else {
        return definition.to_owned();
    };
    let rest = definition[at + COUNTER.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{}{rest}", &definition[..at])
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn text(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_counters_left_out() {
        assert_eq!((quoted("a`b"), text(r"a'\")), ("`a``b`".into(), r"'a''\\'".into()));
        let table =
            "CREATE TABLE `t` (\n  `a` int AUTO_INCREMENT\n) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb4";
        assert_eq!(without_counter(table), table.replace(" AUTO_INCREMENT=4", ""));
        assert_eq!(without_counter("CREATE TABLE `t` (\n  `a` int\n)"), "CREATE TABLE `t` (\n  `a` int\n)");
    }
}
