//! The files that an overlay copies as a whole when the server opens them for writing: which ones that may be, and which they were.
//!
//! The kernel copies a file into a new one of the upper directory, so that the copy's birth time is when copying began, and marks it
//! with where it came from (overlayfs.rst, "origin"). A file that the server itself has made there has no such mark.

mod lines;
mod watch;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use serde::{Deserialize, Serialize};

pub(crate) use lines::{Lines, begin_lines, lines};
pub(crate) use watch::{OverlayPaths, Watch};

/// A copy of more is felt. PostgreSQL's log is in files of this size, which it opens as it starts.
const LARGE_BYTES: u64 = 16 << 20;
/// The mark, of a mount by root and of one in a user namespace.
const ORIGINS: [&str; 2] = ["trusted.overlay.origin", "user.overlay.origin"];

/// A file that would be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct LargeFile {
    /// In the data directory.
    pub path: PathBuf,
    pub bytes: u64,
}

/// A file that was copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// In the data directory.
    pub path: PathBuf,
    /// Its size in the template.
    pub bytes: u64,
    /// When copying began, from the time on at which the data directory was mounted.
    pub after_ms: f64,
    /// How long it took, to the few milliseconds at which the kernel's clock moves. `None` when nobody saw its end.
    pub took_ms: Option<f64>,
    /// The process that opened it, as far as that could be seen.
    pub cause: Option<Cause>,
}

/// The process that opened a file for writing, so that it was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its id.
    pub process: u32,
    /// The command line that `ps` shows, or the program's name.
    pub name: String,
    /// The thread. `None` where the kernel does not tell, and the process has several.
    pub thread: Option<u32>,
    /// The thread's name.
    pub thread_name: Option<String>,
    /// The flags of open(2). `None` when the file was closed before they could be seen.
    pub flags: Option<String>,
}

/// Lists the files of a data directory whose copies would be felt, the largest first.
pub(crate) fn large(data: &Path) -> Vec<LargeFile> {
    let mut found = Vec::new();
    walk(data, Path::new(""), &mut |path, metadata| {
        if metadata.len() > LARGE_BYTES {
            found.push(LargeFile { path: path.to_path_buf(), bytes: metadata.len() });
        }
    });
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found
}

/// Returns the files that were copied from `lower` into `upper` since then, in the order of time. `seen`: the known facts of them.
pub(crate) fn copied(lower: &Path, upper: &Path, since: SystemTime, seen: Vec<CopiedFile>) -> Vec<CopiedFile> {
    let mut found = seen;
    walk(upper, Path::new(""), &mut |path, _| {
        if found.iter().all(|copied| copied.path != path) {
            found.extend(one(lower, upper, path, since));
        }
    });
    found.sort_by(|a, b| a.after_ms.total_cmp(&b.after_ms).then_with(|| a.path.cmp(&b.path)));
    found
}

/// Describes the copy of one file. `None` if the overlay has made none.
fn one(lower: &Path, upper: &Path, path: &Path, since: SystemTime) -> Option<CopiedFile> {
    let original = fs::symlink_metadata(lower.join(path)).ok().filter(std::fs::Metadata::is_file)?;
    let copy = upper.join(path);
    let mut unread: [u8; 0] = [];
    if !ORIGINS.iter().any(|name| rustix::fs::lgetxattr(&copy, *name, &mut unread).is_ok()) {
        return None;
    }
    let born = fs::symlink_metadata(&copy).and_then(|metadata| metadata.created());
    let after = born.ok().and_then(|born| born.duration_since(since).ok()).unwrap_or_default();
    let after_ms = milliseconds(after);
    Some(CopiedFile { path: path.to_path_buf(), bytes: original.len(), after_ms, took_ms: None, cause: None })
}

fn milliseconds(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 10.0
}

/// Visits all regular files. It leaves out what it cannot read: this is a report, and the server does not depend on it.
fn walk(top: &Path, below: &Path, visit: &mut impl FnMut(&Path, &std::fs::Metadata)) {
    for entry in fs::read_dir(top.join(below)).into_iter().flatten().flatten() {
        let path = below.join(entry.file_name());
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => walk(top, &path, visit),
            Ok(metadata) if metadata.is_file() => visit(&path, &metadata),
            _ => {}
        }
    }
}
