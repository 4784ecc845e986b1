//! Parts of templates that are on their way here.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

use super::Templates;
use super::store::{self, Store};
use crate::error::Error;
use crate::operation::Operation;

/// A pull that was interrupted can go on for as long as this.
const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Templates {
    /// Makes the directory for parts of templates that are not complete, and returns it. Only this user can enter. A file there belongs to whoever
    /// holds its lock (flock). [`Templates::sweep`] removes files that nobody has written to for a week.
    ///
    /// # Errors
    /// Fails with [`crate::TemplateError::NotOwn`] if the directory is another user's.
    pub fn arrivals(&self) -> Result<PathBuf, Error> {
        self.store.prepare()?;
        let directory = self.store.arrivals();
        store::make_own(&directory)?;
        Ok(directory)
    }
}

impl Store {
    /// Removes what nobody waits for any more.
    pub(super) fn sweep_arrivals(&self) -> Result<(), Error> {
        let directory = self.arrivals();
        if store::open_own(&directory)?.is_none() {
            return Ok(());
        }
        for name in store::listing(&directory)? {
            remove_old(&directory.join(OsStr::from_bytes(name.to_bytes())))?;
        }
        Ok(())
    }
}

fn remove_old(path: &Path) -> Result<(), Error> {
    let Ok(file) = store::open(path, OFlags::RDONLY | OFlags::NONBLOCK) else { return Ok(()) };
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    // Locked until it is removed.
    let file = File::from(file);
    let written = file.metadata().and_then(|found| found.modified());
    let written =
        written.map_err(|source| Error::Io { operation: Operation::Stat, path: path.to_path_buf(), source })?;
    if written.elapsed().is_ok_and(|age| age > KEPT) {
        rustix::fs::unlink(path).map_err(|errno| Error::io(Operation::Remove, path, errno))?;
    }
    Ok(())
}
