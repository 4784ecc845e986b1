//! Data directories of MariaDB and MySQL without a server. No link in them is followed.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::FileType;

use crate::engine::{Version, numbers};
use crate::error::{Error, Result, UnusableData};
use crate::files::confined;
use crate::files::directory::{Directory, SMALL_BYTES};
use crate::sys;

/// With `DATA DIRECTORY=`, a file of this ending replaces the table, and holds its path.
const POINTERS: &[&str] = &[".isl"];

/// The beginnings of files that servers change when nothing is written: logs, tablespaces of the system, their number.
const OWN: &[&str] = &["ib", "undo", "mysql.ibd", "aria_log", "ddl_recovery", "auto.cnf"];

fn open(path: &Path, engine: &str) -> Result<Directory> {
    let data = Directory::open(path)?;
    if data.stat("ibdata1")?.is_none() || data.stat("mysql")?.is_none() {
        let reason = format!("it is not a data directory of {engine}: `ibdata1` or `mysql` is missing");
        return Err(Error::not_usable(path, UnusableData::Incomplete(reason)));
    }
    Ok(data)
}

pub(super) fn examine_mariadb(path: &Path, version: &Version) -> Result<()> {
    let data = open(path, "MariaDB")?;
    let refuse = |reason| Err(Error::not_usable(path, reason));
    if data.stat("mysql.ibd")?.is_some() || data.stat("#innodb_redo")?.is_some() {
        return refuse(UnusableData::OtherVersion { made_by: "MySQL 8".into(), server: "MariaDB".into() });
    }
    is_apart(&data, path, &["ibdata1", "aria_log_control"])?;
    let mut made_by = None;
    for name in ["mysql_upgrade_info", "mariadb_upgrade_info"] {
        let text = data.read_to_string(name, SMALL_BYTES)?;
        made_by = text.filter(|text| numbers(text).is_some()).or(made_by);
    }
    if let Some(text) = made_by.or(log_creator(&data)?)
        && numbers(&text) != Some((version.major, version.minor))
    {
        let (major, minor) = (version.major, version.minor);
        let made_by = text.trim().escape_default().to_string();
        return refuse(UnusableData::OtherVersion { made_by, server: format!("{major}.{minor}") });
    }
    Ok(())
}

pub(super) fn examine_mysql(path: &Path, version: &Version) -> Result<()> {
    let data = open(path, "MySQL")?;
    let refuse = |reason| Err(Error::not_usable(path, reason));
    let server = format!("{}.{}.{}", version.major, version.minor, version.patch());
    let made_by =
        |made_by: &str| UnusableData::OtherVersion { made_by: made_by.to_owned(), server: format!("MySQL {server}") };
    if data.stat("aria_log_control")?.is_some() {
        return refuse(made_by("MariaDB"));
    }
    if data.stat("mysql.ibd")?.is_none() {
        return refuse(made_by("MySQL before 8.0"));
    }
    // First, because links are not opened.
    is_apart(&data, path, &["ibdata1", "mysql.ibd"])?;
    let Some(mut dictionary) = data.file("mysql.ibd")? else {
        return refuse(UnusableData::Incomplete("`mysql.ibd` is gone".into()));
    };
    // The header of its first page has the version of the last server at 8: 80406 is 8.4.6 (`FIL_PAGE_SRV_VERSION`).
    let mut head = [0; 12];
    if dictionary.read_exact(&mut head).is_err() {
        return refuse(UnusableData::Incomplete("`mysql.ibd` has no header".into()));
    }
    let last = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let (major, minor, patch) = (last / 10_000, last / 100 % 100, last % 100);
    if (major, minor) != (version.major, version.minor) || patch > version.patch() {
        return refuse(made_by(&format!("MySQL {major}.{minor}.{patch}")));
    }
    Ok(())
}

/// Refuses links that lead out, and directories in use: servers lock `locked` for as long as they live (fcntl(2)).
fn is_apart(data: &Directory, path: &Path, locked: &[&str]) -> Result<()> {
    confined::check(data, POINTERS)?;
    for name in locked {
        if let Some(pid) = data.file(name)?.and_then(|file| sys::lock_holder(file.as_fd())) {
            return Err(Error::not_usable(path, UnusableData::InUse(pid.into())));
        }
    }
    Ok(())
}

/// Returns the creator of the redo log, from its header: 32 bytes at 16, such as `MariaDB 10.11.6`.
fn log_creator(data: &Directory) -> Result<Option<String>> {
    let mut head = [0; 48];
    let Some(mut file) = data.file("ib_logfile0")? else { return Ok(None) };
    if file.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&head[16..]).trim_end_matches('\0').to_owned();
    Ok((text.starts_with("MariaDB ") || text.starts_with("MySQL ")).then_some(text))
}

