//! Data directories of Redis and Valkey without a server. No link in them is followed.

use std::io::Read;
use std::path::Path;

use calve_core::RemovalWait;
use rustix::fs::{FileType, Stat};

use crate::engine::{Version, numbers};
use crate::error::{AtPath as _, Error, Result, UnusableData};
use crate::files::confined;
use crate::files::directory::{Directory, SMALL_BYTES};
use crate::files::trash;

const DUMP: &str = "dump.rdb";
const APPEND_ONLY: &str = "appendonlydir";
/// The list of the current append-only files. It is written last: without it, a server told to load them begins empty.
const APPEND_ONLY_LIST: &str = "appendonly.aof.manifest";
/// Redis 6's append-only file, which later servers move into that directory.
const OLD_APPEND_ONLY: &str = "appendonly.aof";
/// The first bytes of a dump, before its version (rdb.c, `rdbSaveRio`). Valkey 9 writes the second one.
const MAGIC: [&[u8]; 2] = [b"REDIS", b"VALKEY"];
/// Marks a field about the dump: a name and a value follow.
const FIELD: u8 = 0xfa;
/// The fields come first, and are short.
const HEAD_BYTES: u64 = 4096;

#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    /// The engine that wrote it, and its version.
    writer: Option<(&'static str, String)>,
    memory_bytes: Option<u64>,
    begun_unix_s: Option<i64>,
}

impl Head {
    /// Reads the beginning of a dump. `None`: it is no dump.
    fn read(bytes: &[u8]) -> Option<Self> {
        let magic = MAGIC.iter().find(|magic| bytes.starts_with(magic))?;
        // Magic and version take nine bytes.
        let (version, mut rest) = bytes.get(magic.len()..)?.split_at_checked(9 - magic.len())?;
        if !version.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut head = Self::default();
        while let Some((&FIELD, fields)) = rest.split_first()
            && let Some((name, after)) = text(fields)
            && let Some((value, after)) = text(after)
        {
            match name.as_str() {
                "redis-ver" => head.writer = Some(("redis", value)),
                "valkey-ver" => head.writer = Some(("valkey", value)),
                "ctime" => head.begun_unix_s = value.parse().ok(),
                "used-mem" => head.memory_bytes = value.parse().ok(),
                _ => {}
            }
            rest = after;
        }
        Some(head)
    }
}

/// Parses a short string of a dump: a length in six bits, or a number of one, two or four bytes (rdb.c, `rdbLoadLen`).
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let number = |length: usize| {
        let (bytes, rest) = rest.split_at_checked(length)?;
        let value = bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        Some((value.to_string(), rest))
    };
    match first {
        0..0x40 => {
            let (text, rest) = rest.split_at_checked(first.into())?;
            Some((String::from_utf8_lossy(text).into_owned(), rest))
        }
        0xc0 => number(1),
        0xc1 => number(2),
        0xc2 => number(4),
        _ => None,
    }
}

/// Reads the dump's beginning. `None`: there is no dump. Fails if the file is something else.
fn head(data: &Directory) -> Result<Option<Head>> {
    let Some(file) = data.file(DUMP)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut bytes).at("read", data.path.join(DUMP))?;
    let no_dump = || Error::not_usable(&data.path, UnusableData::Incomplete(format!("`{DUMP}` is not a dump")));
    Head::read(&bytes).map(Some).ok_or_else(no_dump)
}

pub(super) fn examine(path: &Path, engine: &str, version: &Version) -> Result<()> {
    let data = Directory::open(path)?;
    let refuse = |reason| Err(Error::not_usable(path, reason));
    let head = head(&data)?;
    if head.is_none() && newest(&data)?.is_none() {
        let missing =
            format!("it is not a data directory of Redis or Valkey: it has no `{DUMP}` and no `{APPEND_ONLY}`");
        return refuse(UnusableData::Incomplete(missing));
    }
    confined::check(&data, &[])?;
    // Servers read the dumps of older ones, and mostly of the other engine. A server that cannot says so and ends.
    if let Some((writer, text)) = head.and_then(|head| head.writer)
        && writer == engine
        && numbers(&text).is_some_and(|made_by| made_by > (version.major, version.minor))
    {
        let server = format!("{}.{}", version.major, version.minor);
        return refuse(UnusableData::OtherVersion { made_by: text.escape_default().to_string(), server });
    }
    Ok(())
}

/// Returns the memory that the data took in the server that wrote the dump.
pub(super) fn memory_bytes(path: &Path) -> Option<u64> {
    head(&Directory::open(path).ok()?).ok()??.memory_bytes
}

/// Returns whether the append-only files are complete. A server killed during their first write leaves some anyway.
pub(super) fn has_append_only_files(path: &Path) -> Result<bool> {
    match Directory::open(path)?.subdirectory(APPEND_ONLY)? {
        Some(files) => Ok(files.stat(APPEND_ONLY_LIST)?.is_some()),
        None => Ok(false),
    }
}

/// Returns names and lengths of the current append-only files: each write makes one longer. `None`: no files.
pub(super) fn append_only_lengths(path: &Path) -> Result<Option<String>> {
    let Some(files) = Directory::open(path)?.subdirectory(APPEND_ONLY)? else { return Ok(None) };
    let Some(list) = files.read_to_string(APPEND_ONLY_LIST, SMALL_BYTES)? else { return Ok(None) };
    let mut lengths = String::new();
    // file NAME seq NUMBER type LETTER. Those of type `h` were replaced, and are being deleted.
    for line in list.lines().filter(|line| !line.contains(" type h")) {
        let name = line.split(' ').nth(1).unwrap_or_default();
        let Some(found) = files.stat(name)? else { return Ok(None) };
        lengths.push_str(&format!("{name} {};", found.st_size));
    }
    Ok(Some(lengths))
}

