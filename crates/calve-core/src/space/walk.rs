//! Walks several trees at once: every entry with its `stat` and its file system.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::options::Mounts;
use crate::progress::{CancelToken, Progress};
use crate::report::SkippedEntry;
use crate::sys;
use crate::tree::location::{DIRECTORY, identity, is_inside};
use crate::tree::node::{self, Node, open_source};
use crate::tree::source::Source;
pub(super) use crate::tree::walk::reason;
use crate::tree::walk::{Descent, Folder, Walker, walk, whole_tree};
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::SkipReason;

use super::volumes::{Volume, Volumes};

/// Receives the entries that a worker finds. It cannot end the walk.
pub(super) trait SpaceVisitor: Send {
    /// Receives a directory that was opened. Its entries follow, on the same worker.
    fn directory(&mut self, folder: &Folder<'_>, volume: &Arc<Volume>, stat: &Stat);
    fn entry(&mut self, folder: &Folder<'_>, volume: &Arc<Volume>, name: &CStr, stat: &Stat);
}

pub(super) struct Walk<'a> {
    pub(super) roots: &'a [Source],
    pub(super) volumes: &'a Volumes,
    pub(super) threads: usize,
    pub(super) mounts: Mounts,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a CancelToken,
    pub(super) troubles: &'a UnreadableEntries,
}

#[derive(Default)]
pub(super) struct UnreadableEntries(Mutex<(u64, Vec<SkippedEntry>)>);

impl UnreadableEntries {
    /// The limit of the list, not of the count.
    const MOST: usize = 1000;

    pub(super) fn add(&self, path: PathBuf, reason: SkipReason) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.0 += 1;
        if troubles.1.len() < Self::MOST {
            troubles.1.push(SkippedEntry { path, reason });
        }
    }

    pub(super) fn take(&self) -> (u64, Vec<SkippedEntry>) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.1.sort_by(|a, b| a.path.cmp(&b.path));
        std::mem::take(&mut troubles)
    }
}

impl Walk<'_> {
    pub(super) fn run<V: SpaceVisitor>(&self, visitor: impl Fn() -> V + Sync) -> Result<Vec<V>, Error> {
        let new = || SpaceWorker { walk: self, visitor: visitor(), volume: None };
        let (trees, files): (Vec<_>, Vec<_>) = (0..self.roots.len()).partition(|&at| self.roots[at].single().is_none());
        let roots: Vec<_> = self.roots.iter().map(Source::directory).collect();
        let starts = trees.into_iter().map(whole_tree).collect();
        let mut workers = walk(&roots, starts, self.threads, self.cancel, new)?;
        for root in files {
            let mut worker = new();
            worker.single(root);
            workers.push(worker);
        }
        Ok(workers.into_iter().map(|worker| worker.visitor).collect())
    }
}

pub(super) fn full_path(root: &Source, below: &Path) -> PathBuf {
    node::full_path(root.path(), if root.single().is_some() { Path::new("") } else { below })
}

struct SpaceWorker<'a, V> {
    walk: &'a Walk<'a>,
    visitor: V,
    volume: Option<Arc<Volume>>,
}

impl<V: SpaceVisitor> SpaceWorker<'_, V> {
    fn single(&mut self, root: usize) {
        let source = &self.walk.roots[root];
        let Some((name, _)) = source.single() else { return };
        let (node, directory) = (Node::root(), source.directory());
        let mut visit = || {
            let stat = sys::stat_at(directory, name)?;
            let volume =
                self.walk.volumes.find(directory, &rustix::fs::fstat(directory)?, || source.path().to_path_buf())?;
            let folder = Folder { tree: root, node: &node, root: directory, directory, path: Path::new("") };
            self.visitor.entry(&folder, &volume, name, &stat);
            Ok(())
        };
        if let Err(errno) = visit() {
            self.failed(root, PathBuf::new(), errno);
        }
        self.listed(1);
    }
}

