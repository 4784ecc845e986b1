//! git's index file: read as gitformat-index(5) describes it, and given new stat data in place.
//!
//! `git read-tree` writes no stat data: the first `git status` would read every file. Only 40 bytes per entry change.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use calve_core::internal::RecordedState;
use rustix::fs::Stat;
use sha1::{Digest as _, Sha1};

use crate::error::{Error, Result};
use crate::paths::{if_there, write_at_once};
use crate::remedy::Remedy;

/// Settings for an index in one file with an entry for each file, and no daemon for a place that will be renamed.
pub(crate) const PLAIN: [&str; 6] =
    ["-c", "core.splitIndex=false", "-c", "index.sparse=false", "-c", "core.fsmonitor=false"];

const FIXED_BYTES: usize = 40;
/// PATH_MAX of Linux: nothing longer can be checked out. In version 4 an entry repeats a long path in a few bytes.
const LONGEST_PATH: usize = 4096;
const ASSUME_UNCHANGED: u16 = 0x8000;
const EXTENDED: u16 = 0x4000;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

pub(crate) const SYMLINK: u32 = 0o120_000;
const DIRECTORY: u32 = 0o040_000;
pub(crate) const GITLINK: u32 = 0o160_000;

/// An index file in memory. The default is that of a worktree with nothing checked out.
#[derive(Clone, Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    pub(crate) hash_bytes: usize,
    pub(crate) entries: Vec<IndexEntry>,
    /// Some entries are in another file (`core.splitIndex`).
    pub(crate) is_partial: bool,
    /// The tree of all entries, if git has noted it.
    pub(crate) tree: Option<Vec<u8>>,
    entries_end: usize,
    /// The file's mtime in seconds and nanoseconds.
    written: (u32, u32),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    at: usize,
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    /// 0 unless in an unfinished merge.
    pub(crate) stage: u8,
    /// git does not look at the file (a bit in the index), or it has no content yet.
    pub(crate) is_special: bool,
    /// A sparse checkout leaves the file out.
    pub(crate) is_skipped: bool,
    pub(crate) oid: Vec<u8>,
    pub(crate) mtime: (u32, u32),
    pub(crate) size: u32,
}

