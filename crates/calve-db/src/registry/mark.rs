//! Marks: kept states of one server, to go back to. Its supervisor makes and removes them.

use std::path::{Path, PathBuf};

use crate::error::{Error, Remedy, Result};
use crate::files::home::Home;
use crate::registry::slots::slot_of;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{name, servers};

/// Returns the directory of a server's marks, closed to its account.
pub(crate) fn directory(slot: &Path) -> PathBuf {
    slot.join("marks")
}

/// Returns a running server's marks, the oldest first.
pub fn marks(home: &Home, server: &str) -> Result<Vec<DatabaseTemplate>> {
    let record = servers::find(home, server)?;
    let mut marks = template::read_all(&directory(&slot_of(home, &record.server.name)))?;
    // Several may have been made in a second.
    marks.sort_by_cached_key(|mark| fs_err::metadata(mark.slot.join(template::DOCUMENT)).ok()?.modified().ok());
    Ok(marks)
}

pub(crate) fn find(home: &Home, server: &str, mark: &str) -> Result<DatabaseTemplate> {
    let record = servers::find(home, server)?;
    name::check(mark)?;
    let slot = directory(&slot_of(home, &record.server.name)).join(mark);
    template::read(&slot)?.ok_or_else(|| unknown(server, mark))
}

pub(crate) fn unknown(server: &str, mark: &str) -> Error {
    Error::failed(format!("the server `{server}` has no mark `{mark}`"), Remedy::ListMarks(server.to_owned()))
}
