//! How servers ended that were not stopped, with their last log lines. Kept for a while, readable only by this user.

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub name: String,
    pub reason: EndReason,
    pub ended_unix_s: u64,
    pub(crate) log: String,
}

impl Ending {
    /// Records the end of a server whose files are still in `slot`. The server is gone anyway, so a failure is ignored.
    pub(crate) fn keep(slot: &Path, name: &str, reason: EndReason, logs: &Path) {
        // Users of tests know why these ended.
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

/// Returns recent endings, the last one first.
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

/// Returns the error for a missing server, with the reason of its end if known.
pub(super) fn missing(home: &Home, wanted: &str) -> Error {
    match ending(home, wanted) {
        Some(Ending { name, reason, .. }) if name == wanted => Error::ServerEnded { name, reason },
        _ => Error::UnknownServer(wanted.into()),
    }
}

/// Returns the error for a server whose supervisor hung up.
pub(crate) fn gone(home: &Home, name: &str) -> Error {
    match missing(home, name) {
        // A killed supervisor has removed nothing.
        Error::UnknownServer(name) if slot_of(home, &name).exists() => Error::SupervisorGone(name),
        Error::UnknownServer(name) => Error::StoppedMeanwhile(name),
        ended => ended,
    }
}
