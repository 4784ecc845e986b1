//! Taking a server that waits.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::time::SystemTime;

use calve_core::CancelToken;

use super::{end, waiting};
use crate::error::Result;
use crate::registry::template::DatabaseTemplate;
use crate::registry::{self, Home, Record};
use crate::server::messages::{Answer, Claim, Request};
use crate::server::starter::{OwnedServer, converse};

/// Takes a standby of the template as it is now. `None` if none waits.
pub(crate) fn claim(home: &Home, template: &DatabaseTemplate, claim: &Claim) -> Result<Option<OwnedServer>> {
    let pool = home.pool(&template.name);
    if !pool.exists() {
        return Ok(None);
    }
    // It is used, also if nothing waits at this moment.
    let _ = fs_err::File::open(&pool).and_then(|file| file.file().set_modified(SystemTime::now()));
    for record in waiting(home, &template.name)? {
        if record.template_identity != template.identity() {
            end(&record);
            continue;
        }
        if let Some(name) = &claim.name {
            registry::forget_ending(home, name);
        }
        if let Some(owned) = take(home, &record, claim)? {
            return Ok(Some(owned));
        }
    }
    Ok(None)
}

/// Takes over a standby. `None` if it has ended, or another caller was first.
fn take(home: &Home, record: &Record, claim: &Claim) -> Result<Option<OwnedServer>> {
    let Ok(stream) = UnixStream::connect(&record.control) else { return Ok(None) };
    let mut talk = BufReader::new(stream);
    let answer = converse(&mut talk, &Request::Claim(claim.clone()), &CancelToken::default())?;
    match answer.map(Answer::into_result).transpose()? {
        Some(Answer::Ready(record)) => {
            Ok(Some(OwnedServer { record: *record, home: home.clone(), talk, supervisor: None }))
        }
        _ => Ok(None),
    }
}
