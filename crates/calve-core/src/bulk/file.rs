//! One file, written.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::options::{ExistingFile, Flush, Placement, WriteOptions};
use super::plan::Item;
use crate::error::Error;
use crate::sys;
use crate::tree::replaced::ReplacedFile;
use crate::vocabulary::operation::Operation;

/// Where `write` stops to look whether it should go on.
const PIECE_BYTES: usize = 8 << 20;

/// Writes `item`; `path` makes its path, for errors.
pub(super) fn write(
    directory: BorrowedFd<'_>,
    item: &Item<'_>,
    options: &WriteOptions,
    expect_existing: &mut bool,
    path: &dyn Fn(&[u8]) -> PathBuf,
) -> Result<(), Error> {
    match options.placement {
        Placement::InPlace => {
            let (file, is_new) = make(directory, item, options, expect_existing, path)?;
            fill_made(directory, file, is_new, item, options, path)
        }
        Placement::Rename => by_rename(directory, item, options, path),
    }
}

/// Opens the file of an item, or creates it, and returns it empty. Returns also whether it is new.
pub(super) fn make(
    directory: BorrowedFd<'_>,
    item: &Item<'_>,
    options: &WriteOptions,
    expect_existing: &mut bool,
    path: &dyn Fn(&[u8]) -> PathBuf,
) -> Result<(OwnedFd, bool), Error> {
    open(directory, item.name, options, expect_existing).map_err(|refused| match refused {
        WriteRefusal::Errno(operation, errno) => Error::io(operation, path(item.name), errno),
        WriteRefusal::Kind(kind) => Error::NotAFile { operation: Operation::Write, path: path(item.name), kind },
    })
}

pub(super) fn fill_made(
    directory: BorrowedFd<'_>,
    file: OwnedFd,
    is_new: bool,
    item: &Item<'_>,
    options: &WriteOptions,
    path: &dyn Fn(&[u8]) -> PathBuf,
) -> Result<(), Error> {
    fill(file, item, options, path).inspect_err(|_| take_back(directory, item, is_new))
}

/// Removes a new file whose contents could not be written: half a file is worse than none.
pub(super) fn take_back(directory: BorrowedFd<'_>, item: &Item<'_>, is_new: bool) {
    if is_new {
        let _ = rustix::fs::unlinkat(directory, item.name, AtFlags::empty());
    }
}

fn by_rename(
    directory: BorrowedFd<'_>,
    item: &Item<'_>,
    options: &WriteOptions,
    path: &dyn Fn(&[u8]) -> PathBuf,
) -> Result<(), Error> {
    let hidden = format!(".calve-write-{:016x}", sys::random());
    let hidden = hidden.as_bytes();
    let replaced = match options.existing {
        ExistingFile::Overwrite => ReplacedFile::find(directory, OsStr::from_bytes(item.name)),
        ExistingFile::Refuse => Ok(None),
    };
    let replaced = replaced.map_err(|error| Error::io(Operation::Stat, path(item.name), error))?;
    let mode = if replaced.is_some() { ReplacedFile::NEW_MODE } else { options.mode };
    let file =
        create(directory, hidden, mode).map_err(|errno| Error::io(Operation::CreateFile, path(hidden), errno))?;
    let kept = replaced.map_or(Ok(()), |old| old.keep_in(file.as_fd()).map(drop));
    let kept = kept.map_err(|error| Error::io(Operation::SetFileMode, path(hidden), error));
    let written = kept.and_then(|()| fill(file, item, options, path)).and_then(|()| {
        let failed = |errno| Error::io(Operation::CreateFile, path(item.name), errno);
        match options.existing {
            ExistingFile::Overwrite => rustix::fs::renameat(directory, hidden, directory, item.name).map_err(failed),
            ExistingFile::Refuse => {
                // A link refuses an existing name on every file system, which a rename with flags does not.
                rustix::fs::linkat(directory, hidden, directory, item.name, AtFlags::empty()).map_err(failed)?;
                rustix::fs::unlinkat(directory, hidden, AtFlags::empty()).map_err(failed)
            }
        }
    });
    written.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(directory, hidden, AtFlags::empty());
    })
}

enum WriteRefusal {
    Errno(Operation, Errno),
    Kind(&'static str),
}

/// Does the work of [`make`]. Its errors have no path.
fn open(
    directory: BorrowedFd<'_>,
    name: &[u8],
    options: &WriteOptions,
    expect_existing: &mut bool,
) -> Result<(OwnedFd, bool), WriteRefusal> {
    // Another program may make or remove it in between, but not for ever.
    for _ in 0..8 {
        if !(*expect_existing && options.existing == ExistingFile::Overwrite) {
            match create(directory, name, options.mode) {
                Ok(file) => return Ok((file, true)),
                Err(Errno::EXIST) if options.existing == ExistingFile::Overwrite => *expect_existing = true,
                Err(errno) => return Err(WriteRefusal::Errno(Operation::CreateFile, errno)),
            }
        }
        match existing(directory, name) {
            Err(WriteRefusal::Errno(_, Errno::NOENT)) => *expect_existing = false,
            other => return other.map(|file| (file, false)),
        }
    }
    Err(WriteRefusal::Errno(Operation::CreateFile, Errno::EXIST))
}

fn create(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> sys::Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::open_at(directory, name, flags, Mode::from_raw_mode(mode as _))
}

/// Opens an existing file and empties it. Does not wait for a FIFO's reader.
fn existing(directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, WriteRefusal> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match sys::open_at(directory, name, flags, Mode::empty()) {
        Err(Errno::LOOP) => return Err(WriteRefusal::Kind("symlink, which is not followed")),
        Err(Errno::NXIO) => return Err(WriteRefusal::Kind("FIFO or socket")),
        other => other.map_err(|errno| WriteRefusal::Errno(Operation::OpenToWrite, errno))?,
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| WriteRefusal::Errno(Operation::Stat, errno))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(WriteRefusal::Kind("FIFO or device"));
    }
    if stat.st_size > 0 {
        rustix::fs::ftruncate(&file, 0).map_err(|errno| WriteRefusal::Errno(Operation::EmptyFile, errno))?;
    }
    Ok(file)
}

fn fill(file: OwnedFd, item: &Item<'_>, options: &WriteOptions, path: &dyn Fn(&[u8]) -> PathBuf) -> Result<(), Error> {
    let failed = |errno| Error::io(Operation::WriteFile, path(item.name), errno);
    let mut left = item.contents;
    while !left.is_empty() {
        let piece = left.get(..PIECE_BYTES).unwrap_or(left);
        let written = sys::retry(|| rustix::io::write(&file, piece)).map_err(failed)?;
        if written == 0 {
            return Err(failed(Errno::IO));
        }
        left = left.get(written..).unwrap_or_default();
        if !left.is_empty() && options.cancel.is_cancelled() {
            return Err(Error::Interrupted);
        }
    }
    if options.flush == Flush::EachFile {
        sys::sync_file(file.as_fd()).map_err(|errno| Error::io(Operation::SyncFile, path(item.name), errno))?;
    }
    Ok(())
}