/// Returns the last write to the append-only files, in seconds and nanoseconds. `None`: no files.
fn newest(data: &Directory) -> Result<Option<(i64, i64)>> {
    let mut newest = data.stat(OLD_APPEND_ONLY)?.map(written);
    if let Some(files) = data.subdirectory(APPEND_ONLY)? {
        for entry in files.entries()?.into_iter().filter(|entry| entry.kind == FileType::RegularFile) {
            newest = newest.max(files.stat(&entry.name)?.map(written));
        }
    }
    Ok(newest)
}

/// The files to load an adopted directory from.
pub(super) struct Source {
    pub(super) is_append_only: bool,
    /// Names the files that were loaded and left out, if there are append-only files.
    pub(super) notice: Option<&'static str>,
}

/// Returns the files to load. A server that stops writing append-only files leaves them, so only times tell which files
/// have the data. Copying may change times, but not the one inside the dump.
pub(super) fn source(path: &Path) -> Result<Source> {
    let data = Directory::open(path)?;
    let Some(newest) = newest(&data)? else { return Ok(Source { is_append_only: false, notice: None }) };
    let notice = match data.stat(DUMP)? {
        None => "took the data from the append-only files",
        Some(dump) => {
            let begun = head(&data)?.and_then(|head| head.begun_unix_s);
            let was_begun_before = begun.is_some_and(|begun| begun < newest.0);
            if written(dump) > newest && !was_begun_before {
                let notice = "took the data from `dump.rdb`, and left out the append-only files, which are older";
                return Ok(Source { is_append_only: false, notice: Some(notice) });
            }
            "took the data from the append-only files, and left out `dump.rdb`, which is not newer"
        }
    };
    Ok(Source { is_append_only: true, notice: Some(notice) })
}

fn written(found: Stat) -> (i64, i64) {
    // Systems differ in the type; there are fewer than 10^9 nanoseconds.
    #[allow(clippy::unnecessary_cast)]
    (found.st_mtime as i64, found.st_mtime_nsec as i64)
}

/// Removes the append-only files, because the dump has everything, or gets it.
pub(super) fn remove_append_only_files(path: &Path) -> Result<()> {
    let data = Directory::open(path)?;
    data.remove_file(OLD_APPEND_ONLY)?;
    // Trash would become a part of the template.
    trash::remove(&path.join(APPEND_ONLY), RemovalWait::Yes)
}

pub(super) fn neutralise(path: &Path) -> Result<Vec<String>> {
    let data = Directory::open(path)?;
    confined::check(&data, &[])?;
    let removed = data.remove_file("nodes.conf")?;
    Ok(removed.then(|| "removed `nodes.conf`, which names the nodes of a cluster".to_owned()).into_iter().collect())
}

/// Removes leftovers of a server that was killed while it wrote a dump.
pub(super) fn scrub(path: &Path) -> Result<()> {
    let data = Directory::open(path)?;
    for entry in data.entries()?.into_iter().filter(|entry| entry.kind != FileType::Directory) {
        let Some(name) = entry.name.to_str() else { continue };
        let is_temporary = name.starts_with("temp-") && (name.ends_with(".rdb") || name.ends_with(".aof"));
        if is_temporary || [".pid", ".sock"].iter().any(|ending| name.ends_with(ending)) {
            data.remove_file(name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fs_err as fs;

    use super::*;

    /// A dump of Redis 7.0.15, up to the first key.
    const WRITTEN: &[u8] =
        b"REDIS0010\xfa\x09redis-ver\x067.0.15\xfa\x0aredis-bits\xc0@\xfa\x05ctime\xc2\x01\x02\x03\x04\
        \xfa\x08used-mem\xc2\x00\x00\x10\x00\xfa\x08aof-base\xc0\x00\xfe\x00";

    #[test]
    fn a_dump_tells_who_wrote_it() {
        let read = Head::read(WRITTEN).unwrap();
        assert_eq!(
            read,
            Head {
                writer: Some(("redis", "7.0.15".into())),
                memory_bytes: Some(1 << 20),
                begun_unix_s: Some(0x0403_0201)
            }
        );
        let valkey = Head::read(b"VALKEY080\xfa\x0avalkey-ver\x059.0.0").unwrap();
        assert_eq!(valkey.writer, Some(("valkey", "9.0.0".into())));
        assert_eq!(Head::read(b"REDIS0010"), Some(Head::default()));
        for other in [&b""[..], b"REDIS", b"REDIS00", b"REDISxxxx", b"PK\x03\x04 and more"] {
            assert_eq!(Head::read(other), None, "{other:?}");
        }
        // It does not panic, wherever the dump is cut off.
        for length in 0..WRITTEN.len() {
            let _ = Head::read(&WRITTEN[..length]);
        }
    }

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (data, outside) = (place.path().join("data"), place.path().join("outside"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&outside).unwrap();
        for name in ["nodes.conf", "temp-1.rdb", "redis.pid", "appendonly.aof"] {
            fs::write(outside.join(name), "kept").unwrap();
            symlink(outside.join(name), data.join(name)).unwrap();
        }
        symlink(&outside, data.join("appendonlydir")).unwrap();
        assert!(neutralise(&data).unwrap_err().to_string().contains("leads out"));
        scrub(&data).unwrap();
        let _ = remove_append_only_files(&data);
        for name in ["nodes.conf", "temp-1.rdb", "redis.pid", "appendonly.aof"] {
            assert_eq!(fs::read_to_string(outside.join(name)).unwrap(), "kept", "{name}");
        }
        assert!(fs::symlink_metadata(data.join("temp-1.rdb")).is_err());
    }
}