impl IndexEntry {
    /// Returns the directory that an entry of a sparse index stands for: none of its files are there.
    pub(crate) fn directory(&self) -> Option<&[u8]> {
        (self.mode == DIRECTORY).then(|| self.path.strip_suffix(b"/").unwrap_or(&self.path))
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.oid)
    }

    /// Returns whether `stat` is of the file that git looked at when it wrote the entry.
    pub(crate) fn is_of(&self, stat: &Stat) -> bool {
        let (seconds, nanoseconds) = mtime(stat);
        self.mtime.0 == seconds && (self.mtime.1 == 0 || self.mtime.1 == nanoseconds) && self.size == size(stat)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Index {
    /// Reads an index file. `hash_bytes`: 20 for SHA-1, 32 for SHA-256.
    pub(crate) fn read(path: &Path, hash_bytes: usize) -> Result<Index> {
        // git creates it for the first entry.
        let Some(mut file) = if_there(fs_err::File::open(path))? else { return Ok(Self::default()) };
        let found = file.metadata()?;
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
        file.read_to_end(&mut bytes)?;
        let written = (low(found.mtime()), low(found.mtime_nsec()));
        let parsed = Self::parse(bytes, hash_bytes).map(|index| Index { written, ..index });
        let text = || format!("cannot parse the git index `{}`", calve_core::internal::ShownPath(path));
        parsed.ok_or_else(|| Error::refused(text(), Remedy::AskGitStatus))
    }

    /// Parses the output of `git ls-tree -r -z`: entries with path, mode and object only.
    pub(crate) fn listed(said: &[u8]) -> Index {
        let entries = said.split(|&byte| byte == 0).filter_map(|line| {
            let tab = line.iter().position(|&byte| byte == b'\t')?;
            let text = std::str::from_utf8(&line[..tab]).ok()?;
            let (mode, oid) = (text.split(' ').next()?, text.split(' ').nth(2)?);
            let digits = |at: usize| u8::from_str_radix(oid.get(at..at + 2)?, 16).ok();
            Some(IndexEntry {
                path: line[tab + 1..].to_vec(),
                mode: u32::from_str_radix(mode, 8).ok()?,
                oid: (0..oid.len()).step_by(2).map(digits).collect::<Option<_>>()?,
                ..IndexEntry::default()
            })
        });
        Index { entries: entries.collect(), ..Self::default() }
    }

    /// Returns an index of this one's tree without stat data, like `git read-tree`. `None`: only git can write it.
    pub(crate) fn of_its_tree(&self) -> Option<Index> {
        let is_plain = |entry: &IndexEntry| entry.stage == 0 && !entry.is_special && entry.directory().is_none();
        if self.hash_bytes != 20 || self.is_partial || !self.entries.iter().all(is_plain) {
            return None;
        }
        let end = self.bytes.len() - self.hash_bytes;
        let mut bytes = self.bytes.get(..self.entries_end)?.to_vec();
        for entry in &self.entries {
            // All but the mode, which the tree has.
            bytes[entry.at..entry.at + 24].fill(0);
            bytes[entry.at + 28..entry.at + FIXED_BYTES].fill(0);
        }
        bytes.extend_from_slice(tree_in(&extensions(self.bytes.get(..end)?, self.entries_end)?)?);
        // Saving the index writes the checksum, unless it is all zero.
        bytes.extend_from_slice(&self.bytes[end..]);
        let entries = self.entries.iter().map(|entry| IndexEntry { mtime: (0, 0), size: 0, ..entry.clone() });
        Some(Index { bytes, entries: entries.collect(), tree: self.tree.clone(), written: (0, 0), ..*self })
    }

    /// Returns whether git would call an entry's file unchanged by its metadata, without reading it.
    pub(crate) fn is_unchanged(&self, entry: usize, state: &RecordedState) -> bool {
        let IndexEntry { at, mode, mtime, size, ref oid, .. } = self.entries[entry];
        let (Some(seconds), Some(nanoseconds), Some(inode)) =
            (number(&self.bytes, at), number(&self.bytes, at + 4), number(&self.bytes, at + 20))
        else {
            return false;
        };
        let ctime = (seconds, nanoseconds);
        let kind = match mode {
            SYMLINK => state.mode & 0o170_000 == SYMLINK,
            _ => {
                state.mode & 0o170_000 == 0o100_000
                    && mode == if state.mode & 0o100 == 0 { 0o100_644 } else { 0o100_755 }
            }
        };
        // A later change within the clock tick of writing the index may not show (git's "racily clean" entries).
        let is_older = mtime < self.written && ctime < self.written;
        // git zeroes the size of entries that it has to look at again.
        let is_of_size = size == low(state.size) && (size != 0 || hex(oid) == EMPTY_BLOB);
        let is_same = ctime == (low(state.changed_seconds), state.changed_nanoseconds) && inode == low(state.inode);
        kind && is_older && is_of_size && is_same
    }

    /// Returns for each entry whether `other` has its object under its path, and a file of it. Both are in git's order.
    pub(crate) fn also_in(&self, other: &Index) -> Vec<bool> {
        let mut theirs = other.entries.iter().peekable();
        let is_there = |entry: &IndexEntry| {
            while theirs.next_if(|their| their.path < entry.path).is_some() {}
            theirs.peek().is_some_and(|their| {
                their.path == entry.path && their.oid == entry.oid && their.stage == 0 && !their.is_skipped
            })
        };
        self.entries.iter().map(is_there).collect()
    }

    pub(crate) fn parse(bytes: Vec<u8>, hash_bytes: usize) -> Option<Index> {
        let end = bytes.len().checked_sub(hash_bytes)?;
        let body = bytes.get(..end)?;
        if body.get(..4)? != b"DIRC" {
            return None;
        }
        let version = number(body, 4)?;
        let count = number(body, 8)? as usize;
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut entries = Vec::with_capacity(count.min(body.len() / (FIXED_BYTES + hash_bytes)));
        let mut at = 12;
        for _ in 0..count {
            let before: &[u8] = entries.last().map_or(&[], |last: &IndexEntry| &last.path);
            let (entry, next) = entry(body, at, version, hash_bytes, before)?;
            entries.push(entry);
            at = next;
        }
        let extensions = extensions(body, at)?;
        let is_partial = extensions.iter().any(|extension| extension.starts_with(b"link"));
        let tree = tree_in(&extensions).and_then(|bytes| whole_tree(bytes, count, hash_bytes));
        Some(Index { bytes, hash_bytes, entries, is_partial, tree, entries_end: at, written: (0, 0) })
    }

    /// Records a file's state, so that git need not read it to know that it is unchanged.
    pub(crate) fn set_stat(&mut self, entry: usize, stat: &Stat) {
        let at = self.entries[entry].at;
        let (seconds, nanoseconds) = mtime(stat);
        let fields = [
            (0, low(stat.st_ctime)),
            (4, low(stat.st_ctime_nsec)),
            (8, seconds),
            (12, nanoseconds),
            (16, low(stat.st_dev)),
            (20, low(stat.st_ino)),
            (28, stat.st_uid),
            (32, stat.st_gid),
            (36, size(stat)),
        ];
        for (offset, value) in fields {
            self.bytes[at + offset..at + offset + 4].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Writes the index to its file in one step. Returns false, and writes nothing, if its checksum is not SHA-1.
    pub(crate) fn save(self, path: &Path) -> Result<bool> {
        let Some(bytes) = self.into_bytes() else { return Ok(false) };
        write_at_once(path, &bytes)?;
        Ok(true)
    }

    fn into_bytes(mut self) -> Option<Vec<u8>> {
        let end = self.bytes.len() - self.hash_bytes;
        if self.hash_bytes != 20 {
            return None;
        }
        // All zero: the repository turned checksums off (`index.skipHash`).
        if self.bytes[end..].iter().any(|&byte| byte != 0) {
            let sum = Sha1::digest(&self.bytes[..end]);
            self.bytes[end..].copy_from_slice(&sum);
        }
        Some(self.bytes)
    }
}

fn entry(body: &[u8], at: usize, version: u32, hash_bytes: usize, before: &[u8]) -> Option<(IndexEntry, usize)> {
    let flags_at = at + FIXED_BYTES + hash_bytes;
    let flags = short(body, flags_at)?;
    let is_extended = version >= 3 && flags & EXTENDED != 0;
    let more = if is_extended { short(body, flags_at + 2)? } else { 0 };
    let mut path_at = flags_at + if is_extended { 4 } else { 2 };
    let mut path = Vec::new();
    if version == 4 {
        let (stripped, next) = variable(body, path_at)?;
        path.extend_from_slice(before.get(..before.len().checked_sub(stripped)?)?);
        path_at = next;
    }
    let rest = body.get(path_at..)?;
    let length = rest.iter().position(|&byte| byte == 0)?;
    path.extend_from_slice(&rest[..length]);
    if path.len() > LONGEST_PATH {
        return None;
    }
    let end = path_at + length;
    // Up to version 3, one to eight NULs pad an entry to a multiple of eight bytes.
    let next = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
    let entry = IndexEntry {
        at,
        path,
        mode: number(body, at + 24)?,
        stage: ((flags >> 12) & 3) as u8,
        is_skipped: more & SKIP_WORKTREE != 0,
        is_special: flags & ASSUME_UNCHANGED != 0 || more & (SKIP_WORKTREE | INTENT_TO_ADD) != 0,
        oid: body.get(at + FIXED_BYTES..flags_at)?.to_vec(),
        mtime: (number(body, at + 8)?, number(body, at + 12)?),
        size: number(body, at + 36)?,
    };
    Some((entry, next))
}

/// Returns the extensions after the entries, each with its name and its length before it.
fn extensions(body: &[u8], mut at: usize) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while at < body.len() {
        let next = at.checked_add(8)?.checked_add(number(body, at + 4)? as usize)?;
        found.push(body.get(at..next)?);
        at = next;
    }
    Some(found)
}

/// Returns git's cache of the trees that the entries form.
fn tree_in<'b>(extensions: &[&'b [u8]]) -> Option<&'b [u8]> {
    extensions.iter().copied().find(|extension| extension.starts_with(b"TREE"))
}

