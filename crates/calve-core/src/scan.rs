//! Visiting every entry of a tree.

use std::ffi::{CStr, OsStr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, OFlags};
use rustix::io::Errno;

use crate::claim::names::RecordedTree;
use crate::error::{Error, IoContext};
use crate::progress::CancelToken;
use crate::report::SkippedEntry;
use crate::sys;
use crate::tree::pool::thread_count;
use crate::tree::walk::{Descent, Folder, ScanReport, Visitor, Walker, reason, start_at, walk, whole_tree};
use crate::vocabulary::operation::Operation;

#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Only these entries, by their paths below the root. Empty: everything.
    pub below: Vec<PathBuf>,
    /// The known entries of a tree that was a spare: then only those that the visitors want are opened.
    pub names: Option<Arc<RecordedTree>>,
    /// By default as many threads as processors, at most 8.
    pub threads: Option<NonZeroUsize>,
    pub cancel: CancelToken,
}

/// Visits every entry below `root` once, by several threads. Follows no symlink, crosses no mount, and opens only
/// directories. Skips entries that have gone.
pub fn scan_tree<V: Visitor>(
    root: &Path,
    options: &ScanOptions,
    visitor: impl Fn() -> V + Sync,
) -> Result<ScanReport<V>, Error> {
    let opened = sys::open_at(CWD, root, OFlags::RDONLY | OFlags::DIRECTORY);
    let root = opened.io(Operation::OpenDirectory, root)?;
    let mut scanned = ScanReport { visitors: Vec::new(), entries: 0, skipped: Vec::new() };
    let starts_at = |below: &[PathBuf]| below.iter().filter_map(|path| start_at(root.as_fd(), path)).collect();
    let starts = match (options.below.as_slice(), &options.names) {
        ([], _) => vec![whole_tree(0)],
        (below, None) => starts_at(below),
        (below, Some(names)) => {
            let walked;
            (scanned, walked) = names.visit(root.as_fd(), below, visitor());
            starts_at(&walked)
        }
    };
    let scan = || Scan { visitor: visitor(), entries: 0, skipped: Vec::new() };
    let threads = thread_count(options.threads);
    for scan in walk(&[root.as_fd()], starts, threads, &options.cancel, scan)? {
        scanned.visitors.push(scan.visitor);
        scanned.entries += scan.entries;
        scanned.skipped.extend(scan.skipped);
    }
    scanned.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scanned)
}

struct Scan<V> {
    visitor: V,
    entries: u64,
    skipped: Vec<SkippedEntry>,
}

impl<V: Visitor> Walker for Scan<V> {
    fn open(&mut self, folder: &Folder<'_>, name: &CStr) -> sys::Result<Option<OwnedFd>> {
        match sys::open_directory_same_mount(folder.directory, name) {
            Err(Errno::XDEV) => Ok(None),
            other => other.map(Some),
        }
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent {
        self.visitor.entry(folder, name, kind.into())
    }

    fn listed(&mut self, entries: u64) {
        self.entries += entries;
    }

    fn failed(&mut self, _tree: usize, path: PathBuf, errno: Errno) {
        if matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
            return;
        }
        let path = if path.as_os_str().is_empty() { OsStr::new(".").into() } else { path };
        self.skipped.push(SkippedEntry { path, reason: reason(errno) });
    }
}
