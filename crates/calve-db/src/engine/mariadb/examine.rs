//! MariaDB's data directory, while no server uses it.

use std::io::Read as _;
use std::path::Path;

use super::super::{Version, entries, numbers, remove_file};
use crate::error::{Error, Result};
use crate::sys;

pub(super) fn examine(data: &Path, version: &Version) -> Result<()> {
    let refuse = |reason: String| Err(Error::not_usable(data, reason));
    if !data.join("ibdata1").is_file() || !data.join("mysql").is_dir() {
        return refuse("it is no data directory of MariaDB: `ibdata1` or `mysql` is missing".into());
    }
    if data.join("mysql.ibd").exists() || data.join("#innodb_redo").exists() {
        return refuse("it was made by MySQL 8".into());
    }
    // Servers lock these for as long as they live (fcntl(2)).
    for name in ["ibdata1", "aria_log_control"] {
        if let Some(pid) = sys::lock_holder(&data.join(name)) {
            return refuse(format!("it is in use by the process {pid}"));
        }
    }
    let made_by = ["mariadb_upgrade_info", "mysql_upgrade_info"].iter().find_map(|name| {
        let text = fs_err::read_to_string(data.join(name)).ok()?;
        numbers(&text).map(|_| text)
    });
    if let Some(text) = made_by.or_else(|| log_creator(data))
        && numbers(&text) != Some((version.major, version.minor))
    {
        let (major, minor) = (version.major, version.minor);
        return refuse(format!("it was made by {}, and the server is {major}.{minor}", text.trim().escape_default()));
    }
    for path in entries(data)?.iter().filter(|path| path.is_dir()) {
        if let Some(link) = entries(path)?.iter().find(|file| file.extension().is_some_and(|found| found == "isl")) {
            return refuse(format!("it has a table outside: `{}`", calve_core::Shown(link)));
        }
    }
    Ok(())
}

/// The header of the redo log names who made it: 32 bytes at 16, `MariaDB 10.11.6`.
fn log_creator(data: &Path) -> Option<String> {
    let mut head = [0; 48];
    fs_err::File::open(data.join("ib_logfile0")).ok()?.read_exact(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head[16..]).trim_end_matches('\0').to_owned();
    (text.starts_with("MariaDB ") || text.starts_with("MySQL ")).then_some(text)
}

pub(super) fn neutralise(data: &Path) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for path in entries(data)?.into_iter().filter(|path| path.is_file()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let replica = name == "multi-master.info" || name.starts_with("master") && name.ends_with(".info");
        let relay = name.starts_with("relay-log") && name.ends_with(".info") || name.contains("relay-bin");
        // Every server makes an empty one.
        let says_something = fs_err::metadata(&path).is_ok_and(|found| found.len() > 0);
        if (replica || relay) && remove_file(&path)? && says_something {
            done.push(format!("removed `{name}`, the state of a replica"));
        }
    }
    Ok(done)
}

pub(super) fn scrub(data: &Path) -> Result<()> {
    for path in entries(data)?.into_iter().filter(|path| !path.is_dir()) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let of_a_run = [".pid", ".sock", ".err"].iter().any(|ending| name.ends_with(ending));
        if of_a_run || ["auto.cnf", "ib_buffer_pool", "ibtmp1"].contains(&name) {
            remove_file(&path)?;
        } else if name.ends_with(".index") {
            binary_log(data, &path)?;
        }
    }
    Ok(())
}

/// The index of a binary log names its files, one a line.
fn binary_log(data: &Path, index: &Path) -> Result<()> {
    let text = fs_err::read_to_string(index).unwrap_or_default();
    for line in text.lines() {
        let Some(name) = Path::new(line.trim()).file_name() else { continue };
        let mut positions = name.to_owned();
        positions.push(".idx");
        for file in [data.join(name), data.join(positions)] {
            if file.is_file() {
                remove_file(&file)?;
            }
        }
    }
    remove_file(index)?;
    Ok(())
}