/// Returns the root tree's name. Format: NUL, number of entries (negative: unknown), space, that of subtrees, LF, name.
fn whole_tree(extension: &[u8], count: usize, hash_bytes: usize) -> Option<Vec<u8>> {
    let rest = extension.get(8..)?.strip_prefix(b"\0")?;
    let space = rest.iter().position(|&byte| byte == b' ')?;
    let entries: usize = std::str::from_utf8(&rest[..space]).ok()?.parse().ok()?;
    let end = rest.iter().position(|&byte| byte == b'\n')?;
    let name = rest.get(end + 1..)?.get(..hash_bytes)?;
    (entries == count).then(|| name.to_vec())
}

/// Parses git's variable-length number: 7 bits each, highest first, each continuation adds one. Also returns its end.
fn variable(body: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *body.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *body.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Returns the low 32 bits, which are all that the index keeps.
#[allow(clippy::cast_possible_truncation, reason = "as git does")]
pub(crate) fn low(value: impl TryInto<i128>) -> u32 {
    value.try_into().map_or(0, |value: i128| value as u32)
}

fn mtime(stat: &Stat) -> (u32, u32) {
    (low(stat.st_mtime), low(stat.st_mtime_nsec))
}

fn size(stat: &Stat) -> u32 {
    low(stat.st_size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Git;

    /// Makes a repository whose paths share beginnings, which version 4 makes use of.
    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::at(folder.path()).with("GIT_CONFIG_GLOBAL", "/dev/null").with("GIT_CONFIG_NOSYSTEM", "1");
        git.run(&["init", "-q"]).unwrap();
        for at in 0..40 {
            fs_err::create_dir_all(folder.path().join(format!("some/long/folder{}", at % 3))).unwrap();
            fs_err::write(folder.path().join(format!("some/long/folder{}/file-{at}", at % 3)), at.to_string()).unwrap();
        }
        git.run(&["add", "."]).unwrap();
        (folder, git)
    }

    #[test]
    fn every_version_is_read_and_rewritten_as_git_wrote_it() {
        let (folder, git) = repository();
        let path = folder.path().join(".git/index");
        let listed = git.run(&["ls-files", "-s", "-z"]).unwrap();
        for version in ["2", "3", "4"] {
            git.run(&["update-index", "--index-version", version]).unwrap();
            if version == "3" {
                git.run(&["update-index", "--skip-worktree", "some/long/folder0/file-0"]).unwrap();
            }
            let before = fs_err::read(&path).unwrap();
            let mut index = Index::read(&path, 20).unwrap();
            let mut ours = Vec::new();
            for entry in &index.entries {
                ours.extend(format!("{:o} {} {}\t", entry.mode, entry.hex(), entry.stage).bytes());
                ours.extend(&entry.path);
                ours.push(0);
            }
            assert!(ours == listed, "version {version}");
            assert_eq!(index.entries.iter().filter(|entry| entry.is_special).count(), usize::from(version != "2"));
            for at in 0..index.entries.len() {
                let file = folder.path().join(String::from_utf8(index.entries[at].path.clone()).unwrap());
                let stat = rustix::fs::lstat(&file).unwrap();
                assert!(index.entries[at].is_of(&stat));
                index.set_stat(at, &stat);
            }
            assert!(index.into_bytes().unwrap() == before, "version {version}: git wrote something else");
        }
    }

    #[test]
    fn what_is_cut_off_is_refused_and_never_panics() {
        let (folder, _git) = repository();
        let whole = fs_err::read(folder.path().join(".git/index")).unwrap();
        for length in 0..whole.len() - 21 {
            let cut = Index::parse(whole[..length].to_vec(), 20);
            assert!(cut.is_none_or(|index| index.entries.len() == 40), "{length}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_index() {
        let (folder, git) = repository();
        let mut seeds = Vec::new();
        for version in ["2", "4"] {
            git.run(&["update-index", "--index-version", version]).unwrap();
            seeds.push(fs_err::read(folder.path().join(".git/index")).unwrap());
        }
        seeds.push(git.run(&["ls-files", "-s", "-z"]).unwrap());
        let stat = rustix::fs::lstat(folder.path()).unwrap();
        let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
        calve_testkit::fuzz(&seeds, |input| {
            for hash_bytes in [20, 32] {
                let Some(mut index) = Index::parse(input.to_vec(), hash_bytes) else { continue };
                for entry in 0..index.entries.len() {
                    index.set_stat(entry, &stat);
                }
                assert!(index.into_bytes().is_none_or(|bytes| bytes.len() == input.len()));
            }
            let listed = Index::listed(input);
            assert_eq!(listed.also_in(&listed).len(), listed.entries.len());
        });
    }

    #[test]
    fn an_index_of_its_tree_is_the_one_that_read_tree_writes() {
        let (folder, git) = repository();
        fs_err::write(folder.path().join("empty"), "").unwrap();
        fs_err::os::unix::fs::symlink("empty", folder.path().join("link")).unwrap();
        git.run(&["add", "."]).unwrap();
        let by = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git.run(&[&by[..], &["commit", "-qm", "one"]].concat()).unwrap();
        let read = |name: &str| Index::read(&folder.path().join(name), 20).unwrap();
        let other = git.clone().with("GIT_INDEX_FILE", folder.path().join("other"));
        for version in ["2", "4"] {
            git.run(&["update-index", "--index-version", version]).unwrap();
            let versioned = ["-c", &format!("index.version={version}"), "read-tree", "HEAD"].map(str::to_owned);
            fs_err::remove_file(folder.path().join("other")).unwrap_or_default();
            other.run(&versioned).unwrap();
            let own = read(".git/index");
            assert_eq!(own.tree.as_deref().map(hex), git.answer(&["rev-parse", "HEAD^{tree}"]).unwrap());
            let (made, wanted) = (own.of_its_tree().unwrap(), read("other"));
            assert_eq!((&made.entries, &made.tree), (&wanted.entries, &wanted.tree), "version {version}");
            assert_eq!(made.into_bytes(), wanted.into_bytes(), "version {version}");
        }
        fs_err::write(folder.path().join("empty"), "no more").unwrap();
        git.run(&["add", "."]).unwrap();
        assert_eq!(read(".git/index").tree, None);
    }

    // Each path could be one byte longer than the one before, so that memory grew with the square of the file's size.
    #[test]
    fn an_index_takes_no_more_memory_than_its_size_permits() {
        let mut bytes = b"DIRC\0\0\0\x04\0\0\x17\x70".to_vec();
        for _ in 0..6_000 {
            bytes.extend([0; 62]);
            bytes.extend(b"\0x\0");
        }
        bytes.extend([0; 20]);
        assert!(Index::parse(bytes, 20).is_none());
    }
}
