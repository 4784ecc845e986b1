//! The regular files below several paths, in little memory: about 80 bytes each with a short name.

use std::collections::VecDeque;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat};

use super::report::LeftFiles;
use crate::space::volumes::Volume;
use crate::space::walk::{SpaceVisitor, full_path};
use crate::sys;
use crate::tree::node::{Node, open_source};
use crate::tree::pool::open_directories_per_worker;
use crate::tree::source::Source;
use crate::tree::walk::Folder;
use crate::vocabulary::reason::LeftReason;

#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) inode: u64,
    pub(super) size: u64,
    /// From the modification and change times.
    pub(super) stamp: u64,
    /// From the path below the root: equal for the same path in two trees.
    pub(super) path_hash: u64,
    /// In the order of a worker's walk.
    pub(super) directory: u32,
    name: u32,
    part: u16,
    pub(super) root: u16,
    pub(super) device: u16,
    pub(super) file_system: u16,
    /// The kernel lets this user change its extents, whatever its mode.
    pub(super) is_own: bool,
}

pub(super) struct Directory {
    root: u16,
    node: Arc<Node>,
}

#[derive(Default)]
pub(super) struct Catalog {
    pub(super) items: Vec<Item>,
    directories: Vec<Directory>,
    names: Vec<Vec<u8>>,
}

#[derive(Default)]
pub(super) struct Collector {
    /// Their `directory` counts within this collector.
    items: Vec<Item>,
    directories: Vec<Directory>,
    names: Vec<u8>,
    directory_hash: u64,
    /// Regular files seen, of any size.
    pub(super) files: u64,
    /// The number of files on file systems that cannot dedupe; the first one's root, and its path below that.
    pub(super) elsewhere: Option<(u64, usize, PathBuf)>,
}

impl Collector {
    fn enter(&mut self, folder: &Folder<'_>) {
        self.directories.push(Directory { root: folder.tree as u16, node: Arc::clone(folder.node) });
        self.directory_hash = hash(0, folder.path.as_os_str().as_bytes());
    }
}

impl SpaceVisitor for Collector {
    fn directory(&mut self, folder: &Folder<'_>, _volume: &Arc<Volume>, _stat: &Stat) {
        self.enter(folder);
    }

    fn entry(&mut self, folder: &Folder<'_>, volume: &Arc<Volume>, name: &CStr, stat: &Stat) {
        if sys::kind(stat) != FileType::RegularFile {
            return;
        }
        self.files += 1;
        let size = sys::size(stat);
        if size == 0 || sys::allocated(stat) == 0 {
            return;
        }
        if !can_share(volume) {
            let first = || (0, folder.tree, folder.path.join(sys::path(name)));
            self.elsewhere.get_or_insert_with(first).0 += 1;
            return;
        }
        if self.directories.is_empty() {
            // The root itself is a file.
            self.enter(folder);
        }
        let user = rustix::process::geteuid();
        self.items.push(Item {
            inode: stat.st_ino,
            size,
            stamp: stamp(stat),
            path_hash: hash(self.directory_hash, name.to_bytes()),
            directory: self.directories.len() as u32 - 1,
            name: self.names.len() as u32,
            part: 0,
            root: folder.tree as u16,
            device: volume.device as u16,
            file_system: volume.file_system as u16,
            is_own: user.is_root() || user.as_raw() == stat.st_uid,
        });
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }
}

pub(super) fn left_elsewhere(collectors: &[Collector], roots: &[Source]) -> Option<LeftFiles> {
    let found: Vec<_> = collectors.iter().filter_map(|collector| collector.elsewhere.as_ref()).collect();
    let first_path = found.iter().map(|(_, root, below)| full_path(&roots[*root], below)).min()?;
    let files = found.iter().map(|(files, ..)| files).sum();
    Some(LeftFiles { reason: LeftReason::FileSystem, files, first_path })
}

