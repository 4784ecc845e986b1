//! The data directory that the next reset takes: cloned ahead of time, beside the one in use, where a reset would make a new one.
//!
//! Its directory is one of its own in the server's place, closed to the server's account until the reset has the clone in its place.

use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use calve_core::{Cancel, Strategy, Wait};
use rustix::fs::FlockOperation;

use super::Supervisor;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private::{self, CLOSED};
use crate::files::trash;
use crate::registry;
use crate::server::data::{DataClone, clone_sharing};
use crate::supervise::messages::Origin;
use crate::template;

/// The clone is made by a thread. It is given up, and its files go, when this is dropped.
pub(super) struct NextData {
    origin: Origin,
    /// The template's state from before it was cloned.
    identity: String,
    files: PathBuf,
    cancel: Cancel,
    work: Option<JoinHandle<Result<DataClone>>>,
}

impl Drop for NextData {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
        let _ = trash::remove(&self.files, Wait::No);
    }
}

impl NextData {
    pub(super) fn is_of(&self, origin: &Origin, identity: &str) -> bool {
        self.origin == *origin && self.identity == identity
    }

    /// Waits for the clone. Returns `None` if it could not be made.
    fn finish(&mut self) -> Option<DataClone> {
        self.work.take()?.join().ok()?.ok()
    }
}

impl Supervisor<'_> {
    /// Begins to clone the data for a reset to `origin`, unless that is going to revert the present ones or they cannot share extents with
    /// the clone.
    pub(super) fn begin_next_data(&mut self, origin: Origin) -> Option<NextData> {
        let will_revert = self.launched.state.is_some() && self.origin == origin;
        let is_shared =
            [Strategy::Reflink, Strategy::Snapshot].iter().any(|way| way.to_string() == self.record.strategy);
        let Origin::Template(place) = &origin else { return None };
        let identity = template::identity_of(&origin);
        if will_revert || !is_shared || identity.is_empty() {
            return None;
        }
        let name = self.prepared.new_name();
        let files = self.spec.place.join(&name);
        private::make_in(&Directory::open(&self.spec.place).ok()?, &name, CLOSED).ok()?;
        let (template, data, cancel) = (place.clone(), files.join("data"), Cancel::default());
        let (wish, switch) = (self.launched.placed.as_ref().map(|placed| placed.strategy), cancel.clone());
        let work = move || {
            let lock = registry::open_lock(&template)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)
                .map_err(|errno| Error::io("lock", &template, errno))?;
            clone_sharing(&template.join("data"), &data, wish, &switch)
        };
        let work = Builder::new().name("next data".into()).spawn(work).ok();
        Some(NextData { origin, identity, files, cancel, work })
    }

    /// Puts the data that were cloned ahead in the place of the present ones. The server has ended. Returns `None` if there are none: then
    /// the present ones are still there.
    pub(super) fn take_next_data(&mut self, next: Option<NextData>) -> Result<Option<DataClone>> {
        let Some(mut next) = next else { return Ok(None) };
        let Some(placed) = next.finish() else { return Ok(None) };
        self.take_files_away()?;
        self.move_back()?;
        let (from, to) = (next.files.join("data"), self.files.join("data"));
        fs_err::rename(&from, &to).map_err(|error| Error::io("rename", &from, error))?;
        Ok(Some(placed))
    }
}
