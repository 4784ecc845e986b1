//! Extended attributes of open and of named entries, with the access control list as one of them.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, XattrFlags};
use rustix::io::{Errno, Result};

use super::kernel;
use crate::sys::{XattrTarget, grown};

/// The kernel's own name for the access control list, which programs can neither list nor read nor write.
const ACL: &CStr = c"com.apple.system.Security";

/// Errors of an entry that cannot have attributes, because of its file system or (EPERM) its kind.
const NO_ATTRIBUTES: [Errno; 4] = [Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM];

/// Most reads of a value that keeps changing.
const MOST_READS: usize = 64;

/// A resource fork can be as long as a file, and moves in pieces (getxattr(2), setxattr(2), `position`).
const PIECE_BYTES: usize = 1 << 20;

fn read_fork(file: BorrowedFd<'_>, value: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < value.len() {
        let end = value.len().min(filled + PIECE_BYTES);
        match kernel::read_fork(file, filled, &mut value[filled..end])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

fn write_fork(file: BorrowedFd<'_>, value: &[u8]) -> Result<()> {
    let mut pieces = value.chunks(PIECE_BYTES).enumerate();
    pieces.try_for_each(|(number, piece)| kernel::write_fork(file, number * PIECE_BYTES, piece))
}

pub(crate) fn list_xattrs<'b>(target: XattrTarget<'_>, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let mut own = None;
    let Some(fd) = target.open(&mut own)? else {
        buffer.clear();
        return Ok(buffer);
    };
    let length = match grown(buffer, 256, |buffer| kernel::flistxattr(fd, buffer)) {
        Err(error) if NO_ATTRIBUTES.contains(&error) => 0,
        listed => listed?,
    };
    buffer.truncate(length);
    // Last: it may deny its owner the steps before.
    if kernel::read_acl(fd)?.is_some() {
        buffer.extend_from_slice(ACL.to_bytes_with_nul());
    }
    Ok(buffer)
}

impl<'a> XattrTarget<'a> {
    pub(crate) fn read(self, name: &CStr, buffer: &mut Vec<u8>) -> Result<usize> {
        let mut own = None;
        let Some(fd) = self.open(&mut own)? else { return Err(kernel::NO_ATTRIBUTE) };
        if name == ACL {
            let value = kernel::read_acl(fd)?.ok_or(kernel::NO_ATTRIBUTE)?;
            buffer.clear();
            buffer.extend_from_slice(&value);
            return Ok(value.len());
        }
        // A short buffer may be filled without an error. So it gets a byte more than the value, until lengths agree.
        for _ in 0..MOST_READS {
            let length = kernel::fgetxattr(fd, name, &mut [0; 0][..])?;
            if buffer.len() <= length {
                buffer.resize(length + 1, 0);
            }
            let read = match name == kernel::FORK {
                true => read_fork(fd, &mut buffer[..length]),
                false => kernel::fgetxattr(fd, name, &mut buffer[..]),
            };
            match read {
                Err(Errno::RANGE) => {}
                Ok(read) if read != length => {}
                other => return other,
            }
        }
        Err(Errno::IO)
    }

    pub(crate) fn write(self, name: &CStr, value: &[u8]) -> Result<()> {
        let mut own = None;
        let Some(fd) = self.open(&mut own)? else { return Err(Errno::NOTSUP) };
        if name == ACL {
            return kernel::write_acl(fd, value);
        }
        if name == kernel::FORK {
            return write_fork(fd, value);
        }
        kernel::fsetxattr(fd, name, value, XattrFlags::empty())
    }

    /// Opens a named entry into `own`. `None` for FIFOs, sockets and devices, which have no attributes and stay closed.
    fn open<'o>(self, own: &'o mut Option<OwnedFd>) -> Result<Option<BorrowedFd<'o>>>
    where
        'a: 'o,
    {
        let (directory, name) = match self {
            Self::Open(fd) => return Ok(Some(fd)),
            Self::Named(directory, name) => (directory, name),
        };
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Directory | FileType::Symlink) {
            return Ok(None);
        }
        // NONBLOCK: if it has become a FIFO, opening must not wait for a writer.
        let flags = OFlags::RDONLY | kernel::SYMLINK | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened: &OwnedFd = own.insert(rustix::fs::openat(directory, name, flags, Mode::empty())?);
        Ok(Some(opened.as_fd()))
    }
}
