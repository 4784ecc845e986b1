//! The data directory that the next reset takes: cloned ahead of time, beside the one in use, where a reset would clone everything.
//!
//! Its directory is one of its own in the server's place, closed to the server's account until the reset has the clone in its place.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use calve_core::{CancelToken, RemovalWait, Strategy};
use rustix::fs::FlockOperation;

use super::Supervisor;
use crate::error::{Error, Result};
use crate::files::directory::Directory;
use crate::files::private::{self, CLOSED};
use crate::files::trash;
use crate::launch::data::{DataClone, clone_sharing};
use crate::launch::{Owners, unless_left};
use crate::messages::Origin;
use crate::operation::Operation;
use crate::registry;

/// The clone is made by a thread. It is given up, and its files go, when this is dropped.
pub(super) struct NextData {
    origin: Origin,
    /// The template's state from before it was cloned.
    identity: String,
    files: PathBuf,
    cancel: CancelToken,
    work: Option<JoinHandle<Result<DataClone>>>,
}

impl Drop for NextData {
    fn drop(&mut self) {
        self.cancel.cancel();
        if let Some(work) = self.work.take() {
            let _ = work.join();
        }
        let _ = trash::remove(&self.files, RemovalWait::No);
    }
}

impl NextData {
    pub(super) fn is_for(&self, origin: &Origin) -> bool {
        self.origin == *origin
    }

    /// Returns whether the template was in this state.
    pub(super) fn is_of(&self, identity: &str) -> bool {
        self.identity == identity
    }

    /// Waits for the clone, unless its owners end. Returns `None` if it could not be made.
    fn finish(&mut self, owners: &Owners<'_>) -> Option<DataClone> {
        let work = self.work.take()?;
        let started = Instant::now();
        let placed = unless_left(owners, &self.cancel, || work.join()).ok()?.ok()?;
        Some(DataClone { took: started.elapsed(), ..placed })
    }
}

impl Supervisor<'_> {
    /// Begins to clone the data for a reset to `origin`, unless that is going to revert the present ones, or they cannot share extents
    /// with the clone.
    pub(super) fn begin_next_data(&mut self, origin: Origin) -> Option<NextData> {
        let will_revert = self.launched.state.is_some() && self.origin == origin;
        let is_shared = matches!(self.record.strategy, Some(Strategy::Reflink | Strategy::Snapshot));
        let Origin::Template(place) = &origin else { return None };
        let identity = origin.template_identity();
        if will_revert || !is_shared || identity.is_empty() {
            return None;
        }
        let name = self.prepared.new_name();
        let files = self.spec.place.join(&name);
        private::make_in(&Directory::open(&self.spec.place).ok()?, &name, CLOSED).ok()?;
        let (template, data, cancel) = (place.clone(), files.join("data"), CancelToken::default());
        let (strategy, token) = (self.spec.strategy, cancel.clone());
        let work = move || {
            let lock = registry::open_lock(&template)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockShared)
                .map_err(|errno| Error::io(Operation::Lock, &template, errno))?;
            clone_sharing(&template.join("data"), &data, strategy, &token)
        };
        let work = Builder::new().name("next data".into()).spawn(work).ok();
        Some(NextData { origin, identity, files, cancel, work })
    }

    /// Puts the data that were cloned ahead in the place of the earlier ones, which were taken away. Returns `None` if there are none.
    pub(super) fn take_next_data(&mut self, next: Option<NextData>, talk: &UnixStream) -> Option<DataClone> {
        let mut next = next?;
        let placed = next.finish(&self.owners(talk))?;
        // Nobody else gets there before the server is started.
        private::close(&Directory::open(&self.files).ok()?).ok()?;
        fs_err::rename(next.files.join("data"), self.files.join("data")).ok()?;
        Some(placed)
    }
}
