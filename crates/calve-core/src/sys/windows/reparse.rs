//! Links: symbolic links, junctions, and other reparse points that stand for something elsewhere.
//!
//! Their contents are read and written as they are, so that nothing in them is resolved or rewritten.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{ERROR_PRIVILEGE_NOT_HELD, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{
    CreateSymbolicLinkW, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, MAXIMUM_REPARSE_DATA_BUFFER_SIZE,
    SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE, SYMBOLIC_LINK_FLAG_DIRECTORY,
};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{FSCTL_GET_REPARSE_POINT, FSCTL_SET_REPARSE_POINT};
use windows_sys::Win32::System::SystemServices::{IO_REPARSE_TAG_MOUNT_POINT, IO_REPARSE_TAG_SYMLINK};

use super::{done, is, wide};

/// The contents of a link, as the file system has them (`REPARSE_DATA_BUFFER`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link(Vec<u8>);

/// Tag, length, and a reserved number come before the data.
const HEADER_BYTES: usize = 8;

/// Reads what is in an open link.
pub(crate) fn read_link(file: &File) -> io::Result<Link> {
    let mut buffer = vec![0u8; MAXIMUM_REPARSE_DATA_BUFFER_SIZE as usize];
    let (start, room) = (buffer.as_mut_ptr().cast(), buffer.len() as u32);
    let mut length = 0;
    // SAFETY: the handle is open as long as `file` lives; nothing is read, and at most `room` bytes are written.
    done(unsafe {
        DeviceIoControl(file.as_raw_handle(), FSCTL_GET_REPARSE_POINT, null(), 0, start, room, &mut length, null_mut())
    })?;
    buffer.truncate(length as usize);
    Ok(Link(buffer))
}

/// Makes `path` such a link, a directory's or a file's. There must be nothing.
///
/// A symbolic link needs a privilege, or Developer Mode: ERROR_PRIVILEGE_NOT_HELD without.
pub(crate) fn write_link(path: &Path, link: &Link, is_directory: bool) -> io::Result<()> {
    if is_directory {
        std::fs::DirBuilder::new().create(path)?;
    }
    let flags = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;
    let written = OpenOptions::new()
        .access_mode(GENERIC_WRITE)
        .create_new(!is_directory)
        .write(true)
        .custom_flags(flags)
        .open(path)
        .and_then(|file| set(&file, link));
    let Err(error) = written else { return Ok(()) };
    let _ = if is_directory { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
    match link.target() {
        // Developer Mode permits this call, and no other.
        Some(target) if is(&error, ERROR_PRIVILEGE_NOT_HELD) && link.tag() == IO_REPARSE_TAG_SYMLINK => {
            create_link(path, Path::new(&target), is_directory)
        }
        _ => Err(error),
    }
}

fn set(file: &File, link: &Link) -> io::Result<()> {
    let mut none = 0;
    // SAFETY: the handle is open as long as `file` lives; as many bytes are read as the link has, and none are written.
    done(unsafe {
        DeviceIoControl(
            file.as_raw_handle(),
            FSCTL_SET_REPARSE_POINT,
            link.0.as_ptr().cast(),
            link.0.len() as u32,
            null_mut(),
            0,
            &mut none,
            null_mut(),
        )
    })
}

fn create_link(path: &Path, target: &Path, is_directory: bool) -> io::Result<()> {
    let kind = if is_directory { SYMBOLIC_LINK_FLAG_DIRECTORY } else { 0 };
    let (path, target) = (wide(path), wide(target));
    // SAFETY: two strings with a NUL at their end, which live until the call returns.
    let made = unsafe {
        CreateSymbolicLinkW(path.as_ptr(), target.as_ptr(), kind | SYMBOLIC_LINK_FLAG_ALLOW_UNPRIVILEGED_CREATE)
    };
    done(i32::from(made))
}

impl Link {
    fn tag(&self) -> u32 {
        self.0.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Returns the target of a symbolic link or junction, as its maker wrote it. `None` for other kinds.
    pub(crate) fn target(&self) -> Option<OsString> {
        // Each name has a position and a length, in bytes behind these four numbers; a symbolic link has flags before the names.
        let names = match self.tag() {
            IO_REPARSE_TAG_SYMLINK => HEADER_BYTES + 12,
            IO_REPARSE_TAG_MOUNT_POINT => HEADER_BYTES + 8,
            _ => return None,
        };
        let number = |at: usize| {
            let bytes = self.0.get(HEADER_BYTES + at..)?.first_chunk()?;
            Some(usize::from(u16::from_le_bytes(*bytes)))
        };
        let name = |at: usize| -> Option<Vec<u16>> {
            let start = names + number(at)?;
            let bytes = self.0.get(start..start + number(at + 2)?)?;
            Some(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
        };
        // The second is the one that people wrote, and may be left out.
        let shown = name(4).filter(|name| !name.is_empty());
        Some(OsString::from_wide(&shown.or_else(|| name(0))?))
    }

    /// Returns whether a volume is mounted here, which is a junction of its own kind.
    pub(crate) fn is_mounted_volume(&self) -> bool {
        const VOLUME: &[u8] = b"\\\0?\0?\0\\\0V\0o\0l\0u\0m\0e\0{\0";
        self.tag() == IO_REPARSE_TAG_MOUNT_POINT
            && self.0.get(HEADER_BYTES + 8..).is_some_and(|names| names.starts_with(VOLUME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(tag: u32, flags: &[u8], substitute: &str, print: &str) -> Link {
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let (first, second) = (wide(substitute), wide(print));
        let mut bytes = tag.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        for number in [0, first.len(), first.len(), second.len()] {
            bytes.extend((number as u16).to_le_bytes());
        }
        bytes.extend(flags);
        bytes.extend(first);
        bytes.extend(second);
        Link(bytes)
    }

    #[test]
    fn targets_are_read() {
        let symbolic = link(IO_REPARSE_TAG_SYMLINK, &[1, 0, 0, 0], r"..\a", r"..\a");
        assert_eq!(symbolic.target().unwrap(), r"..\a");
        let junction = link(IO_REPARSE_TAG_MOUNT_POINT, &[], r"\??\C:\a", "");
        assert_eq!(junction.target().unwrap(), r"\??\C:\a");
        assert!(!junction.is_mounted_volume() && !symbolic.is_mounted_volume());
        let volume = link(IO_REPARSE_TAG_MOUNT_POINT, &[], r"\??\Volume{3f}\", "");
        assert!(volume.is_mounted_volume());
        assert_eq!(link(0x8000_001b, &[], "x", "y").target(), None);
    }

    #[test]
    fn a_damaged_link_names_nothing() {
        let whole = link(IO_REPARSE_TAG_SYMLINK, &[0; 4], "abc", "abc");
        for length in 0..whole.0.len() {
            let target = Link(whole.0[..length].to_vec()).target();
            assert!(target.is_none_or(|target| target == "abc"), "{length}");
        }
    }
}
