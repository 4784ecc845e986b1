//! Extended attributes that a command may have changed in its private copy.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use rustix::fs::Stat;

use super::closed::ClosedEntries;
use crate::sys::{self, XattrTarget};
use crate::tree::fill::metadata::{is_overlays_own, may_be_lost};
use crate::tree::held_times::modified;

pub(super) type Xattrs = BTreeMap<CString, Vec<u8>>;

/// The copy's root at one moment. It may differ from the tree's: not everything can be set where the changes are.
pub(super) struct RootState {
    stat: Stat,
    pub(super) xattrs: Xattrs,
}

impl RootState {
    pub(super) fn read(root: BorrowedFd<'_>, closed: &ClosedEntries) -> sys::Result<Self> {
        let stat = closed.as_left(PathBuf::new, rustix::fs::fstat(root)?);
        Ok(Self { stat, xattrs: xattrs(XattrTarget::Open(root))? })
    }

    /// Returns whether anything but the times differs.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.has_other_mode(&other.stat) || self.has_other_owner(&other.stat) || self.xattrs != other.xattrs
    }

    pub(super) fn has_other_time(&self, stat: &Stat) -> bool {
        modified(&self.stat) != modified(stat)
    }

    pub(super) fn has_other_mode(&self, stat: &Stat) -> bool {
        (self.stat.st_mode ^ stat.st_mode) & 0o7777 != 0
    }

    pub(super) fn has_other_owner(&self, stat: &Stat) -> bool {
        (self.stat.st_uid, self.stat.st_gid) != (stat.st_uid, stat.st_gid)
    }
}

/// Returns whether an attribute belongs to the place: btrfs-property(8), which the copy's file system may lack; labels,
/// which the policy gives by the place (selinux(8)); the overlay's own.
fn is_local(name: &CStr) -> bool {
    name.to_bytes().starts_with(b"btrfs.") || name == c"security.selinux" || is_overlays_own(name)
}

pub(super) fn xattrs(target: XattrTarget<'_>) -> sys::Result<Xattrs> {
    sys::xattrs(target, |name| !is_local(name))
}

pub(super) fn with_changes(tree: &Xattrs, before: &Xattrs, now: Xattrs) -> Xattrs {
    let mut wanted = tree.clone();
    wanted.retain(|name, _| now.contains_key(name) || !before.contains_key(name));
    wanted.extend(now.into_iter().filter(|(name, value)| before.get(name) != Some(value)));
    wanted
}

/// Gives a directory these attributes and no others, except those that this user may not set.
pub(super) fn set_xattrs(directory: BorrowedFd<'_>, wanted: &Xattrs) -> sys::Result<()> {
    let target = XattrTarget::Open(directory);
    let now = xattrs(target)?;
    for name in now.keys().filter(|name| !wanted.contains_key(*name)) {
        sys::remove_xattr(directory, name)?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| now.get(*name) != Some(value)) {
        match target.write(name, value) {
            Err(errno) if !may_be_lost(errno, target) => return Err(errno),
            _ => {}
        }
    }
    Ok(())
}
