//! Files that are useful only together, recognized by name: a database and its journals.

use std::ffi::CString;
use std::os::fd::BorrowedFd;

/// Files of one directory that must be copied as of one moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileSet {
    kind: FileSetKind,
    /// The common part of their names.
    stem: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileSetKind {
    /// <https://sqlite.org/tempfiles.html>
    Sqlite,
    /// LevelDB and RocksDB (<https://github.com/google/leveldb/blob/main/doc/impl.md>): the whole directory.
    LevelDb,
    /// <http://www.lmdb.tech/doc/group__mdb.html#ga32a193c6bf4d7d5c5d579e71f22e9340>
    Lmdb,
    /// An append-only file in parts (Redis 7, <https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/>).
    RedisAppendOnly,
}

const SQLITE_JOURNALS: [&[u8]; 3] = [b"-wal", b"-journal", SQLITE_INDEX];
/// The index of the `-wal`, written through a mapping and rebuilt from the `-wal`.
const SQLITE_INDEX: &[u8] = b"-shm";
const SQLITE_EXTENSIONS: [&[u8]; 4] = [b".db", b".db3", b".sqlite", b".sqlite3"];
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";
const SQLITE_SMALLEST_PAGE: u64 = 512;
const LEVELDB_EXTENSIONS: [&[u8]; 4] = [b".log", b".ldb", b".sst", b".blob"];
const LMDB_EXTENSION: &[u8] = b".mdb";
const LMDB_LOCK: &[u8] = b"-lock";
const REDIS_MANIFEST: &[u8] = b".manifest";
const REDIS_PARTS: [&[u8]; 3] = [b".base.rdb", b".base.aof", b".incr.aof"];

impl FileSet {
    /// Returns the set that a file of this name belongs to, if the set's main file exists.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let (kind, stem) = recognize(name)?;
        (kind == FileSetKind::LevelDb || !stem.is_empty()).then(|| Self { kind, stem: stem.to_vec() })
    }

    pub(crate) fn of_sqlite(name: &[u8]) -> Self {
        Self { kind: FileSetKind::Sqlite, stem: name.to_vec() }
    }

    /// Returns the name of the main file, without which the others are useless.
    pub fn main_file(&self) -> Vec<u8> {
        match self.kind {
            FileSetKind::Sqlite | FileSetKind::Lmdb => self.stem.clone(),
            FileSetKind::LevelDb => b"CURRENT".to_vec(),
            FileSetKind::RedisAppendOnly => [&self.stem, REDIS_MANIFEST].concat(),
        }
    }

    /// Returns whether a single file is no set yet, because its name is also common elsewhere.
    pub fn is_known_by_others(&self) -> bool {
        matches!(self.kind, FileSetKind::LevelDb | FileSetKind::RedisAppendOnly)
    }

    /// Returns all possible names of the files. `None`: any number of names, which only a listing tells.
    pub(crate) fn known_names(&self) -> Option<Vec<CString>> {
        let endings: &[&[u8]] = match self.kind {
            FileSetKind::Sqlite => &SQLITE_JOURNALS,
            FileSetKind::Lmdb => &[LMDB_LOCK],
            FileSetKind::LevelDb | FileSetKind::RedisAppendOnly => return None,
        };
        let mut names = vec![self.stem.clone()];
        names.extend(endings.iter().map(|ending| [&self.stem, *ending].concat()));
        if self.kind == FileSetKind::Lmdb && self.stem == b"data.mdb" {
            names.push(b"lock.mdb".to_vec());
        }
        Some(names.into_iter().filter_map(|name| CString::new(name).ok()).collect())
    }
}