pub(super) fn can_share(volume: &Volume) -> bool {
    volume.most_bytes_per_dedupe.is_some()
}

impl Catalog {
    pub(super) fn new(collectors: Vec<Collector>) -> Self {
        let mut catalog = Self::default();
        catalog.items.reserve_exact(collectors.iter().map(|collector| collector.items.len()).sum());
        for (part, collector) in collectors.into_iter().enumerate() {
            let (part, first) = (part as u16, catalog.directories.len() as u32);
            let item = |item: &Item| Item { part, directory: first + item.directory, ..*item };
            catalog.items.extend(collector.items.iter().map(item));
            catalog.directories.extend(collector.directories);
            catalog.names.push(collector.names);
        }
        catalog
    }

    pub(super) fn name(&self, item: &Item) -> &CStr {
        let names = self.names.get(usize::from(item.part)).and_then(|names| names.get(item.name as usize..));
        CStr::from_bytes_until_nul(names.unwrap_or_default()).unwrap_or_default()
    }

    pub(super) fn path(&self, item: &Item, roots: &[Source]) -> PathBuf {
        let directory = &self.directories[item.directory as usize];
        let mut below = directory.node.path();
        below.push(Path::new(OsStr::from_bytes(self.name(item).to_bytes())));
        full_path(&roots[usize::from(directory.root)], &below)
    }
}

/// Opens a catalog's files, and keeps some directories open. One per thread.
pub(super) struct Opener<'a> {
    catalog: &'a Catalog,
    roots: &'a [Source],
    kept: VecDeque<(u32, OwnedFd)>,
    most_kept: usize,
}

impl<'a> Opener<'a> {
    /// The threads share one table of descriptors, and each may have two openers.
    pub(super) fn new(catalog: &'a Catalog, roots: &'a [Source], threads: usize) -> Self {
        Self { catalog, roots, kept: VecDeque::new(), most_kept: open_directories_per_worker(threads, 2).min(6) }
    }

    /// Returns `None` if the item has changed since the catalog was made.
    pub(super) fn open(&mut self, item: &Item) -> sys::Result<Option<OwnedFd>> {
        let name = self.catalog.name(item);
        let directory = self.directory(item.directory)?;
        let file = open_source(directory, name, sys::FILE)?;
        let stat = rustix::fs::fstat(&file)?;
        let same = stat.st_ino == item.inode
            && sys::size(&stat) == item.size
            && stamp(&stat) == item.stamp
            && sys::kind(stat) == FileType::RegularFile;
        Ok(same.then_some(file))
    }

    fn directory(&mut self, number: u32) -> sys::Result<std::os::fd::BorrowedFd<'_>> {
        let found = self.kept.iter().position(|(kept, _)| *kept == number);
        if found.is_none() {
            let directory = &self.catalog.directories[number as usize];
            let root = self.roots[usize::from(directory.root)].directory();
            let below = directory.node.path();
            let opened = match sys::open_beneath(root, &below, sys::PATH_ONLY | OFlags::DIRECTORY) {
                // The path is empty (the root) or too long, or an old kernel or a filter refuses the call.
                Err(_) => directory.node.open(root, sys::PATH_ONLY)?,
                Ok(opened) => opened,
            };
            self.kept.truncate(self.most_kept - 1);
            self.kept.push_front((number, opened));
        }
        Ok(self.kept[found.unwrap_or(0)].1.as_fd())
    }
}

fn stamp(stat: &Stat) -> u64 {
    #[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
    let parts = [stat.st_mtime as u64, stat.st_mtime_nsec as u64, stat.st_ctime as u64, stat.st_ctime_nsec as u64];
    parts.into_iter().fold(0x9e37_79b9_7f4a_7c15, mix)
}

fn hash(start: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    mix(words.fold(start, mix), bytes.len() as u64)
}

/// Mixes `word` into `state` with the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(state: u64, word: u64) -> u64 {
    let mut z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
