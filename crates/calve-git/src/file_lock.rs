//! Locks by flock(2), with the path in their errors.

use std::fs::File;
use std::io;
use std::path::Path;

use calve_core::internal::ShownPath;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{Error, Result};
use crate::remedy::Remedy;

/// Locks `file`, which was opened at `path`. Fails where the file system locks no files, as Lustre without its option `flock`.
pub(crate) fn lock(file: &File, path: &Path, operation: FlockOperation) -> Result<()> {
    retry_on_intr(|| flock(file, operation)).map_err(|errno| match errno {
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK => Error::Refused {
            reason: format!("`{}` cannot be locked: {}", ShownPath(path), io::Error::from(errno)),
            remedy: Remedy::UseFileLocks,
        },
        _ => {
            let error = io::Error::from(errno);
            Error::Io(io::Error::new(error.kind(), format!("failed to lock `{}`: {error}", path.display())))
        }
    })
}
