//! Parts of incoming templates, and notes of images that templates were sent to or came from.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, OFlags};
use rustix::io::Errno;

use super::store::{self, ARRIVALS, IMAGES, Store};
use super::templates::Templates;
use crate::error::{Error, IoContext};
use crate::tree::held_lock::HeldLock;
use crate::tree::own::OwnDirectory;
use crate::vocabulary::operation::Operation;

/// An interrupted pull can be resumed for so long.
const KEPT: Duration = Duration::from_secs(7 * DAY);
/// An image neither sent nor received for so long is a poor base for a delta.
const NOTED: Duration = Duration::from_secs(180 * DAY);
const DAY: u64 = 24 * 60 * 60;

impl Templates {
    /// Creates the private directory for parts of incomplete templates. A file in it belongs to the process that holds
    /// its lock (flock). [`Templates::sweep`] removes files not written for a week.
    ///
    /// # Errors
    /// Fails with [`crate::error::TemplateError::NotOwn`] if the directory is another user's.
    pub fn arrivals(&self) -> Result<PathBuf, Error> {
        Ok(self.incoming(ARRIVALS)?.path().to_path_buf())
    }

    /// Creates the private directory for notes of images, like [`Self::arrivals`], but kept for half a year.
    pub fn images(&self) -> Result<OwnDirectory, Error> {
        self.incoming(IMAGES)
    }

    fn incoming(&self, name: &str) -> Result<OwnDirectory, Error> {
        self.store.prepare()?;
        let directory = self.store.path.join(name);
        store::make_own(&directory)?.ok_or(Errno::NOENT).io(Operation::OpenDirectory, directory)
    }
}

impl Store {
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
    let taken = HeldLock::take(CWD, path, flags, FlockOperation::NonBlockingLockExclusive);
    let Ok(Some(_lock)) = taken else { return Ok(()) };
    // By path: the next note may have taken its name, and a finished pull removes its parts.
    let written = path.symlink_metadata().and_then(|found| found.modified());
    if written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > limit)) {
        rustix::fs::unlink(path).io(Operation::Remove, path)?;
    }
    Ok(())
}
