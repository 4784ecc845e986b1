//! How servers ended that were not stopped, and the last lines of their logs. Kept for a while, where only this user can read it.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::slots::{slot_of, unix_now};
use crate::error::{EndReason, Error};
use crate::files::home::Home;
use crate::files::private;

const SUFFIX: &str = ".ended.json";
const KEPT: usize = 32;
const KEPT_S: u64 = 3 * 24 * 60 * 60;

/// A server that ended without being stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub name: String,
    pub reason: EndReason,
    pub ended_unix_s: u64,
    pub(crate) log: String,
}

impl Ending {
    /// Keeps how a server has ended whose files are still in `slot`. The server is gone in any case, so nothing fails when this does.
    pub(crate) fn keep(slot: &Path, name: &str, reason: EndReason, logs: &Path) {
        // Everybody who has tests knows why these have ended.
        if reason != EndReason::OwnerEnded {
            let log = crate::files::log::last_lines(slot);
            let ending = Self { name: name.to_owned(), reason, ended_unix_s: unix_now(), log };
            let _ = private::write_json(&path(logs, name), &ending);
        }
    }
}

fn path(logs: &Path, name: &str) -> PathBuf {
    logs.join(format!("{name}{SUFFIX}"))
}

pub(super) fn ending(home: &Home, name: &str) -> Option<Ending> {
    private::read_json(&path(&home.logs, name)).ok().flatten()
}

pub(crate) fn forget(home: &Home, name: &str) {
    let _ = fs::remove_file(path(&home.logs, name));
}

/// Returns the servers that ended lately, the last one first.
pub fn endings(home: &Home) -> Vec<Ending> {
    let entries = fs::read_dir(&home.logs).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = entries.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX)));
    let mut found: Vec<Ending> = files.filter_map(|path| private::read_json(&path).ok().flatten()).collect();
    found.sort_by(|a, b| b.ended_unix_s.cmp(&a.ended_unix_s).then_with(|| a.name.cmp(&b.name)));
    found
}

pub(crate) fn sweep(home: &Home) {
    let found = endings(home);
    let oldest = unix_now().saturating_sub(KEPT_S);
    for (_, old) in found.iter().enumerate().filter(|(at, ending)| *at >= KEPT || ending.ended_unix_s < oldest) {
        forget(home, &old.name);
    }
}

/// Returns the error that there is no server of this name, with the reason if it is known.
pub(super) fn missing(home: &Home, wanted: &str) -> Error {
    match ending(home, wanted) {
        Some(Ending { name, reason, .. }) if name == wanted => Error::ServerEnded { name, reason },
        _ => Error::UnknownServer(wanted.into()),
    }
}

/// Returns the error of a server that ran, and whose supervisor has hung up.
pub(crate) fn gone(home: &Home, name: &str) -> Error {
    match missing(home, name) {
        // A killed supervisor has removed nothing.
        Error::UnknownServer(name) if slot_of(home, &name).exists() => Error::SupervisorGone(name),
        Error::UnknownServer(name) => Error::StoppedMeanwhile(name),
        ended => ended,
    }
}
