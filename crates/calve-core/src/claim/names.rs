//! A tree known without a walk: from the record of its spare, and the changes since.
//! [`crate::internal::scan_tree`] then opens only what its visitor wants.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::check::{DirectoryChanges, EntryChange, node};
use super::order::Subtrees;
use super::record::{Block, blocks};
use crate::options::RecordBody;
use crate::report::SkippedEntry;
use crate::tree::walk::{Descent, Folder, ScanReport, Visitor, reason};

/// The present contents of a directory with a spare, or of a former spare.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordedTree {
    pub(crate) body: Arc<RecordBody>,
    /// The changes since the record was taken.
    pub(crate) touched: BTreeMap<PathBuf, DirectoryChanges>,
}

impl RecordedTree {
    /// Notes that the entry at `path` may have been made after the spare was handed over.
    pub fn made(&mut self, path: &Path) {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(name) = CString::new(name.as_bytes()) else { return };
        self.touched.entry(above.to_path_buf()).or_default().made.push((FileType::Unknown, name));
    }

    /// Shows a visitor the recorded entries at and below these paths. Returns the paths to walk instead.
    pub(crate) fn visit<V: Visitor>(
        &self,
        root: BorrowedFd<'_>,
        below: &[PathBuf],
        visitor: V,
    ) -> (ScanReport<V>, Vec<PathBuf>) {
        let visitors = vec![visitor];
        let mut visit = Visit {
            root,
            below: below.iter().map(PathBuf::as_path).collect(),
            inside: Subtrees::default(),
            above: below.iter().filter_map(|path| Some(path.parent()?.as_os_str().as_bytes())).collect(),
            left: Subtrees::default(),
            walked: Vec::new(),
            scanned: ScanReport { visitors, entries: 0, skipped: Vec::new() },
        };
        below.iter().for_each(|path| visit.inside.insert(path));
        for block in &blocks(&self.body.bytes).unwrap_or_default() {
            visit.directory(block, self.touched.get(block.path));
        }
        let Visit { below: not_found, mut walked, scanned, .. } = visit;
        walked.extend(below.iter().filter(|path| not_found.contains(path.as_path())).cloned());
        (scanned, walked)
    }
}

struct Visit<'a, V> {
    root: BorrowedFd<'a>,
    below: HashSet<&'a Path>,
    /// `below`, with all descendants.
    inside: Subtrees,
    /// The parents of `below`.
    above: HashSet<&'a [u8]>,
    /// Recorded directories to skip.
    left: Subtrees,
    walked: Vec<PathBuf>,
    scanned: ScanReport<V>,
}

impl<V: Visitor> Visit<'_, V> {
    fn directory(&mut self, block: &Block<'_>, touched: Option<&DirectoryChanges>) {
        if self.left.has(block.path) {
            return;
        }
        let is_inside = self.inside.has(block.path);
        let is_above = self.above.contains(block.path.as_os_str().as_bytes());
        if !is_inside && !is_above && touched.is_none() {
            return;
        }
        let path_of = |name: &std::ffi::CStr| block.path.join(crate::sys::path(name));
        if let Some(touched) = touched.filter(|_| is_inside) {
            self.walked.extend(touched.made.iter().map(|(_, name)| path_of(name)));
        }
        let mut opened = None;
        for entry in block.entries() {
            let kind = entry.kind();
            if touched.is_some_and(|touched| touched.change_of(entry.name) != EntryChange::Same) {
                if kind == FileType::Directory {
                    self.left.insert(&path_of(entry.name));
                }
                continue;
            }
            let is_found = is_above && self.below.remove(path_of(entry.name).as_path());
            if !is_found && !is_inside {
                continue;
            }
            self.scanned.entries += 1;
            let Some(visitor) = self.scanned.visitors.first_mut() else { return };
            if !visitor.wants(block.path, entry.name, kind.into()) {
                continue;
            }
            let node = node(block.path);
            let directory: &OwnedFd = match opened.get_or_insert_with(|| node.open_source(self.root)) {
                Ok(directory) => directory,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return,
                Err(errno) => {
                    self.scanned.skipped.push(SkippedEntry { path: block.path.to_path_buf(), reason: reason(*errno) });
                    return;
                }
            };
            let folder =
                Folder { tree: 0, node: &node, root: self.root, directory: directory.as_fd(), path: block.path };
            if visitor.entry(&folder, entry.name, kind.into()) == Descent::No && kind == FileType::Directory {
                self.left.insert(&path_of(entry.name));
            }
        }
    }
}
