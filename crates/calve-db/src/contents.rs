//! The contents of a server's databases, and the differences of two servers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use calve_core::CancelToken;

use crate::engine::{DatabaseObject, Purpose};
use crate::error::{Error, Result};
use crate::files::random;
use crate::registry::{self, Home};
use crate::server::Starter;
use crate::service::{self, ServiceOrigin};
use crate::start::{self, Ownership, StartOptions};

/// Something that is not the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentsDifference {
    /// The object before; `None` if only the second side has it.
    pub before: Option<DatabaseObject>,
    /// The object now; `None` if only the first side has it.
    pub after: Option<DatabaseObject>,
}

/// Returns what the databases of a template or a service hold. They are looked at on a server of its own, whose data is a clone: a service
/// goes on, and is held as when it is branched.
pub fn contents(
    home: &Home,
    origin: ServiceOrigin<'_>,
    supervisor: &[PathBuf],
    cancel: &CancelToken,
) -> Result<Vec<DatabaseObject>> {
    let mut server = match origin {
        ServiceOrigin::Template(template) => {
            let options = StartOptions { owner: Ownership::Caller, cancel: cancel.clone(), ..StartOptions::default() };
            start::start(home, template, &options, supervisor, &mut |_| ())?
        }
        ServiceOrigin::Service(source) => {
            home.prepare()?;
            let place = registry::reserve(home, &format!("{source}-{}", random::letters(6)?))?;
            let mut starter = Starter { supervisor, tell: &mut |_| (), cancel };
            service::start_copy(home, source, place, Purpose::Serve, &mut starter)?.0
        }
    };
    let found = server.contents(cancel);
    // Where it was interrupted, nobody listens: the server ends with the connection.
    if !matches!(found, Err(Error::Interrupted)) {
        server.stop()?;
    }
    found
}

/// Returns what differs, in the order of databases, kinds and names.
pub fn differences(before: Vec<DatabaseObject>, after: Vec<DatabaseObject>) -> Vec<ContentsDifference> {
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
