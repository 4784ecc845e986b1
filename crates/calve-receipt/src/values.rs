use std::path::{Path, PathBuf};

pub use calve_core::internal::json::{Milliseconds, ReceiptPath, named};

/// Converts a path. A tree's root, relative to itself, is `.`.
pub fn path(path: impl AsRef<Path>) -> ReceiptPath {
    ReceiptPath::new(path.as_ref())
}

pub fn paths(list: &[PathBuf]) -> Vec<ReceiptPath> {
    list.iter().map(path).collect()
}
