//! Namespaces: the kernel removes their contents with the last process in them.

use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, unmount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

/// Where shm_open(3) has its files.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Gives this process its own mounts and System V IPC; without privilege, in a user namespace that maps this user to
/// itself. Returns whether it has them. Must be called before any thread is started.
///
/// `needed`: paths that the server needs. POSIX shared memory, files in /dev/shm, is its own too unless one is there.
///
/// `Err`: this process is of no use now, in a user namespace that permits nothing, as on some distributions.
pub(crate) fn isolate(needed: &[&Path]) -> Result<bool, Errno> {
    let (user, group) = (geteuid(), getegid());
    let wanted = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let wanted = if user.is_root() { wanted } else { wanted | UnshareFlags::NEWUSER };
    // SAFETY: the flags do not include CLONE_FILES, so that descriptors stay valid.
    if unsafe { rustix::thread::unshare_unsafe(wanted) }.is_err() {
        return Ok(false);
    }
    if !user.is_root() {
        let (user, group) = (user.as_raw(), group.as_raw());
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    if !needed.iter().any(|path| is_in_shared_memory(path)) {
        // A failure leaves the server no worse off than without namespaces.
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let _ = mount(c"tmpfs", SHARED_MEMORY, c"tmpfs", flags, Some(c"mode=1777"));
    }
    Ok(true)
}

fn is_in_shared_memory(path: &Path) -> bool {
    let real = fs_err::canonicalize(path);
    real.as_deref().unwrap_or(path).starts_with(SHARED_MEMORY)
}

/// Shows the directory `what` at `at` too, in this mount namespace.
pub(crate) fn bind(what: &Path, at: &Path) -> Result<(), Errno> {
    mount_bind_recursive(what, at)
}

pub(crate) fn unbind(at: &Path) {
    let _ = unmount(at, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    fs_err::write(path, text).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))
}
