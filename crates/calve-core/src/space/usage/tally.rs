//! Adds up the findings of a walk: per path, and by each worker on its own.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::inodes::Inodes;
use super::ledger::{Ledger, Use};
use super::measure::{self, EntrySpace, Range};
use super::report::Usage;
use crate::error::Error;
use crate::space::volumes::Volume;
use crate::space::walk::{SpaceVisitor, UnreadableEntries, full_path, reason};
use crate::sys::{self, SpaceRules, XattrTarget, allocated, size};
use crate::tree::node::Node;
use crate::tree::source::Source;
use crate::tree::walk::Folder;

pub(super) struct SharedTally<'a> {
    roots: &'a [Source],
    troubles: &'a UnreadableEntries,
    pub(super) ledger: Mutex<Ledger>,
    /// Files with several names, counted when all names have been seen.
    links: Mutex<HashMap<(u32, u64), Link>>,
    failed: Mutex<Option<Error>>,
}

struct Link {
    volume: Arc<Volume>,
    root: usize,
    node: Arc<Node>,
    name: CString,
    stat: Stat,
    /// Path, number of names seen in it, and their metadata bytes.
    seen: Vec<(usize, u64, u64)>,
}

#[derive(Default, Clone)]
pub(super) struct Sum {
    pub(super) usage: Usage,
    pub(super) by_file_system: BTreeMap<u32, FileSystemSum>,
    pub(super) other: Range,
    pub(super) inodes: Inodes,
}

#[derive(Default, Clone)]
pub(super) struct FileSystemSum {
    pub(super) data: Range,
    /// Bytes of items in the trees, for btrfs only.
    pub(super) items: u64,
}

impl Sum {
    pub(super) fn account(&mut self, file_system: u32) -> &mut FileSystemSum {
        self.by_file_system.entry(file_system).or_default()
    }

    fn add(&mut self, volume: &Volume, measured: &EntrySpace) {
        let sum = self.account(volume.file_system);
        sum.data.add(measured.data);
        sum.items += measured.items;
        self.other.add(measured.other);
        self.usage.exclusive += measured.exclusive;
        self.usage.inline += measured.inline;
        self.usage.shared_outside_max += measured.unknown;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let (a, b) = (&mut self.usage, &other.usage);
        a.entries.files += b.entries.files;
        a.entries.directories += b.entries.directories;
        a.entries.others += b.entries.others;
        a.entries.hard_links += b.entries.hard_links;
        a.apparent += b.apparent;
        a.allocated += b.allocated;
        a.exclusive += b.exclusive;
        a.inline += b.inline;
        a.shared_outside_min += b.shared_outside_min;
        a.shared_outside_max += b.shared_outside_max;
        for (file_system, other) in &other.by_file_system {
            let sum = self.account(*file_system);
            sum.data.add(other.data);
            sum.items += other.items;
        }
        self.other.add(other.other);
        self.inodes.merge(&other.inodes);
    }
}

/// `sums` has one for each path, and a last one for files that belong to several paths.
pub(super) struct Tally {
    pub(super) sums: Vec<Sum>,
    /// Amounts of a path that the total must not include.
    pub(super) alone: Vec<Sum>,
}

impl Tally {
    pub(super) fn new(roots: usize) -> Self {
        Self { sums: vec![Sum::default(); roots + 1], alone: vec![Sum::default(); roots] }
    }

    pub(super) fn merge(&mut self, sums: Vec<Sum>) {
        self.sums.iter_mut().zip(&sums).for_each(|(a, b)| a.merge(b));
    }
}

pub(super) struct TallyVisitor<'a> {
    shared: &'a SharedTally<'a>,
    sums: Vec<Sum>,
    uses: Vec<Use>,
}

/// The inode number of a subvolume's root (linux/btrfs_tree.h).
const ROOT_OF_SUBVOLUME: u64 = 256;
/// How many extents are sorted in memory at a time.
const IN_MEMORY: usize = 1 << 20;
/// How many a worker collects before it takes the lock.
const PER_WORKER: usize = 1 << 13;

impl<'a> SharedTally<'a> {
    pub(super) fn new(roots: &'a [Source], troubles: &'a UnreadableEntries, scratch: Option<&Path>) -> Self {
        let ledger = Mutex::new(Ledger::new(IN_MEMORY, scratch));
        Self { roots, troubles, ledger, links: Mutex::default(), failed: Mutex::default() }
    }

    fn trouble(&self, root: usize, node: &Node, name: &CStr, errno: Errno) {
        self.troubles.add(full_path(&self.roots[root], &node.path_of(name)), reason(errno));
    }

