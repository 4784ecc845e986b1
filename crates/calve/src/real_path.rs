use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use calve_core::Error;
use calve_core::internal::is_trash;

use crate::failure::{FAILED, Failure};

/// Returns the canonical path. Reports a missing one like the engine.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, Failure> {
    fs_err::canonicalize(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing(path.to_path_buf()).into(),
        _ => error.into(),
    })
}

/// Returns the directory part of a path, as written.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(crate) fn here() -> Result<PathBuf, Failure> {
    let failed = |text| Failure::stated(FAILED, text, "change to a directory that exists");
    let here =
        std::env::current_dir().map_err(|error| failed(format!("cannot determine the current directory: {error}")))?;
    if here.iter().any(|name| is_trash(name.as_encoded_bytes())) {
        return Err(failed("the current directory was removed".into()));
    }
    Ok(here)
}
