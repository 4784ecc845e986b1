//! The contents of a PostgreSQL server's databases, from its catalogs.

use std::time::Duration;

use serde::Deserialize;

use super::DATABASE;
use crate::address::Address;
use crate::engine::connection::Connection;
use crate::engine::postgres::wire::{LoginError, Session};
use crate::engine::{DatabaseObject, Rows};

/// The sums of a large table take a while.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest answer with definitions.
const LONGEST_ANSWER: usize = 32 << 20;

/// Names in definitions are qualified, and values are written in one way, whatever a database or role sets.
const SETTINGS: &str = "SET search_path = pg_catalog; SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; \
    SET timezone = 'UTC'; SET extra_float_digits = 3; SET bytea_output = 'hex'; SET xmlbinary = 'base64'; \
    SET statement_timeout = 0; SET row_security = off; SET default_transaction_read_only = on";

const DATABASES: &str = "SELECT json_build_object('kind', 'database', 'name', datname, 'definition', concat_ws(E'\\n', \
    'ENCODING ' || pg_encoding_to_char(encoding), 'COLLATE ' || datcollate, 'CTYPE ' || datctype, \
    'OWNER ' || pg_get_userbyid(datdba), 'GRANTS ' || datacl::text)) \
    FROM pg_database WHERE datallowconn AND NOT datistemplate ORDER BY datname";

/// The sum of all rows' hashes does not depend on their order.
const OBJECTS: &str = include_str!("contents.sql");

/// A row of these queries.
#[derive(Deserialize)]
struct ObjectRow {
    kind: String,
    name: String,
    definition: String,
    /// The query for its rows.
    #[serde(default)]
    query: Option<String>,
}

#[derive(Deserialize)]
struct Sum {
    count: u64,
    sum: String,
}

pub(super) fn read(server: &Address) -> Result<Vec<DatabaseObject>, String> {
    let mut objects = Vec::new();
    for database in found(&mut session(server, DATABASE)?, DATABASES)? {
        let mut session = session(server, &database.name)?;
        for found in found(&mut session, OBJECTS)? {
            let rows = found.query.as_deref().map(|query| rows(&mut session, query)).transpose()?.flatten();
            objects.push(object(&database.name, found, rows));
        }
        objects.push(object(&database.name.clone(), database, None));
    }
    Ok(objects)
}

fn object(database: &str, found: ObjectRow, rows: Option<Rows>) -> DatabaseObject {
    let ObjectRow { kind, name, definition, .. } = found;
    DatabaseObject { database: database.to_owned(), kind, name, definition, rows }
}

fn session(server: &Address, database: &str) -> Result<Session<Connection>, String> {
    let allow = |connection: Connection| connection.allowing(LONGEST_ANSWER);
    let mut session = Session::allowing(server, database, PATIENCE, allow).map_err(LoginError::into_message)?;
    session.query(SETTINGS)?;
    Ok(session)
}

fn found(session: &mut Session<Connection>, sql: &str) -> Result<Vec<ObjectRow>, String> {
    session.query(sql)?.iter().map(|row| serde_json::from_str(row).map_err(|error| error.to_string())).collect()
}

fn rows(session: &mut Session<Connection>, sql: &str) -> Result<Option<Rows>, String> {
    let Some(row) = session.query(sql)?.pop() else { return Ok(None) };
    let Sum { count, sum } = serde_json::from_str(&row).map_err(|error| error.to_string())?;
    Ok(Rows::new(count, &sum))
}
