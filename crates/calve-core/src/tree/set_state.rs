//! Detects changes of files that belong together ([`FileSet`]).

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::fill::contents::open_contents;
use super::fill::metadata::same_version;
use super::stable::Moment;
use crate::sys::{self, size};
use crate::tree::file_set::{FileSet, is_made_again, is_sqlite};

impl FileSet {
    /// Returns the set of a directory entry, judged by name or first bytes.
    pub fn of_entry(directory: impl AsFd, name: &[u8]) -> Option<Self> {
        let by_contents = || {
            let file = open_contents(directory.as_fd(), &CString::new(name).ok()?, || false).ok()?;
            let stat = rustix::fs::fstat(&file).ok()?;
            let is_file = sys::kind(stat) == FileType::RegularFile;
            (is_file && is_sqlite(file.as_fd(), size(&stat))).then(|| Self::of_sqlite(name))
        };
        Self::from_name(name).or_else(by_contents)
    }
}

pub struct FileSetState {
    clock: Moment,
    /// Its metadata, if only a listing tells the names: a name that comes or goes changes it.
    directory: Option<Stat>,
    pub(crate) files: BTreeMap<CString, Stat>,
}

impl FileSetState {
    /// Looks at the files of a set in an open directory.
    pub fn look_at(set: &FileSet, directory: impl AsFd) -> std::io::Result<Self> {
        Ok(Self::look(directory.as_fd(), set, &mut ListedSets::default())?)
    }

    /// Returns whether no file changed, appeared or disappeared before the state `now`.
    pub fn lasted_until(&self, now: &Self) -> bool {
        self.shows_changes() && self.is_same(now)
    }

    /// Looks at the files of a set. `listed` caches the listing of its directory.
    pub(crate) fn look(directory: BorrowedFd<'_>, set: &FileSet, listed: &mut ListedSets) -> sys::Result<Self> {
        let clock = Moment::of_file_systems();
        let (names, its_directory) = match set.known_names() {
            Some(names) => (names, None),
            None => {
                let before = listed.renew(directory)?;
                (listed.names(set).cloned().collect(), Some(before))
            }
        };
        let mut files = BTreeMap::new();
        for name in names {
            match sys::stat_at(directory, &name) {
                Ok(stat) if sys::kind(stat) == FileType::RegularFile => {
                    files.insert(name, stat);
                }
                // A name that is too long cannot exist.
                Ok(_) | Err(Errno::NOENT | Errno::NAMETOOLONG) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(Self { clock, directory: its_directory, files })
    }

    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.files.keys().any(|known| known.to_bytes() == name)
    }

    fn deciding(&self) -> impl Iterator<Item = (&CString, &Stat)> {
        self.files.iter().filter(|(name, _)| !is_made_again(name.to_bytes()))
    }

    /// Returns whether every later change makes a state that differs from this one.
    pub(crate) fn shows_changes(&self) -> bool {
        self.deciding().map(|(_, stat)| stat).chain(&self.directory).all(|stat| self.clock.shows_changes_of(stat))
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_directory = match (&self.directory, &other.directory) {
            (Some(a), Some(b)) => is_same(a, b),
            _ => true,
        };
        is_same_directory
            && self.deciding().count() == other.deciding().count()
            && self.deciding().zip(other.deciding()).all(|((a, before), (b, after))| a == b && is_same(before, after))
    }

    pub(crate) fn has_links(&self) -> bool {
        self.files.values().any(|stat| stat.st_nlink > 1)
    }
}

fn is_same(a: &Stat, b: &Stat) -> bool {
    a.st_ino == b.st_ino && same_version(a, b)
}

/// Names of a directory's sets that only a listing tells. All sets share one listing until the directory changes.
#[derive(Default)]
pub(crate) struct ListedSets {
    /// The directory's metadata before the listing, and the time of reading it.
    as_of: Option<(Moment, Stat)>,
    names: BTreeMap<FileSet, Vec<CString>>,
}

impl ListedSets {
    pub(crate) fn names(&self, set: &FileSet) -> impl Iterator<Item = &CString> {
        self.names.get(set).into_iter().flatten()
    }

    /// Lists the directory again if it may have changed. Returns its metadata from before the listing.
    pub(crate) fn renew(&mut self, directory: BorrowedFd<'_>) -> sys::Result<Stat> {
        let clock = Moment::of_file_systems();
        let now = rustix::fs::fstat(directory)?;
        if !self.as_of.is_some_and(|(clock, then)| clock.shows_changes_of(&then) && is_same(&then, &now)) {
            self.as_of = None;
            self.names.clear();
            for (name, _) in sys::list(directory)? {
                if let Some(set) = FileSet::from_name(name.to_bytes()).filter(FileSet::is_known_by_others) {
                    self.names.entry(set).or_default().push(name);
                }
            }
            self.as_of = Some((clock, now));
        }
        Ok(now)
    }
}
