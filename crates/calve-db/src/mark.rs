//! Marks: kept states of one server, to go back to. Its supervisor makes and removes them.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::registry::{self, Home, name};
use crate::template::{self, DatabaseTemplate};

/// Returns where the marks of a server are: closed to its account.
pub(crate) fn directory(place: &Path) -> PathBuf {
    place.join("marks")
}

/// Returns the marks of a server that runs, the oldest first.
pub fn marks(home: &Home, server: &str) -> Result<Vec<DatabaseTemplate>> {
    let record = registry::find(home, server)?;
    let mut marks = template::read_all(&directory(&registry::place_of(home, &record.name)))?;
    // Several may have been made in a second.
    marks.sort_by_cached_key(template::made);
    Ok(marks)
}

/// Returns the mark of that name.
pub(crate) fn find(home: &Home, server: &str, mark: &str) -> Result<DatabaseTemplate> {
    let record = registry::find(home, server)?;
    name::check(mark)?;
    let place = directory(&registry::place_of(home, &record.name)).join(mark);
    template::read(&place).ok_or_else(|| Error::UnknownMark { server: server.to_owned(), mark: mark.to_owned() })
}
