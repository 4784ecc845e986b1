//! Mounting OverlayFS through descriptors (fsopen(2), Linux 5.2).

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::{Errno, Result};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_fd,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};

use super::xattr::proc_path;

/// Mounts `lower` with a writable `upper` over `target`, in this mount namespace and its peers. Never syncs the upper.
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
        // trusted.* attributes cannot be written there; without this option the mount works, but not whiteouts.
        fsconfig_set_flag(context, c"userxattr")?;
    } else {
        // Some kernels enable these by default: then the upper alone lacks contents. `userxattr` disables them too.
        fsconfig_set_string(context, c"redirect_dir", c"off")?;
        fsconfig_set_string(context, c"metacopy", c"off")?;
    }
    fsconfig_create(context)?;
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), c"", target, c"", flags)
}

/// Adds a layer by descriptor (Linux 6.13), on older kernels by a path without characters special to the option parser.
fn layer(context: BorrowedFd<'_>, key: &CStr, old_key: &CStr, directory: BorrowedFd<'_>) -> Result<()> {
    match fsconfig_set_fd(context, key, directory) {
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::BADF) => {
            let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
            fsconfig_set_string(context, old_key, path)
        }
        other => other,
    }
}

/// Detaches the mount at `name` in `parent`; its users keep it until done.
pub(crate) fn detach_mount(parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    unmount(proc_path(parent, name)?, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
}

/// Returns the attribute by which a directory of this user's upper hides the one below (overlayfs.rst, "opaque").
pub(crate) fn opaque_attribute() -> &'static CStr {
    let is_privileged = rustix::process::geteuid().is_root() && in_initial_user_namespace();
    if is_privileged { c"trusted.overlay.opaque" } else { c"user.overlay.opaque" }
}

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
