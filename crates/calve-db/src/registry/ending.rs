//! How servers ended that nobody has stopped, and the last lines of their logs. Kept for a while, where only this user can read it.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Home, find, unix_now};
use crate::end_reason::EndReason;
use crate::error::{Error, Result};
use crate::files::private;

const SUFFIX: &str = ".ended.json";
const KEPT: usize = 32;
const KEPT_S: u64 = 3 * 24 * 60 * 60;

/// A server that ended, although nobody has stopped it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Ending {
    pub name: String,
    pub reason: EndReason,
    pub ended_unix_s: u64,
    pub(crate) log: String,
}

impl Ending {
    /// Returns the ending of a server whose files are still in `place`.
    pub(crate) fn of(place: &Path, name: &str, reason: EndReason) -> Self {
        // Everybody who has tests knows why these have ended.
        let log = if reason == EndReason::OwnerEnded { String::new() } else { crate::log::last_lines(place) };
        Self { name: name.to_owned(), reason, ended_unix_s: unix_now(), log }
    }

    /// Keeps it in the directory of logs. The server is gone in any case, so nothing fails when this does.
    pub(crate) fn keep(&self, logs: &Path) {
        if self.reason != EndReason::OwnerEnded {
            let _ = private::write_json(&path(logs, &self.name), self);
        }
    }
}

fn path(logs: &Path, name: &str) -> PathBuf {
    logs.join(format!("{name}{SUFFIX}"))
}

/// Returns the ending of the server of that name.
pub(crate) fn ending(home: &Home, name: &str) -> Option<Ending> {
    private::read_json(&path(&home.logs(), name))
}

/// Forgets the earlier servers of a name.
pub(crate) fn forget(home: &Home, name: &str) {
    let _ = fs::remove_file(path(&home.logs(), name));
}

/// Returns the servers that ended lately, the last one first.
pub fn endings(home: &Home) -> Vec<Ending> {
    let entries = fs::read_dir(home.logs()).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX)));
    let mut found: Vec<Ending> = files.filter_map(|path| private::read_json(&path)).collect();
    found.sort_by(|a, b| b.ended_unix_s.cmp(&a.ended_unix_s).then_with(|| a.name.cmp(&b.name)));
    found
}

/// Removes endings that are old or too many.
pub(crate) fn sweep(home: &Home) {
    let found = endings(home);
    let oldest = unix_now().saturating_sub(KEPT_S);
    for (_, old) in found.iter().enumerate().filter(|(at, ending)| *at >= KEPT || ending.ended_unix_s < oldest) {
        forget(home, &old.name);
    }
}

/// The last lines of a server's log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Log {
    /// The lines, as the server wrote them.
    pub text: String,
    /// How it ended, if it has.
    pub ending: Option<Ending>,
}

/// Returns the last lines of the log of a server that runs, or that ended lately.
pub fn log(home: &Home, name: &str) -> Result<Log> {
    match find(home, name) {
        Ok(record) => Ok(Log { text: crate::log::last_lines(&record.files(home)), ending: None }),
        Err(Error::ServerEnded { .. }) => {
            let ending = ending(home, name).ok_or_else(|| Error::UnknownServer(name.into()))?;
            Ok(Log { text: ending.log.clone(), ending: Some(ending) })
        }
        Err(error) => Err(error),
    }
}

/// Returns the error that there is no server of this name, with the reason if it is known.
pub(super) fn missing(home: &Home, wanted: &str) -> Error {
    match ending(home, wanted) {
        Some(Ending { name, reason, .. }) if name == wanted => Error::ServerEnded { name, reason },
        _ => Error::UnknownServer(wanted.into()),
    }
}
