//! Parts of templates that are on their way here, and notes of images that templates were sent to or came from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};

use super::store::{self, ARRIVALS, IMAGES, Store};
use super::templates::Templates;
use crate::error::{Error, IoContext};
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
        self.incoming(ARRIVALS)
    }

    /// Makes the directory for notes of images, and returns it. Only this user can enter. [`Templates::sweep`] removes files that were not
    /// written to for half a year.
    ///
    /// # Errors
    /// Fails with [`crate::error::TemplateError::NotOwn`] if the directory is another user's.
    pub fn images(&self) -> Result<PathBuf, Error> {
        self.incoming(IMAGES)
    }

    fn incoming(&self, name: &str) -> Result<PathBuf, Error> {
        self.store.prepare()?;
        let directory = self.store.path.join(name);
        store::make_own(&directory)?;
        Ok(directory)
    }
}

impl Store {
    /// Removes parts and notes that are too old to be of use.
    pub(super) fn sweep_arrivals(&self) -> Result<(), Error> {
        for (directory, age) in [(ARRIVALS, KEPT), (IMAGES, NOTED)] {
            let Some(directory) = store::open_own(&self.path.join(directory))? else { continue };
            for name in directory.names()? {
                remove_older(&directory.path().join(crate::sys::path(&name)), age)?;
            }
        }
        Ok(())
    }
}

fn remove_older(path: &Path, limit: Duration) -> Result<(), Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    // Locked until it is removed.
    let Ok(Some(_lock)) = store::take(path, flags, FlockOperation::NonBlockingLockExclusive) else { return Ok(()) };
    // The next note may take its name meanwhile, and a run that has pulled removes its parts.
    let written = path.symlink_metadata().and_then(|found| found.modified());
    if written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > limit)) {
        rustix::fs::unlink(path).io(Operation::Remove, path)?;
    }
    Ok(())
}
