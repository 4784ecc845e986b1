//! Divides files among directories and workers, without I/O.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::options::{ExistingFile, OnError, WriteEntry, WriteFailure, WriteOptions};
use crate::error::Error;
use crate::vocabulary::operation::Operation;

/// Below this a thread costs more than it writes.
const FILES_PER_THREAD: usize = 16;
/// Threads that create in one directory wait for each other, but one can write contents while another creates.
const THREADS_PER_DIRECTORY: usize = 2;

/// Files of one directory, for one worker.
#[derive(Debug)]
pub(super) struct Unit<'a> {
    /// Relative to the root, without empty names and `.`.
    pub(super) directory: Cow<'a, [u8]>,
    pub(super) items: Vec<Item<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) index: u64,
    pub(super) name: &'a [u8],
    pub(super) contents: &'a [u8],
}

pub(super) struct WritePlan<'a> {
    pub(super) units: Vec<Unit<'a>>,
    pub(super) refused: Vec<WriteFailure>,
    pub(super) threads: usize,
}

/// Divides the entries, counted from `first`, into units. `limit` reduces the sensible number of threads.
pub(super) fn plan<'a>(
    entries: &[WriteEntry<'a>],
    first: u64,
    root: &Path,
    options: &WriteOptions,
    most: usize,
    limit: impl FnOnce(usize) -> usize,
) -> WritePlan<'a> {
    let mut refused = Vec::new();
    let groups = by_directory(entries, first, root, options, &mut refused);
    let files: usize = groups.iter().map(|group| group.items.len()).sum();
    let threads = match options.threads {
        Some(_) => most,
        None => most.min(files / FILES_PER_THREAD).min(groups.len().saturating_mul(THREADS_PER_DIRECTORY)).max(1),
    };
    let threads = limit(threads).max(1);
    WritePlan { units: share(groups, files, threads), refused, threads }
}

/// Groups the files by directory, in order. Keeps the later of two entries with one path. If existing files are
/// refused: the earlier, and entries after the later only if errors are collected.
fn by_directory<'a>(
    entries: &[WriteEntry<'a>],
    first: u64,
    root: &Path,
    options: &WriteOptions,
    refused: &mut Vec<WriteFailure>,
) -> Vec<Unit<'a>> {
    let mut groups: Vec<Unit<'a>> = Vec::new();
    let mut numbers: HashMap<Cow<'a, [u8]>, usize> = HashMap::new();
    let mut positions: HashMap<(usize, &'a [u8]), usize> = HashMap::with_capacity(entries.len());
    for (index, entry) in (first..).zip(entries) {
        let (directory, name) = match split(entry.path) {
            Ok(parts) => parts,
            Err(reason) => {
                let error = Error::OutsideRoot { path: entry.path.to_path_buf(), reason };
                refused.push(WriteFailure { index, error });
                continue;
            }
        };
        let number = *numbers.entry(directory.clone()).or_insert(groups.len());
        if number == groups.len() {
            groups.push(Unit { directory, items: Vec::new() });
        }
        let Unit { directory, items } = &mut groups[number];
        let item = Item { index, name, contents: entry.contents };
        match positions.entry((number, name)) {
            Entry::Vacant(new) => {
                new.insert(items.len());
                items.push(item);
            }
            Entry::Occupied(_) if options.existing == ExistingFile::Refuse => {
                let error = Error::io(Operation::CreateFile, join(root, directory, name), Errno::EXIST);
                refused.push(WriteFailure { index, error });
                if options.on_error == OnError::Stop {
                    break;
                }
            }
            Entry::Occupied(known) => items[*known.get()] = item,
        }
    }
    groups
}

