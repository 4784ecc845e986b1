//! Mounting OverlayFS through the file-descriptor-based mount interface (fsopen(2), Linux 5.2).

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_fd,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::xattr::proc_path;

/// Mounts `lower` with a writable `upper` over `target`, in this mount namespace and those that share it. Nothing is ever synced to the upper.
pub(crate) fn mount_overlay(
    lower: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
    work: BorrowedFd<'_>,
    target: BorrowedFd<'_>,
) -> Result<()> {
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let context = context.as_fd();
    layer(context, c"lowerdir+", c"lowerdir", lower)?;
    layer(context, c"upperdir", c"upperdir", upper)?;
    layer(context, c"workdir", c"workdir", work)?;
    fsconfig_set_flag(context, c"volatile")?;
    if !in_initial_user_namespace() {
        // trusted.* attributes cannot be written there; without this option the mount would work, but not whiteouts.
        fsconfig_set_flag(context, c"userxattr")?;
    } else {
        // Some kernels are built with other defaults: then the upper directory alone does not show its contents. `userxattr` implies them.
        fsconfig_set_string(context, c"redirect_dir", c"off")?;
        fsconfig_set_string(context, c"metacopy", c"off")?;
    }
    fsconfig_create(context)?;
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), c"", target, c"", flags)
}

/// Adds a layer by its descriptor (Linux 6.13). Older kernels get it by a path without characters that the option parser would interpret.
fn layer(context: BorrowedFd<'_>, key: &CStr, old_key: &CStr, directory: BorrowedFd<'_>) -> Result<()> {
    match fsconfig_set_fd(context, key, directory) {
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::BADF) => {
            let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
            fsconfig_set_string(context, old_key, path)
        }
        other => other,
    }
}

/// Takes the mount at `name` in `parent` away; what still uses it keeps it until done.
pub(crate) fn detach_mount(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    unmount(proc_path(parent, name)?, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}

/// Returns the attribute by which a directory of this user's upper layer hides the one below it (overlayfs.rst, "opaque directories").
pub(crate) fn opaque_attribute() -> &'static CStr {
    let is_privileged = rustix::process::geteuid().is_root() && in_initial_user_namespace();
    if is_privileged { c"trusted.overlay.opaque" } else { c"user.overlay.opaque" }
}

/// Returns whether a directory has that attribute, and hides the one below it.
pub(crate) fn is_opaque(directory: BorrowedFd<'_>, attribute: &CStr) -> Result<bool> {
    let mut value = [0; 1];
    match rustix::fs::fgetxattr(directory, attribute, &mut value) {
        Ok(length) => Ok(value[..length] == *b"y"),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(false),
        Err(errno) => Err(errno),
    }
}

fn in_initial_user_namespace() -> bool {
    super::beginning_of("/proc/self/uid_map")
        .is_none_or(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}
