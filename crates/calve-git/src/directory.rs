//! Reads a worktree's directory without following links. Its files are not trusted to be small or regular.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Enough for a lockfile of 20,000 packages.
pub(crate) const LARGEST_BYTES: u64 = 16 * 1024 * 1024;

/// Nanoseconds since 1970.
pub(crate) type Time = i128;

pub(crate) struct Directory {
    directory: File,
}

impl Directory {
    pub(crate) fn open(worktree: &Path, path: &Path) -> Option<Directory> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Directory { directory: openat(CWD, worktree, flags, Mode::empty()).ok()?.into() }.directory(path)
    }

    pub(crate) fn directory(&self, path: impl AsRef<Path>) -> Option<Directory> {
        Some(Directory { directory: open_below(self.directory.try_clone().ok()?, path.as_ref()).ok()? })
    }

    pub(crate) fn above(&self) -> Option<Directory> {
        Some(Directory { directory: open_directory(&self.directory, "..").ok()? })
    }

    /// Reads a regular text file of at most [`LARGEST_BYTES`].
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        let directory = self.directory(path.parent()?)?.directory;
        String::from_utf8(read(&directory, path.file_name()?, LARGEST_BYTES)?).ok()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.stat(path).is_some()
    }

    /// Returns when an entry was last modified, or the directory itself for `.`.
    pub(crate) fn changed(&self, path: impl AsRef<Path>) -> Option<Time> {
        self.stat(path).map(|found| time(&found))
    }

    fn stat(&self, path: impl AsRef<Path>) -> Option<Stat> {
        statat(&self.directory, path.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.directory) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned));
        names.filter(|name| name != "." && name != "..").collect()
    }

    /// Returns whether all these directories exist and none changed after `end`, when an installer finished. One that
    /// was killed later has moved a directory away, or put another in its place.
    pub(crate) fn is_settled<'p>(&self, mut paths: impl Iterator<Item = &'p str>, end: Time) -> bool {
        let is_within = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        paths.all(|path| is_within(path) && self.changed(path).is_some_and(|changed| changed <= end))
    }

    /// Also rules out an installer that began to delete in place, depths first. Much slower than [`Self::is_settled`].
    pub(crate) fn is_undeleted<'p>(&self, mut paths: impl Iterator<Item = &'p str>, end: Time) -> bool {
        let is_settled = |directory: Directory| directory.changed(".").is_some_and(|changed| changed <= end);
        paths.all(|path| self.is_settled(std::iter::once(path), end) && self.beginning(path).all(is_settled))
    }

    /// Returns a directory, its first entry, and so on: deletion begins there, in the file system's order of listing.
    fn beginning(&self, path: &str) -> impl Iterator<Item = Directory> {
        std::iter::successors(self.directory(path), |directory| {
            let mut names =
                Dir::read_from(&directory.directory).ok()?.map_while(|entry| Some(entry.ok()?.file_name().to_owned()));
            let first = names.find(|name| ![c".", c".."].contains(&name.as_c_str()))?;
            directory.directory(OsStr::from_bytes(first.as_bytes()))
        })
    }
}

/// Opens a directory without following a link at its name.
pub(crate) fn open_directory(parent: impl AsFd, name: impl Arg) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// Opens the directory at a path without `..`, following no link on the way.
pub(crate) fn open_below(directory: File, path: &Path) -> rustix::io::Result<File> {
    path.components().try_fold(directory, |at, component| match component {
        Component::Normal(name) => open_directory(at, name),
        _ => Err(Errno::INVAL),
    })
}

/// Returns the contents of a regular file of at most `most_bytes`. Does not wait for a FIFO.
pub(crate) fn read(directory: impl AsFd, name: impl Arg, most_bytes: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok().filter(|found| found.is_file() && found.len() <= most_bytes)?;
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).ok()? + 1);
    file.take(most_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[allow(clippy::unnecessary_cast, reason = "the types differ by platform")]
fn time(found: &Stat) -> Time {
    found.st_mtime as i128 * 1_000_000_000 + found.st_mtime_nsec as i128
}
