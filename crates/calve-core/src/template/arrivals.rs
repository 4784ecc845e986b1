//! Parts of templates that are on their way here, and notes of images that templates were sent to or came from.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

use super::store::{self, Store};
use super::templates::Templates;
use crate::error::Error;
use crate::vocabulary::operation::Operation;

/// A pull that was interrupted can go on for as long as this.
const KEPT: Duration = Duration::from_secs(7 * DAY);
/// An image that is neither sent nor received for so long is no longer a good base for a delta.
const NOTED: Duration = Duration::from_secs(180 * DAY);
const DAY: u64 = 24 * 60 * 60;

impl Templates {
    /// Makes the directory for parts of incomplete templates, and returns it. Only this user can enter. A file there belongs to the process
    /// that holds its lock (flock). [`Templates::sweep`] removes files that were not written to for a week.
    ///
    /// # Errors
    /// Fails with [`crate::error::TemplateError::NotOwn`] if the directory is another user's.
    pub fn arrivals(&self) -> Result<PathBuf, Error> {
        self.store.prepare()?;
        let directory = self.store.arrivals();
        store::make_own(&directory)?;
        Ok(directory)
    }

    /// Makes the directory for notes of images, and returns it. Only this user can enter. [`Templates::sweep`] removes files that were not
    /// written to for half a year.
    ///
    /// # Errors
    /// Fails with [`crate::error::TemplateError::NotOwn`] if the directory is another user's.
    pub fn images(&self) -> Result<PathBuf, Error> {
        self.store.prepare()?;
        let directory = self.store.images();
        store::make_own(&directory)?;
        Ok(directory)
    }
}

impl Store {
    /// Removes parts and notes that are too old to be of use.
    pub(super) fn sweep_arrivals(&self) -> Result<(), Error> {
        for (directory, age) in [(self.arrivals(), KEPT), (self.images(), NOTED)] {
            if store::open_own(&directory)?.is_none() {
                continue;
            }
            for name in store::listing(&directory)? {
                remove_older(&directory.join(OsStr::from_bytes(name.to_bytes())), age)?;
            }
        }
        Ok(())
    }
}

fn remove_older(path: &Path, limit: Duration) -> Result<(), Error> {
    let Ok(file) = store::open(path, OFlags::RDONLY | OFlags::NONBLOCK) else { return Ok(()) };
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    // Locked until it is removed.
    let file = File::from(file);
    let written = file.metadata().and_then(|found| found.modified());
    let written = written.map_err(|error| Error::io(Operation::Stat, path, error))?;
    if written.elapsed().is_ok_and(|age| age > limit) {
        rustix::fs::unlink(path).map_err(|errno| Error::io(Operation::Remove, path, errno))?;
    }
    Ok(())
}
