//! Records that cannot be read: damaged ones, and those of another version. Lists leave them out, and nothing removes them.

use std::path::PathBuf;

use super::data;
use crate::error::{Error, Result};
use crate::registry::{self, Home, mark, template};
use crate::server::standby;

/// Returns the paths of the records that cannot be read, of templates, servers with their marks, services and pools.
pub fn unreadable(home: &Home) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut faults = vec![template::faults(&home.templates())?];
    for slot in registry::slots(home)?.iter().filter(|slot| registry::is_held(slot)) {
        found.extend(registry::read(slot).err());
        faults.push(template::faults(&mark::directory(slot))?);
    }
    for slot in template::directories(&home.services())? {
        found.extend(data::read(&slot).err());
    }
    found.extend(standby::faults(home));
    let path = |error| match error {
        Error::RecordDamaged(path) | Error::Io { path, .. } => Some(path),
        _ => None,
    };
    Ok(faults.into_iter().flatten().chain(found).filter_map(path).collect())
}
