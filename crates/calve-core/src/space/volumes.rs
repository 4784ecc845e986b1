//! The file systems that a walk meets. Device numbers do not tell them apart: each subvolume of a btrfs has its own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{OFlags, Stat};

use crate::sys::{self, SpaceRules};
use crate::tree::location::identity;

/// A device, and the file system that it belongs to.
pub(super) struct Volume {
    /// This run's number of the device.
    pub(super) device: u32,
    /// This run's number of the file system, common to the subvolumes of one btrfs.
    pub(super) file_system: u32,
    pub(super) st_dev: u64,
    /// `None` if files cannot be deduped.
    pub(super) most_bytes_per_dedupe: Option<u64>,
    pub(super) rules: SpaceRules,
    /// The btrfs subvolume, if all users of its extents can be found.
    pub(super) subvolume: Option<u64>,
    /// The first directory of it that was met.
    directory: OwnedFd,
    pub(super) path: PathBuf,
}

impl Volume {
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

#[derive(Default)]
pub(super) struct Volumes {
    known: Mutex<Vec<Arc<Volume>>>,
    /// Fills in [`Volume::subvolume`].
    exact: bool,
}

impl Volumes {
    pub(super) fn exact_where_possible() -> Self {
        Self { exact: true, ..Self::default() }
    }

    /// Returns the volume of an open directory, and adds it if it is new.
    pub(super) fn find(
        &self,
        directory: BorrowedFd<'_>,
        stat: &Stat,
        path: impl FnOnce() -> PathBuf,
    ) -> sys::Result<Arc<Volume>> {
        let st_dev = identity(stat).0;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(volume) = known.iter().find(|volume| volume.st_dev == st_dev) {
            return Ok(Arc::clone(volume));
        }
        let rules = sys::space_rules(directory);
        let most_bytes_per_dedupe = sys::most_bytes_per_dedupe(directory);
        let kin = known
            .iter()
            .find(|other| rules == SpaceRules::Btrfs && sys::same_btrfs(directory, other.directory()))
            .map(|other| other.file_system);
        let device = known.len() as u32;
        let directory = match sys::open_at(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY) {
            // Search permission is enough for these calls.
            Err(_) => rustix::io::fcntl_dupfd_cloexec(directory, 3)?,
            Ok(opened) => opened,
        };
        let file_system = kin.unwrap_or(device);
        let subvolume =
            if self.exact && rules == SpaceRules::Btrfs { exact_subvolume(directory.as_fd()) } else { None };
        known.push(Arc::new(Volume {
            device,
            file_system,
            st_dev,
            most_bytes_per_dedupe,
            rules,
            subvolume,
            directory,
            path: path(),
        }));
        Ok(Arc::clone(&known[device as usize]))
    }

    pub(super) fn all(&self) -> Vec<Arc<Volume>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the subvolume if all users of its extents can be found: by root, and if no snapshot shares its tree.
fn exact_subvolume(directory: BorrowedFd<'_>) -> Option<u64> {
    let subvolume = sys::btrfs_subvolume(directory).ok()?;
    if sys::btrfs_was_snapshotted(directory, subvolume) != Ok(false) {
        return None;
    }
    // Unwritten data is not in the extent tree.
    sys::sync_file_system(directory).ok()?;
    Some(subvolume)
}