/// Returns the kind of a file's set, and the common part of the set's names.
fn recognize(name: &[u8]) -> Option<(FileSetKind, &[u8])> {
    let ends = |endings: &[&[u8]]| endings.iter().find_map(|ending| name.strip_suffix(*ending));
    if let Some(stem) = ends(&SQLITE_JOURNALS) {
        return Some((FileSetKind::Sqlite, stem));
    }
    if ends(&SQLITE_EXTENSIONS).is_some() {
        return Some((FileSetKind::Sqlite, name));
    }
    if name == b"lock.mdb" {
        return Some((FileSetKind::Lmdb, b"data.mdb"));
    }
    if let Some(main) = [name, ends(&[LMDB_LOCK]).unwrap_or_default()].into_iter().find(|m| m.ends_with(LMDB_EXTENSION))
    {
        return Some((FileSetKind::Lmdb, main));
    }
    let number = ends(&LEVELDB_EXTENSIONS).or_else(|| name.strip_prefix(b"MANIFEST-"));
    if name == b"CURRENT" || number.is_some_and(is_number) {
        return Some((FileSetKind::LevelDb, b""));
    }
    if let Some(stem) = ends(&[REDIS_MANIFEST]) {
        return Some((FileSetKind::RedisAppendOnly, stem));
    }
    let numbered = ends(&REDIS_PARTS)?;
    let dot = numbered.iter().rposition(|&byte| byte == b'.')?;
    is_number(&numbered[dot + 1..]).then_some((FileSetKind::RedisAppendOnly, &numbered[..dot]))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// Returns whether a file may change while it is copied: opening the database rebuilds all that is read from it.
pub(crate) fn is_made_again(name: &[u8]) -> bool {
    name.ends_with(SQLITE_INDEX) || name == b"lock.mdb" || name.ends_with(LMDB_LOCK)
}

/// Returns whether a file of this size is an SQLite database, whatever its name.
pub(crate) fn is_sqlite(file: BorrowedFd<'_>, bytes: u64) -> bool {
    let has_whole_pages = bytes > 0 && bytes.is_multiple_of(SQLITE_SMALLEST_PAGE);
    let mut beginning = [0; SQLITE_MAGIC.len()];
    has_whole_pages && rustix::io::pread(file, &mut beginning, 0).is_ok() && beginning == *SQLITE_MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_which_files_belong_together() {
        let main =
            |name: &str| FileSet::from_name(name.as_bytes()).map(|set| String::from_utf8(set.main_file()).unwrap());
        for (name, expected) in [
            ("a.db", "a.db"),
            ("a.db-wal", "a.db"),
            ("cache-journal", "cache"),
            ("x.sqlite3-shm", "x.sqlite3"),
            ("CURRENT", "CURRENT"),
            ("MANIFEST-000004", "CURRENT"),
            ("000012.log", "CURRENT"),
            ("7.ldb", "CURRENT"),
            ("000123.sst", "CURRENT"),
            ("data.mdb", "data.mdb"),
            ("lock.mdb", "data.mdb"),
            ("x.mdb-lock", "x.mdb"),
            ("appendonly.aof.manifest", "appendonly.aof.manifest"),
            ("appendonly.aof.12.base.rdb", "appendonly.aof.manifest"),
            ("appendonly.aof.3.incr.aof", "appendonly.aof.manifest"),
        ] {
            assert_eq!(main(name).as_deref(), Some(expected), "{name}");
        }
        for name in ["", "-wal", "a", "wal", "db", "app.log", "x1.log", ".log", "MANIFEST-", "MANIFEST-a", "a-lock"] {
            assert_eq!(main(name), None, "{name}");
        }
        for name in ["yarn.lock", "package-lock.json", "current", "a.base.rdb", ".base.rdb", ".1.incr.aof", ".manifest"]
        {
            assert_eq!(main(name), None, "{name}");
        }
    }

    #[test]
    fn every_known_name_is_of_the_set() {
        for name in ["a.db", "odd-wal", "data.mdb", "x.mdb"] {
            let set = FileSet::from_name(name.as_bytes()).unwrap();
            let names = set.known_names().unwrap();
            assert!(names.iter().any(|known| *known.as_bytes() == *set.main_file()));
            for known in names.iter().filter(|known| *known.as_bytes() != *set.main_file()) {
                assert_eq!(FileSet::from_name(known.as_bytes()), Some(set.clone()), "{known:?}");
            }
        }
    }
}
