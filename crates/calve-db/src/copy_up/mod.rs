//! What an overlay copies as a whole when the server opens it for writing: which files that may be, and which they were.
//!
//! The kernel copies a file into a new one of the upper directory, so that the copy's birth time is when copying began, and marks it
//! with where it came from (overlayfs.rst, "origin"). A file that the server itself has made there has no such mark.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fs_err as fs;
use serde::{Deserialize, Serialize};

/// A copy of more is felt. PostgreSQL's log is in files of this size, which it opens as it starts.
const LARGE_BYTES: u64 = 16 << 20;
/// The mark, of a mount by root and of one in a user namespace.
const ORIGINS: [&str; 2] = ["trusted.overlay.origin", "user.overlay.origin"];

/// A file that would be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Large {
    /// In the data directory.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// A file that was copied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Copied {
    /// In the data directory.
    pub path: PathBuf,
    /// Its size in the template.
    pub bytes: u64,
    /// When copying began, from the time on at which the data directory was mounted.
    pub after_ms: f64,
}

/// The files of a data directory whose copies would be felt, the largest first.
pub(crate) fn large(data: &Path) -> Vec<Large> {
    let mut found = Vec::new();
    walk(data, Path::new(""), &mut |path, metadata| {
        if metadata.len() > LARGE_BYTES {
            found.push(Large { path: path.to_path_buf(), bytes: metadata.len() });
        }
    });
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found
}

/// What was copied from `lower` into `upper` since then, in the order of time.
pub(crate) fn copied(lower: &Path, upper: &Path, since: SystemTime) -> Vec<Copied> {
    let mut found = Vec::new();
    walk(upper, Path::new(""), &mut |path, metadata| {
        let Ok(original) = fs::symlink_metadata(lower.join(path)) else { return };
        if !is_copy(&upper.join(path)) {
            return;
        }
        let after = metadata.created().ok().and_then(|born| born.duration_since(since).ok()).unwrap_or_default();
        let after_ms = (after.as_secs_f64() * 1e5).round() / 100.0;
        found.push(Copied { path: path.to_path_buf(), bytes: original.len(), after_ms });
    });
    found.sort_by(|a, b| a.after_ms.total_cmp(&b.after_ms).then_with(|| a.path.cmp(&b.path)));
    found
}

fn is_copy(path: &Path) -> bool {
    let mut unread: [u8; 0] = [];
    ORIGINS.iter().any(|name| rustix::fs::lgetxattr(path, *name, &mut unread).is_ok())
}

/// All regular files. What cannot be read is left out: this is a report, and the server does not depend on it.
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
