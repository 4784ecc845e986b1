//! PostgreSQL's data directory, while no server uses it.

use std::io::Read as _;
use std::path::Path;

use super::super::{Version, entries, numbers, remove_file};
use crate::error::{Error, Result};
use crate::sys::Watched;

/// `DBState` in pg_control.h.
const SHUT_DOWN: u32 = 1;
const SHUT_DOWN_IN_RECOVERY: u32 = 2;

/// Settings that contact other machines, run programs or load libraries, which `ALTER SYSTEM` may have left.
const CALLS_HOME: &[&str] = &[
    "archive_",
    "restore_command",
    "recovery_end_command",
    "primary_",
    "promote_trigger_file",
    "synchronous_standby_names",
    "shared_preload_libraries",
    "session_preload_libraries",
    "local_preload_libraries",
    "ssl_passphrase_command",
];

pub(super) fn examine(data: &Path, version: &Version) -> Result<()> {
    let refuse = |reason: String| Err(Error::not_usable(data, reason));
    let made_by = match fs_err::read_to_string(data.join("PG_VERSION")) {
        Ok(text) => text,
        Err(_) => return refuse("it is no data directory of PostgreSQL: it has no file PG_VERSION".into()),
    };
    if numbers(&made_by).is_none_or(|(major, _)| major != version.major) {
        let made_by = made_by.trim();
        return refuse(format!("it was made by PostgreSQL {made_by}, and the server is {}", version.major));
    }
    let pid = fs_err::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    let pid: Option<u32> = pid.lines().next().and_then(|line| line.trim().trim_start_matches('-').parse().ok());
    if let Some(pid) = pid.filter(|pid| Watched::open(*pid, None).is_some()) {
        return refuse(format!("it is in use by the process {pid}"));
    }
    match state(data) {
        Some(SHUT_DOWN | SHUT_DOWN_IN_RECOVERY) => {}
        Some(_) => return refuse("its server was not shut down cleanly".into()),
        None => return refuse("global/pg_control is missing or damaged".into()),
    }
    if data.join("backup_label").exists() {
        return refuse("it is a base backup that was not restored (backup_label)".into());
    }
    if let Some(space) = entries(&data.join("pg_tblspc"))?.first() {
        return refuse(format!("it has a tablespace outside: `{}`", calve_core::Shown(space)));
    }
    Ok(())
}

/// `ControlFileData` begins with the system's identifier (8 bytes), two versions (4 each), and the state.
fn state(data: &Path) -> Option<u32> {
    let mut head = [0; 20];
    fs_err::File::open(data.join("global/pg_control")).ok()?.read_exact(&mut head).ok()?;
    let state = u32::from_ne_bytes(*head[16..].first_chunk()?);
    (state <= 6).then_some(state)
}

pub(super) fn neutralise(data: &Path) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for name in ["standby.signal", "recovery.signal"] {
        if remove_file(&data.join(name))? {
            done.push(format!("removed `{name}`"));
        }
    }
    let path = data.join("postgresql.auto.conf");
    let text = fs_err::read_to_string(&path).unwrap_or_default();
    let mut kept = String::new();
    for line in text.lines() {
        let name = line.trim_start().split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        if CALLS_HOME.iter().any(|word| name.starts_with(word)) || name.starts_with("include") {
            done.push(format!("removed the setting `{}`", line.trim().escape_default()));
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if !done.is_empty() && !text.is_empty() {
        fs_err::write(&path, kept).map_err(|error| Error::io("write", &path, error))?;
    }
    Ok(done)
}

pub(super) fn scrub(data: &Path) -> Result<()> {
    for name in ["postmaster.pid", "postmaster.opts"] {
        remove_file(&data.join(name))?;
    }
    // A slot would keep all changes that follow, for somebody who will not come.
    for slot in entries(&data.join("pg_replslot"))? {
        fs_err::remove_file(slot.join("state")).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(Error::io("remove", &slot, error)),
        })?;
        for rest in entries(&slot)? {
            remove_file(&rest)?;
        }
        fs_err::remove_dir(&slot).map_err(|error| Error::io("remove", &slot, error))?;
    }
    for file in entries(&data.join("pg_stat_tmp"))? {
        remove_file(&file)?;
    }
    Ok(())
}