/// Splits large groups into pieces, to keep every thread busy.
fn share(groups: Vec<Unit<'_>>, files: usize, threads: usize) -> Vec<Unit<'_>> {
    let piece = if threads == 1 { usize::MAX } else { (files / (threads * 8)).max(FILES_PER_THREAD) };
    let mut units = Vec::with_capacity(groups.len());
    for group in groups {
        if group.items.len() <= piece.saturating_mul(2) {
            units.push(group);
            continue;
        }
        let of_it = |items: &[_]| Unit { directory: group.directory.clone(), items: items.to_vec() };
        units.extend(group.items.chunks(piece).map(of_it));
    }
    units.sort_by_key(|unit| std::cmp::Reverse(unit.items.len()));
    units
}

/// Splits a path into directory and name. Fails with a reason in words if it cannot be written below a root.
fn split(path: &Path) -> Result<(Cow<'_, [u8]>, &[u8]), &'static str> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err("it is empty");
    }
    if bytes.contains(&0) {
        return Err("it contains a NUL byte");
    }
    if bytes.starts_with(b"/") {
        return Err("it is absolute");
    }
    if bytes.split(|&byte| byte == b'/').any(|part| part == b"..") {
        return Err("it contains `..`");
    }
    let (directory, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (bytes.get(..slash).unwrap_or_default(), bytes.get(slash + 1..).unwrap_or_default()),
        None => (&[][..], bytes),
    };
    if name.is_empty() || name == b"." {
        return Err("it names a directory");
    }
    let superfluous = |part: &&[u8]| part.is_empty() || *part == b".";
    if directory.is_empty() || !directory.split(|&byte| byte == b'/').any(|part| superfluous(&part)) {
        return Ok((Cow::Borrowed(directory), name));
    }
    let parts: Vec<&[u8]> = directory.split(|&byte| byte == b'/').filter(|part| !superfluous(part)).collect();
    Ok((Cow::Owned(parts.join(&b'/')), name))
}

pub(super) fn join(root: &Path, directory: &[u8], name: &[u8]) -> PathBuf {
    let mut path = root.to_path_buf();
    for part in [directory, name] {
        if !part.is_empty() {
            path.push(OsStr::from_bytes(part));
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries<'a>(paths: &[&'a str]) -> Vec<WriteEntry<'a>> {
        paths.iter().map(|&path| WriteEntry { path: Path::new(path), contents: b"" }).collect()
    }

    fn planned<'a>(paths: &[&'a str], options: &WriteOptions) -> WritePlan<'a> {
        plan(&entries(paths), 0, Path::new("root"), options, 4, |planned| planned)
    }

    #[test]
    fn paths_that_lead_out_of_the_root_are_refused() {
        for path in ["", "/a", "..", "../a", "a/../b", "a/..", "a/", ".", "a/.", "a\0b"] {
            assert!(split(Path::new(path)).is_err(), "{path:?}");
        }
        for (path, directory, name) in
            [("a", "", "a"), ("a/b", "a", "b"), ("./a", "", "a"), ("a//b/./c", "a/b", "c"), ("..a/...", "..a", "...")]
        {
            let (found, last) = split(Path::new(path)).unwrap();
            assert_eq!((&*found, last), (directory.as_bytes(), name.as_bytes()), "{path}");
        }
    }

    #[test]
    fn of_two_entries_with_one_path_the_later_is_written() {
        let plan = planned(&["a/b", "c", "./a//b"], &WriteOptions::default());
        let mut kept: Vec<u64> = plan.units.iter().flat_map(|unit| &unit.items).map(|item| item.index).collect();
        kept.sort_unstable();
        assert_eq!((kept, plan.refused.len()), (vec![1, 2], 0));
    }

    #[test]
    fn the_later_one_is_refused_where_files_must_be_new() {
        let options = WriteOptions { existing: ExistingFile::Refuse, ..WriteOptions::default() };
        let plan = planned(&["a/b", "a/b"], &options);
        assert_eq!(plan.refused.iter().map(|refused| refused.index).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn threads_depend_on_files_and_directories() {
        let names: Vec<String> = (0..200).map(|n| format!("{n}")).collect();
        let flat: Vec<&str> = names.iter().map(String::as_str).collect();
        let default = WriteOptions::default();
        assert_eq!(planned(&flat[..20], &default).threads, 1);
        let plan = planned(&flat, &default);
        assert_eq!(plan.threads, 2);
        assert!(plan.units.len() >= 2, "one directory is shared out");
        assert_eq!(plan.units.iter().map(|unit| unit.items.len()).sum::<usize>(), 200);
        let names: Vec<String> = (0..200).map(|n| format!("{}/{n}", n % 10)).collect();
        let spread: Vec<&str> = names.iter().map(String::as_str).collect();
        let plan = planned(&spread, &default);
        assert_eq!((plan.threads, plan.units.len()), (4, 10));
    }
}
