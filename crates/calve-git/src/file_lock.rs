use std::fs::File;
use std::path::Path;

use calve_core::internal::ShownPath;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{Error, Result, failed};
use crate::remedy::Remedy;

/// Locks `file`, opened at `path`. Fails on a file system without locks, such as Lustre without its `flock` option.
pub(crate) fn lock(file: &File, path: &Path, operation: FlockOperation) -> Result<()> {
    retry_on_intr(|| flock(file, operation)).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK => {
            Error::refused(format!("`{}` cannot be locked: {errno}", ShownPath(path)), Remedy::UseFileLocks)
        }
        _ => failed("failed to lock", path, errno).into(),
    })
}

/// Waits for a lock on the directory itself: a lock file would have to stay for ever.
pub(crate) fn lock_directory(path: &Path) -> Result<File> {
    let directory = File::from(fs_err::File::open(path)?);
    lock(&directory, path, FlockOperation::LockExclusive)?;
    Ok(directory)
}
