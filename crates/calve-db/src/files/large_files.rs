//! The large files that an overlay copies as a whole when the server opens them for writing.

use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

/// Files above this size are listed. PostgreSQL's log files have exactly this size, and it opens one at each start.
const LARGE_BYTES: u64 = 16 << 20;

/// A file of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DbFile"))]
pub struct LargeFile {
    /// The path, relative to the data directory.
    #[cfg_attr(feature = "schema", schemars(with = "calve_core::internal::json::ReceiptPath"))]
    pub path: PathBuf,
    /// The size in bytes.
    pub bytes: u64,
}

/// Lists the files of a data directory above [`LARGE_BYTES`], the largest first.
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

/// Visits all regular files. Skips unreadable ones: this only feeds a report, and the server does not depend on it.
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