pub(super) fn neutralise(path: &Path) -> Result<Vec<String>> {
    let data = Directory::open(path)?;
    confined::check(&data, POINTERS)?;
    let mut done = Vec::new();
    if data.remove_file("mysqld-auto.cnf")? {
        done.push("removed `mysqld-auto.cnf`, the settings of `SET PERSIST`".to_owned());
    }
    for entry in data.entries()?.into_iter().filter(|entry| entry.kind == FileType::RegularFile) {
        let Some(name) = entry.name.to_str() else { continue };
        let replica = name == "multi-master.info" || name.starts_with("master") && name.ends_with(".info");
        let relay = name.starts_with("relay-log") && name.ends_with(".info") || name.contains("relay-bin");
        // Every server creates an empty one.
        let says_something = data.stat(name)?.is_some_and(|found| found.st_size > 0);
        if (replica || relay) && data.remove_file(name)? && says_something {
            done.push(format!("removed `{name}`, the state of a replica"));
        }
    }
    Ok(done)
}

pub(super) fn scrub(path: &Path) -> Result<()> {
    let data = Directory::open(path)?;
    for entry in data.entries()?.into_iter().filter(|entry| entry.kind != FileType::Directory) {
        let Some(name) = entry.name.to_str() else { continue };
        let of_a_run = [".pid", ".sock", ".err"].iter().any(|ending| name.ends_with(ending));
        if of_a_run || ["auto.cnf", "ib_buffer_pool", "ibtmp1"].contains(&name) {
            data.remove_file(name)?;
        } else if name.ends_with(".index") {
            binary_log(&data, name)?;
        }
    }
    Ok(())
}

/// Hashes the names and inodes of a data directory's files, and the sizes and times of those that no server changes by
/// itself.
pub(super) fn fingerprint(path: &Path) -> Result<String> {
    let mut hash = blake3::Hasher::new();
    confined::walk(&Directory::open(path)?, &mut |directory, entry, below| {
        let (at, name) = (below.as_os_str().as_bytes(), entry.name.as_bytes());
        let is_of_server = entry.kind == FileType::RegularFile && below == Path::new(&entry.name);
        // No database's directory begins like this.
        if at.starts_with(b"#") || is_of_server && OWN.iter().any(|start| name.starts_with(start.as_bytes())) {
            return Ok(());
        }
        let Some(found) = directory.stat(&entry.name)? else { return Ok(()) };
        hash.update(at).update(&[0]).update(&found.st_ino.to_le_bytes());
        let is_counted = [".ibd", ".CSM"].iter().any(|end| name.ends_with(end.as_bytes()));
        if entry.kind == FileType::RegularFile && !is_counted {
            hash.update(format!("{} {} {}", found.st_size, found.st_mtime, found.st_mtime_nsec).as_bytes());
        }
        Ok(())
    })?;
    Ok(hash.finalize().to_hex()[..16].to_owned())
}

/// Removes a binary log: the files that its index lists, one a line, but for those elsewhere.
fn binary_log(data: &Directory, index: &str) -> Result<()> {
    let text = data.read(index, SMALL_BYTES)?.unwrap_or_default();
    for line in text.split(|byte| *byte == b'\n') {
        let line = Path::new(std::ffi::OsStr::from_bytes(line.trim_ascii()));
        let Some(name) = line.file_name() else { continue };
        let mut positions = name.to_owned();
        positions.push(".idx");
        for file in [name, &positions] {
            let found = data.stat(file)?.map(|found| FileType::from_raw_mode(found.st_mode));
            if found == Some(FileType::RegularFile) {
                data.remove_file(file)?;
            }
        }
    }
    data.remove_file(index)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fs_err as fs;

    use super::*;

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (data, outside) = (place.path().join("data"), place.path().join("outside"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&outside).unwrap();
        for name in ["master.info", "log.000001", "server.pid"] {
            fs::write(outside.join(name), "kept").unwrap();
            symlink(outside.join(name), data.join(name)).unwrap();
        }
        fs::write(data.join("mine.index"), format!("./log.000001\n{}\n", outside.join("log.000001").display()))
            .unwrap();
        assert!(neutralise(&data).unwrap_err().to_string().contains("leads out"));
        scrub(&data).unwrap();
        assert!(!data.join("mine.index").exists() && fs::symlink_metadata(data.join("server.pid")).is_err());
        symlink(outside.join("log.000001"), data.join("theirs.index")).unwrap();
        assert!(scrub(&data).unwrap_err().to_string().contains("symlink"));
        for name in ["master.info", "log.000001", "server.pid"] {
            assert_eq!(fs::read_to_string(outside.join(name)).unwrap(), "kept", "{name}");
        }
    }
}
