//! Ignored files of removed worktrees, which stay for a while in git's own directory.
//!
//! They get a second name there (or a copy, where a link is not possible) before the worktree goes: whatever fails in between, the worktree is whole.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use calve_core::ShownPath;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::unsaved_item::{IgnoredFile, bytes};

/// How long they stay.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RWXU;

/// Ignored files of a removed worktree that nothing else has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptFiles {
    /// Where they are for a week, each under its path in the worktree.
    pub directory: PathBuf,
    /// Relative to that.
    pub files: Vec<PathBuf>,
    /// The size of all.
    pub bytes: u64,
}

/// Files that have a second name now.
pub(crate) struct Keeping<'w> {
    kept: KeptFiles,
    root: BorrowedFd<'w>,
}

/// Gives files of the worktree with the open directory `root` a second name in git's own directory.
pub(crate) fn keep<'w>(
    common: &Path,
    name: &Path,
    root: BorrowedFd<'w>,
    files: &[IgnoredFile],
) -> Result<Option<Keeping<'w>>> {
    if files.is_empty() {
        return Ok(None);
    }
    let directory = new_directory(&place(common), name)?;
    let mut keeping = Keeping { kept: KeptFiles { directory, files: Vec::new(), bytes: bytes(files) }, root };
    let done = files.iter().try_for_each(|file| {
        let to = keeping.kept.directory.clone();
        match add(root, &to, &file.path) {
            Ok(()) => keeping.kept.files.push(file.path.clone()),
            // A program has removed it since: a journal, a lock.
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed("keep", &to.join(&file.path), errno)),
        }
        Ok(())
    });
    match done {
        Ok(()) => Ok(Some(keeping)),
        Err(error) => {
            keeping.undo();
            Err(error)
        }
    }
}

impl Keeping<'_> {
    /// Leaves them there, because the worktree is gone.
    pub(crate) fn finish(self) -> KeptFiles {
        self.kept
    }

    /// Removes the second names, if all files still have their first.
    pub(crate) fn undo(self) {
        let has_first = |file: &PathBuf| rustix::fs::statat(self.root, file, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if self.kept.files.iter().all(has_first) {
            let _ = fs_err::remove_dir_all(&self.kept.directory);
        }
    }
}

/// Removes what has been kept for long enough. The next command tries again where that fails.
pub(crate) fn sweep_kept(common: &Path) {
    let Ok(all) = fs_err::read_dir(place(common)) else { return };
    let is_old = |found: &std::fs::Metadata| {
        found.is_dir() && found.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > KEPT))
    };
    for directory in all.flatten().map(|entry| entry.path()) {
        if fs_err::symlink_metadata(&directory).is_ok_and(|found| is_old(&found)) {
            let _ = fs_err::remove_dir_all(&directory);
        }
    }
}

fn place(common: &Path) -> PathBuf {
    common.join("calve/kept")
}

/// Makes a directory whose name says which worktree, and when.
fn new_directory(place: &Path, name: &Path) -> Result<PathBuf> {
    fs_err::create_dir_all(place)?;
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut number = seconds;
    loop {
        let mut own = name.file_name().unwrap_or_default().to_os_string();
        own.push(format!("-{number}"));
        let directory = place.join(own);
        match rustix::fs::mkdir(&directory, PRIVATE) {
            Ok(()) => return Ok(directory),
            Err(Errno::EXIST) if number < seconds + 10_000 => number += 1,
            Err(errno) => return Err(failed("make", &directory, errno)),
        }
    }
}

/// Adds one file. Follows no link, neither in the worktree, which others may be changing, nor here.
fn add(root: BorrowedFd<'_>, directory: &Path, path: &Path) -> std::result::Result<(), Errno> {
    let mut from = root.try_clone_to_owned().map_err(|_| Errno::MFILE)?;
    let mut to = rustix::fs::openat(CWD, directory, DIRECTORY, Mode::empty())?;
    for above in path.parent().unwrap_or(Path::new("")).components() {
        from = rustix::fs::openat(&from, above.as_os_str(), DIRECTORY, Mode::empty())?;
        match rustix::fs::mkdirat(&to, above.as_os_str(), PRIVATE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        to = rustix::fs::openat(&to, above.as_os_str(), DIRECTORY, Mode::empty())?;
    }
    let name = Path::new(path.file_name().unwrap_or_default());
    match rustix::fs::linkat(&from, name, &to, name, AtFlags::empty()) {
        // Another file system or subvolume, one without hard links, or somebody else's file.
        Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::ACCESS) => copy(&from, &to, name),
        linked => linked,
    }
}

fn copy(from: &OwnedFd, to: &OwnedFd, name: &Path) -> std::result::Result<(), Errno> {
    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let target = rustix::fs::readlinkat(from, name, Vec::new())?;
        return rustix::fs::symlinkat(target, to, name);
    }
    let source = rustix::fs::openat(from, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let target = rustix::fs::openat(to, name, new, Mode::from_raw_mode(stat.st_mode & 0o700))?;
    let (mut source, mut target) = (File::from(source), File::from(target));
    std::io::copy(&mut source, &mut target).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let changed = Timespec { tv_sec: stat.st_mtime as _, tv_nsec: stat.st_mtime_nsec as _ };
    let times = Timestamps { last_access: changed, last_modification: changed };
    rustix::fs::futimens(target.as_fd(), &times)
}

fn failed(operation: &str, path: &Path, errno: Errno) -> Error {
    let error = std::io::Error::from(errno);
    let text = format!("cannot {operation} `{}`: {error}", ShownPath(path));
    Error::Io(std::io::Error::new(error.kind(), text))
}
