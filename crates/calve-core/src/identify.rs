//! Which file system a place is on, on which machine: what a measurement of it is good for.

use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::error::Error;
use crate::probe::place_of;
use crate::sys;
use crate::tree::pool::thread_count;

/// What a measurement depends on. Two places with equal values cost the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceIdentity {
    /// A short word for the machine, the same after a restart.
    pub machine: String,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// How many processors this process may use, at most eight: more threads are not used.
    pub processors: usize,
    /// "btrfs", "xfs", "ext4", …
    pub file_system: String,
    /// The file system's UUID, or what else tells it from others.
    pub volume: String,
    /// Those of the mount and those of the file system.
    pub mount_options: String,
}

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
