//! Watching copies, where there are no overlays that make them.
#![allow(dead_code, reason = "only an overlay is watched")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Appearance, FileOpening, ProcessThread};
use rustix::io::Errno;

pub(crate) struct Appearances(OwnedFd);

impl Appearances {
    pub(crate) fn new() -> io::Result<Self> {
        Err(Errno::NOSYS.into())
    }

    pub(crate) fn add(&self, _directory: &Path) -> io::Result<i32> {
        Err(Errno::NOSYS.into())
    }

    pub(crate) fn read(&self) -> Vec<Appearance> {
        Vec::new()
    }
}

impl AsFd for Appearances {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) struct FileOpenings(OwnedFd);

impl FileOpenings {
    pub(crate) fn of(_path: &Path) -> io::Result<Self> {
        Err(Errno::NOSYS.into())
    }

    pub(crate) fn read(&self) -> Vec<FileOpening> {
        Vec::new()
    }
}

impl AsFd for FileOpenings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn stamp() -> SystemTime {
    SystemTime::now()
}

pub(crate) fn who(_thread: u32) -> Option<ProcessThread> {
    None
}

pub(crate) fn process(_process: u32) -> Option<ProcessThread> {
    None
}

pub(crate) fn memory_bytes(_process: u32) -> Option<u64> {
    None
}

pub(crate) fn tree(process: u32) -> Vec<u32> {
    vec![process]
}

pub(crate) fn descendants() -> Vec<u32> {
    Vec::new()
}

pub(crate) fn open_files(_process: u32, _wanted: &dyn Fn(&Path) -> bool) -> Vec<(PathBuf, i32)> {
    Vec::new()
}

pub(crate) fn open_flags(_process: u32, _paths: &[PathBuf]) -> Option<i32> {
    None
}

pub(crate) fn is_for_writing(_flags: i32) -> bool {
    false
}

pub(crate) fn flag_names(_flags: i32) -> String {
    String::new()
}
