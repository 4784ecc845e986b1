//! The path without links and `..` of what is there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use calve_core::Error;

use crate::failure::Failure;

/// Returns it, or says as the engine does that nothing is there.
pub(crate) fn of(path: &Path) -> Result<PathBuf, Failure> {
    fs_err::canonicalize(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing(path.to_path_buf()).into(),
        _ => error.into(),
    })
}
