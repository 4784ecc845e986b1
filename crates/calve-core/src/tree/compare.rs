//! Comparison of a clone with its source before publishing ([`CloneVerification::Contents`](crate::CloneVerification)).

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use super::exclude::Exclusions;
use super::fill::contents::open_contents;
use super::held_times::{HeldTimes, modified};
use super::location::{Identity, identity};
use super::node::Node;
use super::pool::{Pool, thread_count};
use crate::error::{Error, IoContext};
use crate::options::{CloneOptions, Mounts};
use crate::sys::{self, Listing, ListingBuffer, XattrTarget};
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;

pub(crate) struct Comparison<'a> {
    pub(crate) src: BorrowedFd<'a>,
    pub(crate) dst: BorrowedFd<'a>,
    pub(crate) src_path: &'a Path,
    /// Entries left out of the clone. The receipt's list may have been cut.
    pub(crate) exclude: &'a Exclusions,
    pub(crate) options: &'a CloneOptions,
    /// False if device nodes were left out for want of privilege.
    pub(crate) devices: bool,
    /// False if the receipt says that owners could not be kept.
    pub(crate) owners: bool,
    /// False if the receipt says that extended attributes could not be kept.
    pub(crate) xattrs: bool,
    /// False if the receipt says that hard links could not be kept, or if all files are hard links to the source.
    pub(crate) links: bool,
    /// False if set-user-ID and set-group-ID bits could not be kept.
    pub(crate) set_ids: bool,
    pub(crate) times: HeldTimes,
}

/// Compares everything below the two roots, whose own metadata is set when the clone is published.
pub(crate) fn compare(comparison: &Comparison<'_>) -> Result<(), Error> {
    let root = rustix::fs::fstat(comparison.src).io(Operation::Stat, comparison.src_path)?;
    let pool = Pool::new(thread_count(comparison.options.threads), comparison.options.cancel.clone());
    let (differences, twins) = (Mutex::default(), Mutex::default());
    pool.run(Node::root(), |pool| {
        let root = identity(&root).0;
        let worker = CompareWorker { comparison, pool, root, differences: &differences, twins: &twins };
        while let Some(node) = pool.next() {
            if let Err(error) = worker.directory(&node) {
                pool.fail(error);
            }
        }
    })?;
    verdict(comparison, differences)
}

pub(crate) fn compare_entry(comparison: &Comparison<'_>, name: &CStr) -> Result<(), Error> {
    let pool = Pool::new(1, comparison.options.cancel.clone());
    let (differences, twins) = (Mutex::default(), Mutex::default());
    let worker = CompareWorker { comparison, pool: &pool, root: 0, differences: &differences, twins: &twins };
    worker.entry(&Node::root(), comparison.src, comparison.dst, name)?;
    verdict(comparison, differences)
}

#[derive(Default)]
struct TreeDifferences {
    count: usize,
    first: Option<(PathBuf, &'static str)>,
}

fn verdict(comparison: &Comparison<'_>, differences: Mutex<TreeDifferences>) -> Result<(), Error> {
    let TreeDifferences { count, first } = differences.into_inner().unwrap_or_else(PoisonError::into_inner);
    match first {
        None => Ok(()),
        Some((path, what)) => Err(Error::VerifyFailed {
            path: comparison.src_path.to_path_buf(),
            count,
            first: format!("`{}`: {what}", crate::error::ShownPath(path)),
        }),
    }
}

struct CompareWorker<'a> {
    comparison: &'a Comparison<'a>,
    pool: &'a Pool<Arc<Node>>,
    root: u64,
    differences: &'a Mutex<TreeDifferences>,
    /// The clone's inode for each inode of the source that has several names.
    twins: &'a Mutex<HashMap<Identity, Identity>>,
}

