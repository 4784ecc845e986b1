//! The large files that an overlay copies as a whole when the server opens them for writing.

use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use crate::files::confined;
use crate::files::directory::Directory;

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

/// Lists the files of a data directory above [`LARGE_BYTES`], the largest first. This only feeds a report: where something cannot be read, the
/// rest is left out.
pub(crate) fn large(data: &Path) -> Vec<LargeFile> {
    let mut found = Vec::new();
    let _ = Directory::open(data).and_then(|data| {
        confined::walk(&data, &mut |directory, entry, path| {
            let is_file = entry.kind == FileType::RegularFile;
            let bytes =
                if is_file { directory.stat(&entry.name)?.map_or(0, |found| found.st_size.unsigned_abs()) } else { 0 };
            found.extend((bytes > LARGE_BYTES).then(|| LargeFile { path: path.to_path_buf(), bytes }));
            Ok(())
        })
    });
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found
}