    fn add(&self, uses: &mut Vec<Use>) {
        let added = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).add(uses);
        if let Err(error) = added {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    pub(super) fn charge_links(&self, tally: &mut Tally, nested: &[bool]) -> Result<(), Error> {
        let links = std::mem::take(&mut *self.links.lock().unwrap_or_else(PoisonError::into_inner));
        let roots = self.roots.len();
        let mut uses = Vec::new();
        for link in links.into_values() {
            let tops: Vec<_> = link.seen.iter().filter(|(root, ..)| !nested[*root]).collect();
            let only = match tops.as_slice() {
                [(root, ..)] => Some(*root),
                _ => None,
            };
            let in_all = tops.iter().fold((0, 0), |(seen, names), top| (seen + top.1, names + top.2));
            for &(root, seen, names) in &link.seen {
                // It gets into the total through the only path that has it, or counts for this path alone.
                let sum =
                    if only == Some(root) || nested[root] { &mut tally.sums[root] } else { &mut tally.alone[root] };
                self.charge(&link, sum, root as u32, (seen, names), &mut uses);
            }
            if only.is_none() {
                self.charge(&link, &mut tally.sums[roots], roots as u32, in_all, &mut uses);
            }
        }
        self.add(&mut uses);
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn charge(&self, link: &Link, sum: &mut Sum, root: u32, (seen, names): (u64, u64), uses: &mut Vec<Use>) {
        count(sum, &link.stat);
        sum.add(&link.volume, &EntrySpace { items: names, ..EntrySpace::default() });
        sum.usage.entries.hard_links += seen - 1;
        #[allow(clippy::unnecessary_cast, reason = "the field's type differs between systems")]
        if seen < link.stat.st_nlink as u64 {
            // Another name elsewhere keeps all of it.
            sum.usage.shared_outside_min += allocated(&link.stat);
            sum.usage.shared_outside_max += allocated(&link.stat);
            return;
        }
        let source = &self.roots[link.root];
        let directory = match link.node.open(source.directory(), sys::PATH_ONLY) {
            Ok(directory) => directory,
            Err(errno) => return self.trouble(link.root, &link.node, &link.name, errno),
        };
        if let Err(errno) = measure_into(sum, &link.volume, (directory.as_fd(), &link.name), &link.stat, (root, uses)) {
            self.trouble(link.root, &link.node, &link.name, errno);
        }
    }
}

fn count(sum: &mut Sum, stat: &Stat) {
    match sys::kind(stat) {
        FileType::RegularFile => {
            sum.usage.entries.files += 1;
            sum.usage.apparent += size(stat);
        }
        _ => sum.usage.entries.others += 1,
    }
    sum.usage.allocated += allocated(stat);
}

/// Adds an entry that is deleted with its path.
fn measure_into(
    sum: &mut Sum,
    volume: &Volume,
    entry: (BorrowedFd<'_>, &CStr),
    stat: &Stat,
    (root, uses): (u32, &mut Vec<Use>),
) -> Result<(), Errno> {
    let measured = measure::entry(entry, stat, volume, root, uses);
    if matches!(volume.rules, SpaceRules::Btrfs | SpaceRules::Xfs) {
        sum.inodes.insert(volume.device, stat.st_ino);
    }
    match measured {
        Ok(measured) => {
            sum.add(volume, &measured);
            Ok(())
        }
        Err(errno) => {
            // Its extents cannot be read: all or none may be shared.
            let blocks = allocated(stat);
            let data = Range { min: 0, max: blocks };
            sum.add(volume, &EntrySpace { data, unknown: blocks, ..EntrySpace::default() });
            Err(errno)
        }
    }
}

impl<'a> TallyVisitor<'a> {
    pub(super) fn new(shared: &'a SharedTally<'a>) -> Self {
        let sums = vec![Sum::default(); shared.roots.len()];
        Self { shared, sums, uses: Vec::with_capacity(PER_WORKER) }
    }

    pub(super) fn finish(mut self) -> Vec<Sum> {
        self.shared.add(&mut self.uses);
        self.sums
    }

    fn link(&self, folder: &Folder<'_>, volume: &Arc<Volume>, name: &CStr, stat: &Stat) {
        let mut links = self.shared.links.lock().unwrap_or_else(PoisonError::into_inner);
        let link = links.entry((volume.device, stat.st_ino)).or_insert_with(|| Link {
            volume: Arc::clone(volume),
            root: folder.tree,
            node: Arc::clone(folder.node),
            name: name.to_owned(),
            stat: *stat,
            seen: Vec::new(),
        });
        let items = measure::name_items(name);
        match link.seen.iter_mut().find(|(root, ..)| *root == folder.tree) {
            Some((_, seen, names)) => (*seen, *names) = (*seen + 1, *names + items),
            None => link.seen.push((folder.tree, 1, items)),
        }
    }
}

impl SpaceVisitor for TallyVisitor<'_> {
    fn directory(&mut self, folder: &Folder<'_>, volume: &Arc<Volume>, stat: &Stat) {
        let sum = &mut self.sums[folder.tree];
        sum.usage.entries.directories += 1;
        sum.usage.allocated += allocated(stat);
        let (mut measured, inode) = (EntrySpace::default(), XattrTarget::Open(folder.directory));
        match volume.rules {
            SpaceRules::Btrfs => {
                let name = folder.node.parent().map_or(c"", |(_, name)| name);
                measured.items = measure::inode_items(inode) + measure::name_items(name);
                if stat.st_ino == ROOT_OF_SUBVOLUME {
                    measured.items += measure::SUBVOLUME_ITEMS;
                }
            }
            SpaceRules::Apfs | SpaceRules::Unknown => measured.other.max = allocated(stat),
            SpaceRules::Ext => measured.other = measure::freed_by_ext(inode, stat),
            SpaceRules::Exact | SpaceRules::Xfs => measured.other = Range::exactly(allocated(stat)),
        }
        measured.exclusive = measured.other.min;
        sum.add(volume, &measured);
        if volume.rules == SpaceRules::Xfs {
            sum.inodes.insert(volume.device, stat.st_ino);
        }
    }

    fn entry(&mut self, folder: &Folder<'_>, volume: &Arc<Volume>, name: &CStr, stat: &Stat) {
        if stat.st_nlink > 1 {
            return self.link(folder, volume, name, stat);
        }
        let sum = &mut self.sums[folder.tree];
        count(sum, stat);
        sum.add(volume, &EntrySpace { items: measure::name_items(name), ..EntrySpace::default() });
        let uses = (folder.tree as u32, &mut self.uses);
        if let Err(errno) = measure_into(sum, volume, (folder.directory, name), stat, uses) {
            self.shared.trouble(folder.tree, folder.node, name, errno);
        }
        if self.uses.len() >= PER_WORKER {
            self.shared.add(&mut self.uses);
        }
    }
}
