//! A PostgreSQL data directory without a server. No link in it is followed.

use std::io::Read as _;
use std::path::Path;

use calve_core::internal::ShownPath;
use rustix::fs::FileType;

use super::super::{Version, numbers};
use crate::error::{Error, Result, UnusableData};
use crate::files::confined;
use crate::files::directory::{Directory, SMALL_BYTES};
use crate::sys::ProcessHandle;

/// `DBState` in pg_control.h.
const SHUT_DOWN: u32 = 1;
const SHUT_DOWN_IN_RECOVERY: u32 = 2;

const SETTINGS: &str = "postgresql.auto.conf";

/// Settings left by `ALTER SYSTEM` that contact other machines, run programs, load libraries or write elsewhere.
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
    "jit_provider",
    "dynamic_library_path",
    "ssl_passphrase_command",
    "stats_temp_directory",
    "log_directory",
    "data_directory",
];

pub(super) fn examine(path: &Path, version: &Version) -> Result<()> {
    let data = Directory::open(path)?;
    let refuse = |reason| Err(Error::not_usable(path, reason));
    let Some(made_by) = data.read_to_string("PG_VERSION", SMALL_BYTES)? else {
        return refuse(UnusableData::Incomplete(
            "it is not a data directory of PostgreSQL: it has no file PG_VERSION".into(),
        ));
    };
    if numbers(&made_by).is_none_or(|(major, _)| major != version.major) {
        let made_by = format!("PostgreSQL {}", made_by.trim().escape_default());
        return refuse(UnusableData::OtherVersion { made_by, server: version.major.to_string() });
    }
    whole(&data)?;
    let pid = data.read_to_string("postmaster.pid", SMALL_BYTES)?.unwrap_or_default();
    let pid: Option<u32> = pid.lines().next().and_then(|line| line.trim().trim_start_matches('-').parse().ok());
    if let Some(pid) = pid.filter(|pid| ProcessHandle::open(*pid, None).is_some()) {
        return refuse(UnusableData::InUse(pid.into()));
    }
    match state(&data)? {
        Some(SHUT_DOWN | SHUT_DOWN_IN_RECOVERY) => {}
        Some(_) => return refuse(UnusableData::NotShutDown),
        None => return refuse(UnusableData::Incomplete("global/pg_control is missing or damaged".into())),
    }
    if data.stat("backup_label")?.is_some() {
        return refuse(UnusableData::Incomplete("it is a base backup that was not restored (backup_label)".into()));
    }
    Ok(())
}

/// Refuses links that lead out: tablespaces, a WAL on another disk, others. An in-place tablespace is a directory.
fn whole(data: &Directory) -> Result<()> {
    if let Some(spaces) = data.subdirectory("pg_tblspc")?
        && let Some(space) = spaces.entries()?.iter().find(|space| space.kind == FileType::Symlink)
    {
        let place = spaces.target(&space.name)?;
        let space = Path::new("pg_tblspc").join(&space.name);
        let (space, place) = (ShownPath(&space), ShownPath(&place));
        let reason = format!("it has a tablespace outside: `{space}`, which leads to `{place}`");
        return Err(Error::not_usable(&data.path, UnusableData::LeadsOut(reason)));
    }
    confined::check(data, &[])
}

/// Reads the state in `ControlFileData`, after the system identifier (8 bytes) and two versions (4 each).
fn state(data: &Directory) -> Result<Option<u32>> {
    let mut head = [0; 20];
    let Some(mut file) = data.file("global/pg_control")? else { return Ok(None) };
    let state = file.read_exact(&mut head).ok().and_then(|()| head[16..].first_chunk().copied());
    Ok(state.map(u32::from_ne_bytes).filter(|state| *state <= 6))
}

/// Returns the number of the next transaction after a clean shutdown. Versions 13 to 18 have it at one place: the copy
/// of the last checkpoint begins at 40, and has `nextXid` at 24.
pub(super) fn next_transaction(path: &Path) -> Result<Option<u64>> {
    let data = Directory::open(path)?;
    // The commit of a prepared transaction does not change the number.
    let prepared = data.subdirectory("pg_twophase")?.map(|all| all.entries()).transpose()?;
    if prepared.is_some_and(|all| !all.is_empty()) || state(&data)? != Some(SHUT_DOWN) {
        return Ok(None);
    }
    let mut head = [0; 72];
    let Some(mut file) = data.file("global/pg_control")? else { return Ok(None) };
    let next = file.read_exact(&mut head).ok().and_then(|()| head[64..].first_chunk().copied());
    Ok(next.map(u64::from_ne_bytes))
}

