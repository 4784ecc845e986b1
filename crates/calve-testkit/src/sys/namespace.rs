//! Mount namespaces.

use rustix::io::Result;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;

/// Gives this thread mounts of its own: no other namespace sees what it mounts.
pub(crate) fn unshare_mounts() -> Result<()> {
    // SAFETY: the flags do not include CLONE_FILES, so that descriptors stay valid.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}
