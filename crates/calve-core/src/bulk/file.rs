//! Writes one file.

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

/// Between pieces, the writing may be cancelled.
const PIECE_BYTES: usize = 8 << 20;

#[derive(Clone, Copy)]
pub(super) struct FileToWrite<'a> {
    pub(super) directory: BorrowedFd<'a>,
    pub(super) item: &'a Item<'a>,
    pub(super) options: &'a WriteOptions,
    /// Returns the path of a name in the directory, for errors.
    pub(super) path: &'a dyn Fn(&[u8]) -> PathBuf,
}

impl FileToWrite<'_> {
    pub(super) fn write(self, expect_existing: &mut bool) -> Result<(), Error> {
        match self.options.placement {
            Placement::InPlace => {
                let (file, is_new) = self.make(expect_existing)?;
                self.fill(file).inspect_err(|_| self.take_back(is_new))
            }
            Placement::Rename => self.by_rename(),
        }
    }

    fn failed<E: Into<std::io::Error>>(self, operation: Operation) -> impl FnOnce(E) -> Error {
        move |error| Error::io(operation, (self.path)(self.item.name), error)
    }

    /// Returns the opened or created file, empty, and whether it is new.
    fn make(self, expect_existing: &mut bool) -> Result<(OwnedFd, bool), Error> {
        // Another program may create or remove it in between, but not for ever.
        for _ in 0..8 {
            if !(*expect_existing && self.options.existing == ExistingFile::Overwrite) {
                match create(self.directory, self.item.name, self.options.mode) {
                    Ok(file) => return Ok((file, true)),
                    Err(Errno::EXIST) if self.options.existing == ExistingFile::Overwrite => *expect_existing = true,
                    Err(errno) => return Err(self.failed(Operation::CreateFile)(errno)),
                }
            }
            match self.existing()? {
                Some(file) => return Ok((file, false)),
                None => *expect_existing = false,
            }
        }
        Err(self.failed(Operation::CreateFile)(Errno::EXIST))
    }

    /// Opens an existing file and empties it. Does not wait for a FIFO's reader.
    fn existing(self) -> Result<Option<OwnedFd>, Error> {
        let not_a_file =
            |kind| Err(Error::NotAFile { operation: Operation::Write, path: (self.path)(self.item.name), kind });
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match sys::open_at(self.directory, self.item.name, flags) {
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return not_a_file("symlink, which is not followed"),
            Err(Errno::NXIO) => return not_a_file("FIFO or socket"),
            other => other.map_err(self.failed(Operation::OpenToWrite))?,
        };
        let stat = rustix::fs::fstat(&file).map_err(self.failed(Operation::Stat))?;
        if sys::kind(stat) != FileType::RegularFile {
            return not_a_file("FIFO or device");
        }
        if stat.st_size > 0 {
            rustix::fs::ftruncate(&file, 0).map_err(self.failed(Operation::EmptyFile))?;
        }
        Ok(Some(file))
    }

    /// Removes a new file whose contents could not be written: half a file is worse than none.
    fn take_back(self, is_new: bool) {
        if is_new {
            let _ = rustix::fs::unlinkat(self.directory, self.item.name, AtFlags::empty());
        }
    }

    fn by_rename(self) -> Result<(), Error> {
        let Self { directory, item, options, .. } = self;
        let hidden = format!(".calve-write-{:016x}", sys::random());
        let hidden = hidden.as_bytes();
        let replaced = match options.existing {
            ExistingFile::Overwrite => ReplacedFile::find(directory, OsStr::from_bytes(item.name)),
            ExistingFile::Refuse => Ok(None),
        };
        let replaced = replaced.map_err(self.failed(Operation::Stat))?;
        let mode = if replaced.is_some() { ReplacedFile::NEW_MODE } else { options.mode };
        let file = create(directory, hidden, mode).map_err(self.failed(Operation::CreateFile))?;
        let kept = replaced.map_or(Ok(()), |old| old.keep_in(file.as_fd()).map(drop));
        let kept = kept.map_err(self.failed(Operation::SetFileMode));
        let written = kept.and_then(|()| self.fill(file)).and_then(|()| {
            let published = match options.existing {
                ExistingFile::Overwrite => rustix::fs::renameat(directory, hidden, directory, item.name),
                // A link refuses an existing name on every file system, which a rename with flags does not.
                ExistingFile::Refuse => rustix::fs::linkat(directory, hidden, directory, item.name, AtFlags::empty())
                    .and_then(|()| rustix::fs::unlinkat(directory, hidden, AtFlags::empty())),
            };
            published.map_err(self.failed(Operation::CreateFile))
        });
        written.inspect_err(|_| {
            let _ = rustix::fs::unlinkat(directory, hidden, AtFlags::empty());
        })
    }

    fn fill(self, file: OwnedFd) -> Result<(), Error> {
        let mut left = self.item.contents;
        while !left.is_empty() {
            let piece = left.get(..PIECE_BYTES).unwrap_or(left);
            let written = sys::retry(|| rustix::io::write(&file, piece)).map_err(self.failed(Operation::WriteFile))?;
            if written == 0 {
                return Err(self.failed(Operation::WriteFile)(Errno::IO));
            }
            left = left.get(written..).unwrap_or_default();
            if !left.is_empty() && self.options.cancel.is_cancelled() {
                return Err(Error::Interrupted);
            }
        }
        if self.options.flush == Flush::EachFile {
            sys::sync_file(file.as_fd()).map_err(self.failed(Operation::SyncFile))?;
        }
        Ok(())
    }
}

fn create(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> sys::Result<OwnedFd> {
    sys::create_at(directory, name, OFlags::WRONLY, Mode::from_raw_mode(mode as _))
}