impl<V: SpaceVisitor> Walker for SpaceWorker<'_, V> {
    fn open(&mut self, folder: &Folder<'_>, name: &CStr) -> sys::Result<Option<OwnedFd>> {
        let fd = open_source(folder.directory, name, DIRECTORY)?;
        let root = self.walk.roots[folder.tree].stat();
        let stays = self.walk.mounts == Mounts::Cross || identity(&rustix::fs::fstat(&fd)?).0 == identity(root).0;
        Ok(stays.then_some(fd))
    }

    fn directory(&mut self, folder: &Folder<'_>) -> sys::Result<()> {
        let stat = rustix::fs::fstat(folder.directory)?;
        let path = || full_path(&self.walk.roots[folder.tree], folder.path);
        let volume = self.walk.volumes.find(folder.directory, &stat, path)?;
        self.visitor.directory(folder, &volume, &stat);
        self.volume = Some(volume);
        Ok(())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent {
        if kind == FileType::Directory {
            return Descent::Yes;
        }
        let Some(volume) = &self.volume else { return Descent::No };
        match sys::stat_at(folder.directory, name) {
            Ok(stat) if sys::is_directory(stat) => {
                self.failed(folder.tree, folder.node.path_of(name), Errno::STALE);
            }
            Ok(stat) => self.visitor.entry(folder, volume, name, &stat),
            Err(errno) => self.failed(folder.tree, folder.node.path_of(name), errno),
        }
        Descent::No
    }

    fn listed(&mut self, entries: u64) {
        self.walk.progress.add(entries, 0);
    }

    fn failed(&mut self, tree: usize, path: PathBuf, errno: Errno) {
        self.walk.troubles.add(full_path(&self.walk.roots[tree], &path), reason(errno));
    }
}

/// Opens the trees, without those that this user may not read. Fails if that leaves none.
pub(super) fn open_readable<'p>(
    paths: impl Iterator<Item = &'p Path>,
    troubles: &UnreadableEntries,
) -> Result<Vec<Source>, Error> {
    let mut refused = None;
    let open = |path: &'p Path| match Source::open(path) {
        Err(error) if error.is_errno(Errno::ACCESS) => {
            troubles.add(path.to_path_buf(), reason(Errno::ACCESS));
            refused = Some(error);
            None
        }
        opened => Some(opened),
    };
    let roots = paths.filter_map(open).collect::<Result<Vec<_>, _>>()?;
    refused.filter(|_| roots.is_empty()).map_or(Ok(roots), Err)
}

/// Marks the roots that are the same as an earlier one, or that the walk of another one reaches.
pub(super) fn nested(roots: &[Source], mounts: Mounts) -> Result<Vec<bool>, Error> {
    let mut nested = vec![false; roots.len()];
    for (index, root) in roots.iter().enumerate() {
        for (other_index, other) in roots.iter().enumerate() {
            if index == other_index {
                continue;
            }
            let is_reached = mounts == Mounts::Cross || other.stat().st_dev == root.stat().st_dev;
            nested[index] |= match other.single() {
                // Another name of a file is another entry.
                Some(_) => other_index < index && is_same_entry(root, other).io(Operation::FindVolume, root.path())?,
                None if root.identity() == other.identity() => other_index < index,
                None => {
                    is_reached
                        && is_inside(root.directory(), other.identity()).io(Operation::FindVolume, root.path())?
                }
            };
        }
    }
    Ok(nested)
}

/// Returns whether two files have the same name in the same directory.
fn is_same_entry(a: &Source, b: &Source) -> sys::Result<bool> {
    let (Some((a_name, _)), Some((b_name, _))) = (a.single(), b.single()) else { return Ok(false) };
    let in_same_directory =
        || Ok(identity(&rustix::fs::fstat(a.directory())?) == identity(&rustix::fs::fstat(b.directory())?));
    if a_name == b_name { in_same_directory() } else { Ok(false) }
}
