//! Making a tree under a hidden name beside its destination, and publishing it by one rename.
//!
//! The promise: whatever happens to this process, the destination is absent (or as it was) or complete. What a killed process leaves
//! is a hidden name whose lock is free, which the next run in that place sweeps.

use std::io;
use std::path::{Path, PathBuf};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, ERROR_ALREADY_EXISTS, ERROR_FILE_EXISTS};

use super::delete::{Deletion, delete_protected};
use super::location::Location;
use super::lock::Lock;
use crate::error::Error;
use crate::hidden::Purpose;
use crate::operation::Operation;
use crate::options::ExistingDestination;
use crate::progress::{CancelToken, Progress};
use crate::sys;

/// A hidden directory beside `location`, in which a clone is made.
pub(super) struct Staging<'p> {
    location: &'p Location,
    /// `None` once published.
    lock: Option<Lock>,
    path: PathBuf,
    identity: sys::Identity,
}

impl<'p> Staging<'p> {
    pub(super) fn make(location: &'p Location) -> Result<Self, Error> {
        let failed = |error| Error::io(Operation::CreateStaging, location.given_parent(), error);
        let lock = Lock::reserve(location.parent(), Purpose::Staging).map_err(failed)?;
        let path = lock.path();
        // From here on the drop cleans up.
        let mut staging = Self { location, lock: Some(lock), path, identity: sys::Identity { volume: 0, file: 0 } };
        std::fs::create_dir(&staging.path).map_err(failed)?;
        sys::hide(&staging.path);
        staging.identity = sys::look(&staging.path).map_err(failed)?.identity;
        staging.lock.as_ref().map_or(Ok(()), |lock| lock.record(staging.identity)).map_err(failed)?;
        Ok(staging)
    }

    /// Returns the staged directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the staged directory, or the entry `inside` of it, the name of the destination.
    pub(super) fn publish(
        mut self,
        inside: Option<&std::ffi::OsStr>,
        existing: ExistingDestination,
    ) -> Result<(), Error> {
        let lost = || Error::StagingLost(self.location.given_parent());
        let is_own = sys::look(&self.path).is_ok_and(|info| info.identity == self.identity);
        if !is_own || !self.lock.as_ref().is_some_and(Lock::is_held) {
            return Err(lost());
        }
        let from = inside.map_or_else(|| self.path.clone(), |name| self.path.join(name));
        let to = self.location.path();
        let is_there = || sys::look(to).is_ok();
        let rename = || match sys::rename_no_replace(&from, to) {
            // Another program has something open in what was made a moment ago.
            Err(error) if sys::is(&error, ERROR_ACCESS_DENIED) && !is_there() => Err(sys::in_use()),
            other => other,
        };
        let renamed = match sys::patiently(sys::PUBLISH_PATIENCE, rename) {
            Err(error) if is_taken(&error) && is_there() => match (existing, inside) {
                // A file is exchanged for a file in one step; for directories there is no such call.
                (ExistingDestination::Replace, Some(_)) => {
                    sys::patiently(sys::PATIENCE, || sys::rename_replace_file(&from, to))
                }
                (ExistingDestination::Replace, None) => {
                    return Err(Error::ReplaceUnsupported(self.location.given().to_path_buf()));
                }
                (ExistingDestination::Refuse, _) => {
                    return Err(Error::DestinationExists(self.location.given().to_path_buf()));
                }
            },
            other => other,
        };
        renamed.map_err(|error| Error::io(Operation::Publish, self.location.given(), error))?;
        if let Some(lock) = self.lock.take() {
            if inside.is_some() {
                let _ = std::fs::remove_dir(&self.path);
            }
            lock.remove();
        }
        Ok(())
    }
}

fn is_taken(error: &io::Error) -> bool {
    [ERROR_ALREADY_EXISTS, ERROR_FILE_EXISTS, ERROR_ACCESS_DENIED].iter().any(|code| sys::is(error, *code))
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        let deletion = Deletion { progress: &Progress::default(), cancel: &CancelToken::default() };
        // Otherwise the next run in this place tries again.
        if delete_protected(&lock, &self.path, deletion).is_ok() {
            lock.remove();
        }
    }
}
