//! The contents of a template's databases, and in what others differ from them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use calve_core::CancelToken;

use crate::engine::DatabaseObject;
use crate::error::{Error, Result};
use crate::registry::Home;
use crate::start::{self, Ownership, StartOptions};

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentsDifference {
    /// The object before; `None` if only the second side has it.
    pub before: Option<DatabaseObject>,
    /// The object now; `None` if only the first side has it.
    pub after: Option<DatabaseObject>,
}

/// Returns what the databases of a template hold. They are looked at on a server of its own.
pub(crate) fn contents(
    home: &Home,
    template: &str,
    supervisor: &[PathBuf],
    cancel: &CancelToken,
) -> Result<Vec<DatabaseObject>> {
    let options = StartOptions { owner: Ownership::Caller, cancel: cancel.clone(), ..StartOptions::default() };
    let mut server = start::start(home, template, &options, supervisor, &mut |_| ())?;
    let found = server.contents(cancel);
    // Where it was interrupted, nobody listens: the server ends with the connection.
    if !matches!(found, Err(Error::Interrupted)) {
        server.stop()?;
    }
    found
}

/// Returns what differs, in the order of databases, kinds and names.
pub(crate) fn differences(before: Vec<DatabaseObject>, after: Vec<DatabaseObject>) -> Vec<ContentsDifference> {
    let key = |object: &DatabaseObject| (object.database.clone(), object.kind.clone(), object.name.clone());
    let mut both: BTreeMap<_, ContentsDifference> = BTreeMap::new();
    for object in before {
        both.insert(key(&object), ContentsDifference { before: Some(object), after: None });
    }
    for object in after {
        let found = both.entry(key(&object)).or_insert(ContentsDifference { before: None, after: None });
        found.after = Some(object);
    }
    both.into_values().filter(|difference| difference.before != difference.after).collect()
}