pub(super) fn settings(path: &Path) -> Result<String> {
    let text = Directory::open(path)?.read(SETTINGS, SMALL_BYTES)?.unwrap_or_default();
    Ok(blake3::hash(&text).to_hex()[..16].to_owned())
}

/// Returns whether an unlogged table or index exceeds its init fork (`INIT_FORKNUM`), by which a recovery replaces it.
pub(super) fn has_unlogged_rows(path: &Path) -> Result<bool> {
    let data = Directory::open(path)?;
    let mut has_rows = false;
    confined::walk(&data, &mut |directory, entry, _| {
        let Some(table) = entry.name.to_str().and_then(|name| name.strip_suffix("_init")) else { return Ok(()) };
        let (table, beginning) = (directory.stat(table)?, directory.stat(&entry.name)?);
        has_rows |= table.map_or(0, |found| found.st_size) > beginning.map_or(0, |found| found.st_size);
        Ok(())
    })?;
    Ok(has_rows)
}

pub(super) fn neutralise(path: &Path) -> Result<Vec<String>> {
    let data = Directory::open(path)?;
    whole(&data)?;
    let mut done = Vec::new();
    for name in ["standby.signal", "recovery.signal"] {
        if data.remove_file(name)? {
            done.push(format!("removed `{name}`"));
        }
    }
    let text = data.read_to_string(SETTINGS, SMALL_BYTES)?.unwrap_or_default();
    let mut kept = String::new();
    let mut changed = false;
    for line in text.lines() {
        let name = line.trim_start().split(|c: char| c == '=' || c.is_whitespace()).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        if CALLS_HOME.iter().any(|word| name.starts_with(word)) || name.starts_with("include") {
            done.push(format!("removed the setting `{}`", ShownPath(line.trim())));
            changed = true;
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if changed {
        data.rewrite(SETTINGS, kept.as_bytes())?;
    }
    Ok(done)
}

pub(super) fn scrub(path: &Path) -> Result<()> {
    let data = Directory::open(path)?;
    for name in ["postmaster.pid", "postmaster.opts"] {
        data.remove_file(name)?;
    }
    // A replication slot would keep all later changes, for a consumer that never comes.
    for name in ["pg_replslot", "pg_stat_tmp"] {
        let Some(directory) = data.subdirectory(name)? else { continue };
        for entry in directory.entries()? {
            directory.remove(&entry)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fs_err as fs;

    use super::*;

    // The target of a link must stay as it is, whether a directory or a file is linked.
    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().join("outside");
        fs::create_dir_all(outside.join("slot")).unwrap();
        fs::write(outside.join("slot/state"), "kept").unwrap();
        fs::write(outside.join("settings"), "archive_command = 'x'\n").unwrap();
        let linked = |name: &str, to: &Path| {
            let data = place.path().join(name.replace('/', "-"));
            for directory in ["pg_replslot", "pg_stat_tmp"] {
                fs::create_dir_all(data.join(directory)).unwrap();
            }
            let at = data.join(name);
            let _ = fs::remove_dir(&at);
            symlink(to, at).unwrap();
            data
        };
        for name in ["pg_replslot", "pg_stat_tmp"] {
            let data = linked(name, &outside);
            assert!(scrub(&data).unwrap_err().to_string().contains("symlink"), "{name}");
            assert!(neutralise(&data).unwrap_err().to_string().contains("leads out"), "{name}");
        }
        // Links in a directory go, and what they lead to does not.
        scrub(&linked("pg_replslot/slot", &outside.join("slot"))).unwrap();
        scrub(&linked("pg_stat_tmp/slot", &outside.join("slot"))).unwrap();
        assert!(neutralise(&linked("postgresql.auto.conf", &outside.join("settings"))).is_err());
        assert_eq!(fs::read_to_string(outside.join("slot/state")).unwrap(), "kept");
        assert_eq!(fs::read_to_string(outside.join("settings")).unwrap(), "archive_command = 'x'\n");
    }
}