impl CompareWorker<'_> {
    fn directory(&self, node: &Arc<Node>) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::Compare, self.comparison.src_path.join(node.path()), errno);
        let src = node.open_source(self.comparison.src).map_err(failed)?;
        let dst = node.open(self.comparison.dst, OFlags::RDONLY).map_err(failed)?;
        let mut names = names(src.as_fd()).map_err(failed)?;
        let mut buffer = ListingBuffer::new();
        let mut listing = Listing::new(dst.as_fd(), &mut buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let name = entry.map_err(failed)?.name;
            if self.pool.stopped() {
                return Ok(());
            }
            if is_calves_own(name.to_bytes()) {
                continue;
            }
            if names.remove(name).is_none() {
                self.differs(node, name, "only in the clone");
            } else if self.entry(node, src.as_fd(), dst.as_fd(), name)? {
                self.pool.give(Node::child(node, name));
            }
        }
        for (name, kind) in names {
            if !self.is_left_out(node, &name, kind) {
                self.differs(node, &name, "not in the clone");
            }
        }
        Ok(())
    }

    fn is_left_out(&self, node: &Arc<Node>, name: &CStr, kind: FileType) -> bool {
        let comparison = self.comparison;
        match kind {
            FileType::Socket => return true,
            FileType::CharacterDevice | FileType::BlockDevice if !comparison.devices => return true,
            _ => {}
        }
        let exclude = comparison.exclude;
        !exclude.is_empty() && exclude.matches(&node.path_of(name), kind == FileType::Directory)
    }

    /// Compares an entry. Returns whether it is a directory whose entries are to be compared.
    fn entry(&self, node: &Arc<Node>, src: BorrowedFd<'_>, dst: BorrowedFd<'_>, name: &CStr) -> Result<bool, Error> {
        let failed = |errno| Error::io(Operation::Compare, self.comparison.src_path.join(node.path_of(name)), errno);
        let a = sys::stat_at(src, name).map_err(failed)?;
        let b = sys::stat_at(dst, name).map_err(failed)?;
        if let Some(what) = self.stat_difference(&a, &b) {
            self.differs(node, name, what);
            return Ok(sys::is_directory(a) && sys::is_directory(b) && !self.stays_out(&a));
        }
        if self.comparison.links && !self.linked_alike(&a, &b) {
            self.differs(node, name, "hard links differ");
        }
        if self.comparison.xattrs && !same_xattrs(src, dst, name).map_err(failed)? {
            self.differs(node, name, "extended attributes differ");
        }
        let same = same_data(src, dst, name, (&a, &b), || self.pool.stopped());
        if same == Err(Errno::CANCELED) {
            return Err(Error::Interrupted);
        }
        if !same.map_err(failed)? {
            self.differs(node, name, "contents differ");
        }
        Ok(sys::is_directory(a) && !self.stays_out(&a))
    }

    /// Returns whether a directory is a mount point that [`Mounts::Stay`] leaves empty.
    fn stays_out(&self, directory: &Stat) -> bool {
        self.comparison.options.mounts == Mounts::Stay && identity(directory).0 != self.root
    }

    /// Returns whether names of one inode in the source are names of one inode in the clone.
    fn linked_alike(&self, a: &Stat, b: &Stat) -> bool {
        if a.st_nlink < 2 || sys::is_directory(a) {
            return true;
        }
        let mut twins = self.twins.lock().unwrap_or_else(PoisonError::into_inner);
        *twins.entry(identity(a)).or_insert_with(|| identity(b)) == identity(b)
    }

    fn stat_difference(&self, a: &Stat, b: &Stat) -> Option<&'static str> {
        let kind = sys::kind(a);
        let set_id = if self.comparison.set_ids { 0 } else { 0o6000 };
        if kind != sys::kind(b) {
            return Some("another kind of file");
        }
        if kind == FileType::RegularFile && a.st_size != b.st_size {
            return Some("size differs");
        }
        if kind != FileType::Symlink && (a.st_mode & 0o7777) & !set_id != (b.st_mode & 0o7777) & !set_id {
            return Some("mode differs");
        }
        if self.comparison.owners && (a.st_uid, a.st_gid) != (b.st_uid, b.st_gid) {
            return Some("owner differs");
        }
        if self.comparison.times.held(a) != modified(b) {
            return Some("modification time differs");
        }
        None
    }

    fn differs(&self, node: &Arc<Node>, name: &CStr, what: &'static str) {
        let mut differences = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        differences.count += 1;
        let path = node.path_of(name);
        if differences.first.as_ref().is_none_or(|(first, _)| path < *first) {
            differences.first = Some((path, what));
        }
    }
}

/// Returns the names in a directory, without Calve's own.
pub(crate) fn names(directory: BorrowedFd<'_>) -> sys::Result<HashMap<CString, FileType>> {
    let theirs = sys::list(directory)?.into_iter().filter(|(name, _)| !is_calves_own(name.to_bytes()));
    theirs.map(|(name, kind)| sys::kind_of(directory, &name, kind).map(|kind| (name, kind))).collect()
}

/// Returns whether two entries of one kind have the same bytes, link target or device number.
pub(crate) fn same_data(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    name: &CStr,
    (a, b): (&Stat, &Stat),
    stopped: impl Fn() -> bool,
) -> sys::Result<bool> {
    match sys::kind(a) {
        FileType::RegularFile => same_contents(src, dst, name, stopped),
        FileType::Symlink => rustix::fs::readlinkat(src, name, Vec::new())
            .and_then(|target| Ok(target == rustix::fs::readlinkat(dst, name, Vec::new())?)),
        FileType::CharacterDevice | FileType::BlockDevice => Ok(a.st_rdev == b.st_rdev),
        _ => Ok(true),
    }
}

fn same_contents(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    name: &CStr,
    stopped: impl Fn() -> bool,
) -> sys::Result<bool> {
    let a = open_contents(src, name, stopped)?;
    let b = crate::sys::open_at(dst, name, sys::FILE)?;
    let (mut left, mut right) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let length = sys::read_full(&mut left, |rest, _| rustix::io::read(&a, rest))?;
        let other = sys::read_full(&mut right, |rest, _| rustix::io::read(&b, rest))?;
        if other != length || left[..length] != right[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

pub(crate) fn same_xattrs(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, name: &CStr) -> sys::Result<bool> {
    let read = |directory| sys::xattrs(XattrTarget::Named(directory, name), |name| !sys::is_of_the_system(name));
    Ok(read(src)? == read(dst)?)
}
