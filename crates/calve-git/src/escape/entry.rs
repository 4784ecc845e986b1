use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::{EntryKind, Folder};
use rustix::fs::{AtFlags, Dir, FileType};

use crate::directory::read;
use crate::paths::path_of;

/// A larger file is no script and no list.
pub(super) const TEXT_BYTES: u64 = 4 * 1024 * 1024;

pub(super) struct EntryName<'a> {
    pub(super) folder: &'a Path,
    /// Empty for the root.
    pub(super) folder_name: &'a [u8],
    name: &'a CStr,
    kind: EntryKind,
}

pub(super) struct WalkEntry<'a> {
    named: EntryName<'a>,
    pub(super) directory: BorrowedFd<'a>,
}

impl<'a> EntryName<'a> {
    pub(super) fn new(folder: &'a Path, name: &'a CStr, kind: EntryKind) -> Self {
        // Runs more than once for every entry, and `file_name` would parse the path.
        let path = folder.as_os_str().as_bytes();
        let folder_name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
        Self { folder, folder_name, name, kind }
    }

    pub(super) fn name(&self) -> &'a [u8] {
        self.name.to_bytes()
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind == EntryKind::Directory
    }

    pub(super) fn is_link(&self) -> bool {
        self.kind == EntryKind::Symlink
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(OsStr::from_bytes(self.name()))
    }
}

impl<'a> std::ops::Deref for WalkEntry<'a> {
    type Target = EntryName<'a>;

    fn deref(&self) -> &EntryName<'a> {
        &self.named
    }
}

impl<'a> WalkEntry<'a> {
    pub(super) fn new(folder: &'a Folder<'a>, name: &'a CStr, kind: EntryKind) -> Self {
        let named = EntryName::new(folder.path, name, kind);
        Self { named, directory: folder.directory }
    }

    pub(super) fn link(&self) -> Option<PathBuf> {
        let target = rustix::fs::readlinkat(self.directory, self.named.name, Vec::new()).ok()?;
        Some(path_of(target.to_bytes()))
    }

    pub(super) fn text(&self) -> Option<Vec<u8>> {
        read(self.directory, self.named.name, TEXT_BYTES)
    }
}

pub(super) fn names_of(directory: impl AsFd, wanted: FileType) -> impl Iterator<Item = Vec<u8>> {
    names(directory).into_iter().filter(move |(_, kind)| *kind == wanted).map(|(name, _)| name)
}

/// Lists the names in an open directory, with their types; none if it cannot be read.
pub(super) fn names(directory: impl AsFd) -> Vec<(Vec<u8>, FileType)> {
    let Ok(entries) = Dir::read_from(directory.as_fd()) else { return Vec::new() };
    let entries = entries.flatten().filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".."));
    let names = entries.map(|entry| {
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(directory.as_fd(), entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        (entry.file_name().to_bytes().to_vec(), kind)
    });
    names.collect()
}
