//! Caches the hashes and addresses of files for later runs.
//!
//! One file per device: a header with the hash of the rest, then records of 48 bytes sorted by inode.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags};

use super::catalog::Item;
use super::content::{Content, shortened};
use crate::options::Durability;
use crate::space::volumes::Volume;
use crate::sys;
use crate::tree::own::{replace_record, sweep_records};

const MAGIC: &[u8; 8] = b"calveh1\n";
/// The length of the header: [`MAGIC`], and the hash of the records.
const HEAD: usize = 24;
const RECORD: usize = 48;
/// More old entries are not kept (48 MiB): most are of files that are gone, since btrfs never gives an inode number twice.
const MOST_OLD: usize = 1 << 20;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KnownContent {
    /// Zeros if unknown.
    pub(super) content: Content,
    /// The file's address after the last run; zero if unknown.
    pub(super) address: u64,
}

impl KnownContent {
    pub(super) fn is_known(&self) -> bool {
        self.content != Content::default()
    }
}

type Key = (u64, u64, u64);

pub(super) fn key(item: &Item) -> Key {
    (item.inode, item.size, item.stamp)
}

#[derive(Default)]
pub(super) struct Cache {
    bytes: Vec<u8>,
}

pub(super) fn file_name(directory: &Path, volume: &Volume) -> PathBuf {
    let id = rustix::fs::fstatvfs(volume.directory()).map_or(0, |status| status.f_fsid);
    directory.join(format!("{:x}-{id:x}.hashes", volume.st_dev))
}

impl Cache {
    /// Returns an empty cache if there is no file. Fails with a reason in words if the file is unusable.
    pub(super) fn load(path: &Path) -> Result<Self, &'static str> {
        let mut bytes = Vec::new();
        let read = sys::open_at(CWD, path, OFlags::RDONLY).map_err(Into::into).and_then(|file| {
            let mut file = File::from(file);
            bytes.reserve_exact(file.metadata()?.len() as usize);
            file.read_to_end(&mut bytes)
        });
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(_) => return Err("it cannot be read"),
            Ok(_) => {}
        }
        let is_sound = |head: &[u8], body: &[u8]| {
            let hash = shortened(&blake3::hash(body));
            head == [&MAGIC[..], &hash].concat() && body.len().is_multiple_of(RECORD)
        };
        if !bytes.split_at_checked(HEAD).is_some_and(|(head, body)| is_sound(head, body)) {
            return Err("it is damaged");
        }
        bytes.drain(..HEAD);
        Ok(Self { bytes })
    }

    fn records(&self) -> &[[u8; RECORD]] {
        self.bytes.as_chunks().0
    }

    pub(super) fn find(&self, wanted: Key) -> Option<KnownContent> {
        let at = self.records().binary_search_by_key(&wanted, |record| parse(record).0).ok()?;
        Some(parse(&self.records()[at]).1)
    }

    /// Replaces the file by one with the entries `now`, sorted by inode, and the old entries of other inodes, unless those
    /// are too many.
    pub(super) fn save(&self, path: &Path, now: impl Iterator<Item = (Key, KnownContent)>) -> std::io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).create(directory)?;
        let directory = sys::open_at(CWD, directory, OFlags::RDONLY | OFlags::DIRECTORY)?;
        sweep_records(&directory);
        replace_record(&directory, path.file_name().unwrap_or_default(), Durability::Cached, |file| {
            let mut file = BufWriter::new(file);
            file.write_all(&[0; HEAD])?;
            let hash = self.write(&mut file, now)?;
            let file = file.into_inner()?;
            file.rewind()?;
            file.write_all(MAGIC)?;
            file.write_all(&hash)
        })
    }

    fn write(&self, file: &mut impl Write, now: impl Iterator<Item = (Key, KnownContent)>) -> std::io::Result<Content> {
        let mut hasher = blake3::Hasher::new();
        let mut put = |(key, known): (Key, KnownContent)| {
            let mut record = [0; RECORD];
            for (at, number) in [(0, key.0), (8, key.1), (16, key.2), (40, known.address)] {
                record[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            record[24..40].copy_from_slice(&known.content);
            hasher.update(&record);
            file.write_all(&record)
        };
        let old = Some(self.records()).filter(|old| old.len() <= MOST_OLD).unwrap_or_default();
        let mut old = old.iter().map(parse).peekable();
        for (key, known) in now {
            while let Some(kept) = old.next_if(|(kept, _)| kept.0 < key.0) {
                put(kept)?;
            }
            // Only the newest entry of an inode counts.
            while old.next_if(|(kept, _)| kept.0 == key.0).is_some() {}
            put((key, known))?;
        }
        old.try_for_each(&mut put)?;
        Ok(shortened(&hasher.finalize()))
    }
}

fn parse(record: &[u8; RECORD]) -> (Key, KnownContent) {
    let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap_or_default());
    let content = record[24..40].try_into().unwrap_or_default();
    ((number(0), number(8), number(16)), KnownContent { content, address: number(40) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(number: u8) -> KnownContent {
        KnownContent { content: [number; 16], address: u64::from(number) }
    }

    #[test]
    fn what_was_saved_is_found_and_what_is_damaged_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/one");
        let mut first: Vec<_> = (1..200u64).map(|n| ((n * 7 % 211, n, n), known(n as u8))).collect();
        first.sort_unstable_by_key(|(key, _)| *key);
        Cache::default().save(&path, first.iter().copied()).unwrap();
        let loaded = Cache::load(&path).unwrap();
        assert!(first.iter().all(|(key, value)| loaded.find(*key) == Some(*value)));
        // A newer state of one file, and a new one.
        loaded.save(&path, [((7, 9, 9), known(255)), ((1000, 1, 1), known(3))].into_iter()).unwrap();
        let loaded = Cache::load(&path).unwrap();
        assert_eq!((loaded.find((7, 9, 9)), loaded.find((7, 1, 1))), (Some(known(255)), None));
        assert_eq!((loaded.find((14, 2, 2)), loaded.find((1000, 1, 1))), (Some(known(2)), Some(known(3))));
        let good = fs_err::read(&path).unwrap();
        // A killed run leaves its new file.
        fs_err::write(folder.path().join("below/.new-0123456789abcdef"), &good[..100]).unwrap();
        loaded.save(&path, first.iter().copied()).unwrap();
        assert_eq!(fs_err::read_dir(folder.path().join("below")).unwrap().count(), 1);
        for cut in [0, 5, 23, 24, 100, good.len() - 1] {
            fs_err::write(&path, &good[..cut]).unwrap();
            assert!(Cache::load(&path).is_err() || cut == 24 && good.len() == 24, "{cut}");
        }
        for position in [0, 9, 24, good.len() - 1] {
            let mut bad = good.clone();
            bad[position] ^= 1;
            fs_err::write(&path, &bad).unwrap();
            assert!(Cache::load(&path).is_err(), "{position}");
        }
    }

    #[test]
    fn old_entries_are_not_kept_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        Cache::default().save(&path, [((1, 1, 1), known(3))].into_iter()).unwrap();
        let many = (2..2 + MOST_OLD as u64).map(|inode| ((inode, 1, 1), known(4)));
        Cache::load(&path).unwrap().save(&path, many).unwrap();
        let loaded = Cache::load(&path).unwrap();
        assert_eq!(loaded.find((1, 1, 1)), Some(known(3)));
        loaded.save(&path, [((2, 2, 2), known(5))].into_iter()).unwrap();
        let loaded = Cache::load(&path).unwrap();
        assert_eq!((loaded.find((2, 2, 2)), loaded.find((1, 1, 1))), (Some(known(5)), None));
    }
}
