//! The request for one filling: its two trees, its files and its options.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::contents::ContentsMethod;
use super::metadata::{Fault, FaultSide, MetadataKeeper, NewFileDefaults};
use crate::error::Error;
use crate::options::CloneOptions;
use crate::report::{Bytes, Entries};
use crate::tree::exclude::Exclusions;
use crate::tree::node::{Names, Node, full_path};
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Files<'a> {
    Clone(ContentsMethod),
    Hardlink,
    /// One call each, also for the `whole` directories (relative to the source, with their numbers of entries).
    Clonefile {
        whole: &'a HashMap<PathBuf, u64>,
    },
}

pub(crate) struct Fill<'a> {
    pub(crate) src_root: BorrowedFd<'a>,
    pub(crate) dst_root: BorrowedFd<'a>,
    pub(crate) src_path: &'a Path,
    pub(crate) dst_path: &'a Path,
    /// Only this entry is made, which is not a directory. The two paths are of it, not of the roots.
    pub(crate) single: Option<(&'a CStr, FileType)>,
    pub(crate) files: Files<'a>,
    /// The caller insists on shared extents: a file that cannot be shared ends the run.
    pub(crate) strict: bool,
    pub(crate) exclude: &'a Exclusions,
    /// The source is an overlay's upper directory.
    pub(crate) is_upper: bool,
    pub(crate) created: NewFileDefaults,
    /// The destination knows files without copy-on-write (btrfs).
    pub(crate) keeps_nocow: bool,
    pub(crate) threads: usize,
    pub(crate) notes: &'a Notes,
    pub(crate) options: &'a CloneOptions,
}

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FillTally {
    pub(crate) entries: Entries,
    pub(crate) bytes: Bytes,
    pub(crate) inlined_bytes: u64,
}

/// Some entries of one directory. Its copy exists and is as if just made, but for its contents.
pub(crate) struct FillPart {
    pub(crate) node: Arc<Node>,
    pub(crate) stat: Stat,
    pub(crate) names: Names,
}

impl<'a> Fill<'a> {
    pub(crate) fn new(
        (src_root, src_path): (BorrowedFd<'a>, &'a Path),
        (dst_root, dst_path): (BorrowedFd<'a>, &'a Path),
        contents: ContentsMethod,
        exclude: &'a Exclusions,
        created: NewFileDefaults,
        (notes, options): (&'a Notes, &'a CloneOptions),
    ) -> Self {
        Self {
            src_root,
            dst_root,
            src_path,
            dst_path,
            single: None,
            files: Files::Clone(contents),
            strict: false,
            exclude,
            is_upper: false,
            created,
            keeps_nocow: false,
            threads: thread_count(options.threads),
            notes,
            options,
        }
    }

    /// Returns whether others may write to a set's files while the copy must be consistent.
    pub(super) fn are_sets_watched(&self) -> bool {
        let is_same_inode = matches!(self.files, Files::Hardlink);
        let options = &self.options.internal;
        !is_same_inode && !self.is_upper && options.frozen.is_none() && options.plain.is_none()
    }

    pub(super) fn keeper(&self) -> MetadataKeeper<'a> {
        let mut keeper = MetadataKeeper::new(self.created, self.options.internal.plain.as_ref(), self.notes);
        keeper.of_upper = self.is_upper;
        keeper
    }

    pub(super) fn error(&self, path: &Path, fault: Fault) -> Error {
        match (fault.errno, fault.side) {
            (Errno::CANCELED, _) => Error::Interrupted,
            (errno, FaultSide::Src) => Error::io(fault.operation, self.shown(self.src_path, path), errno),
            (errno, FaultSide::Dst) => Error::io(fault.operation, self.shown(self.dst_path, path), errno),
        }
    }

    pub(super) fn shown(&self, root: &Path, path: &Path) -> PathBuf {
        full_path(root, if self.single.is_some() { Path::new("") } else { path })
    }
}

impl FillTally {
    pub(super) fn plus(mut self, other: Self) -> Self {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.inlined_bytes += other.inlined_bytes;
        self
    }
}
