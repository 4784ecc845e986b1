//! The rows that every test of a suite must find, and those that it leaves.

use std::io;

use super::super::client::Session;
use crate::error::BenchError;

/// Brings a server to the state that the tests begin with, which is not its template's.
pub(super) fn prepare(session: &mut Session) -> io::Result<()> {
    session.run("CREATE TABLE calve_mark (a int)")?;
    session.run("INSERT INTO calve_mark VALUES (1)")?;
    Ok(())
}

/// Looks that no other test was here, and changes what the next one would see.
pub(super) fn test(session: &mut Session, write: &str) -> Result<(), BenchError> {
    let found = session.run("SELECT count(*) FROM information_schema.tables WHERE table_name = 'calve_suite'")?;
    let marked = session.run("SELECT count(*) FROM calve_mark")?;
    if (found.as_deref(), marked.as_deref()) != (Some("0"), Some("1")) {
        return Err(io::Error::other("a test saw what another one has written").into());
    }
    session.run("CREATE TABLE calve_suite (a int)")?;
    session.run("INSERT INTO calve_suite VALUES (1)")?;
    session.run("DELETE FROM calve_mark")?;
    session.run(write)?;
    Ok(())
}

/// Names each table, with a checksum of all its rows.
pub(super) fn of(session: &mut Session) -> io::Result<Vec<String>> {
    let listed = session.tables()?.unwrap_or_default();
    let sum = |table: &str| {
        let sum = session.run(&session.checksum(table))?.unwrap_or_else(|| "none".into());
        Ok(format!("{table} {sum}"))
    };
    listed.lines().map(sum).collect()
}

/// Fails if any table is not what it should be.
pub(super) fn compare(session: &mut Session, expected: &[String], way: &str) -> Result<(), BenchError> {
    let found = of(session)?;
    match found == expected {
        true => Ok(()),
        false => {
            Err(io::Error::other(format!("`{way}` gave other tables than it should: {found:?}, not {expected:?}"))
                .into())
        }
    }
}
