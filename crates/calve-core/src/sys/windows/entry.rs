//! One entry of a directory, opened as itself: a link is not followed.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_NORMAL,
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_OPEN_REPARSE_POINT, FILE_ID_INFO, FILE_INFO_BY_HANDLE_CLASS, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_WRITE_ATTRIBUTES, FileAttributeTagInfo, FileBasicInfo,
    FileIdInfo, GetFileInformationByHandle, GetFileInformationByHandleEx, SetFileInformationByHandle,
};

use super::done;

/// The kind of an entry, and its metadata.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Info {
    pub(crate) attributes: u32,
    /// The kind of reparse point; 0 when it is none.
    pub(crate) tag: u32,
    pub(crate) identity: Identity,
    pub(crate) links: u32,
    pub(crate) size: u64,
    pub(crate) times: Times,
    /// When anything about it changed last, attributes included.
    pub(crate) changed: i64,
}

/// Volume and file: the same for all names of one file, and for nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) volume: u64,
    pub(crate) file: u128,
}

/// In units of 100 ns, as the system keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) created: i64,
    pub(crate) accessed: i64,
    pub(crate) written: i64,
}

impl Info {
    /// Returns whether this is a directory, or a link to a directory, which is made as one.
    pub(crate) fn is_directory(&self) -> bool {
        self.attributes & FILE_ATTRIBUTE_DIRECTORY != 0
    }

    /// Returns whether this is a link, or another entry that stands for something elsewhere; never gone into.
    pub(crate) fn is_link(&self) -> bool {
        /// The bit of a tag that says so ("name surrogate").
        const SURROGATE: u32 = 0x2000_0000;
        self.tag & SURROGATE != 0
    }

    /// Returns whether two looks saw the same contents and metadata.
    pub(crate) fn is_same_version(&self, other: &Self) -> bool {
        (self.size, self.times.written, self.changed) == (other.size, other.times.written, other.changed)
    }
}

/// Opens the entry at `path` itself, whatever it is. Others may do with it what they like meanwhile.
pub(crate) fn open(path: &Path, access: u32) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(access)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)
}

/// Opens a directory so that it can be neither renamed nor deleted while the handle is open. `None` when it is a link: whatever is
/// done by a path below it is then done there and nowhere else.
pub(crate) fn pin(path: &Path) -> io::Result<Option<File>> {
    let directory = OpenOptions::new()
        .access_mode(FILE_LIST_DIRECTORY | FILE_READ_ATTRIBUTES)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)?;
    let info = info(&directory)?;
    Ok((info.is_directory() && !info.is_link()).then_some(directory))
}

/// Returns the kind of the entry at `path`, as [`info`] does.
pub(crate) fn look(path: &Path) -> io::Result<Info> {
    info(&open(path, FILE_READ_ATTRIBUTES)?)
}

/// Returns the kind of an open entry.
pub(crate) fn info(file: &File) -> io::Result<Info> {
    let basic: FILE_BASIC_INFO = by_handle(file, FileBasicInfo)?;
    let mut general = MaybeUninit::<BY_HANDLE_FILE_INFORMATION>::uninit();
    // SAFETY: the handle is open as long as `file` lives, and the structure has room for what is written.
    done(unsafe { GetFileInformationByHandle(file.as_raw_handle(), general.as_mut_ptr()) })?;
    // SAFETY: the call has succeeded, so it has filled the structure.
    let general = unsafe { general.assume_init() };
    let tag = if basic.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        by_handle::<FILE_ATTRIBUTE_TAG_INFO>(file, FileAttributeTagInfo)?.ReparseTag
    } else {
        0
    };
    Ok(Info {
        attributes: basic.FileAttributes,
        tag,
        identity: identity(file, &general),
        links: general.nNumberOfLinks,
        size: joined(general.nFileSizeHigh, general.nFileSizeLow),
        times: Times { created: basic.CreationTime, accessed: basic.LastAccessTime, written: basic.LastWriteTime },
        changed: basic.ChangeTime,
    })
}

/// Returns the identity of an open file. ReFS has numbers of 128 bits, of which the older call tells 64: two files may then look like one.
fn identity(file: &File, general: &BY_HANDLE_FILE_INFORMATION) -> Identity {
    match by_handle::<FILE_ID_INFO>(file, FileIdInfo) {
        Ok(id) => Identity { volume: id.VolumeSerialNumber, file: u128::from_le_bytes(id.FileId.Identifier) },
        // FAT, and servers that do not know the question. They have no longer ones.
        Err(_) => Identity {
            volume: u64::from(general.dwVolumeSerialNumber),
            file: u128::from(joined(general.nFileIndexHigh, general.nFileIndexLow)),
        },
    }
}

fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Asks for one kind of facts about an open file. `T` must be the structure that `class` names, which consists of integers.
fn by_handle<T: Copy>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut structure = MaybeUninit::<T>::zeroed();
    let length = size_of::<T>() as u32;
    // SAFETY: the handle is open as long as `file` lives, and no more than `length` bytes are written to the structure.
    done(unsafe { GetFileInformationByHandleEx(file.as_raw_handle(), class, structure.as_mut_ptr().cast(), length) })?;
    // SAFETY: integers, all zero or filled by the call.
    Ok(unsafe { structure.assume_init() })
}

/// Sets times and attributes.
pub(crate) fn set_basic(file: &File, times: Times, attributes: u32) -> io::Result<()> {
    let basic = FILE_BASIC_INFO {
        CreationTime: times.created,
        LastAccessTime: times.accessed,
        LastWriteTime: times.written,
        // Zero: left as it is.
        ChangeTime: 0,
        FileAttributes: if attributes == 0 { FILE_ATTRIBUTE_NORMAL } else { attributes },
    };
    let length = size_of::<FILE_BASIC_INFO>() as u32;
    // SAFETY: the handle is open as long as `file` lives, and the structure is as long as is said.
    done(unsafe { SetFileInformationByHandle(file.as_raw_handle(), FileBasicInfo, (&raw const basic).cast(), length) })
}

/// Sets the attributes of what is at `path`, and leaves its times.
pub(crate) fn set_attributes(path: &Path, attributes: u32) -> io::Result<()> {
    // Zero: left as it is.
    let times = Times { created: 0, accessed: 0, written: 0 };
    set_basic(&open(path, FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)?, times, attributes)
}

/// Keeps a directory of Calve's own out of what people see. Nothing depends on it.
pub(crate) fn hide(directory: &Path) {
    let _ = set_attributes(directory, FILE_ATTRIBUTE_HIDDEN);
}
