//! Which file system a place is on, on which machine: what a measurement of it is good for.

use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::error::Error;
use crate::measurement::PlaceIdentity;
use crate::probe::place_of;
use crate::sys;
use crate::tree::pool::thread_count;

/// Identifies the file system that clones to `dst` are made on. Makes nothing.
pub fn identify(dst: &Path) -> Result<PlaceIdentity, Error> {
    let (place, _) = place_of(dst)?;
    Ok(identity_of(place.parent()))
}

pub(crate) fn identity_of(directory: BorrowedFd<'_>) -> PlaceIdentity {
    PlaceIdentity {
        machine: sys::machine_identity().to_owned(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        processors: thread_count(None),
        file_system: sys::file_system_name(directory),
        volume: sys::volume_identity(directory),
        mount_options: sys::mount_options(directory),
    }
}
