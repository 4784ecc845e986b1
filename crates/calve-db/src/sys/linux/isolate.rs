//! Namespaces: the kernel removes their contents with the last process in them.

use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use calve_core::internal::unescape;
use fs_err::File;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind_recursive, mount_change, unmount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

/// Where shm_open(3) has its files.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// Gives this process its own mounts and System V IPC; without privilege, in a user namespace that maps this user to
/// itself. Returns the mounts that it left; `None`: it may not. Must be called before any thread is started.
///
/// `needed`: paths that the server needs. POSIX shared memory, files in /dev/shm, is its own too unless one is there.
///
/// `Err`: this process is of no use now, in a user namespace that permits nothing, as on some distributions.
pub(crate) fn isolate(needed: &[&Path]) -> Result<Option<LeftMounts>, Errno> {
    let (user, group) = (geteuid(), getegid());
    let Ok(left) = LeftMounts::find(needed) else { return Ok(None) };
    let wanted = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    let wanted = if user.is_root() { wanted } else { wanted | UnshareFlags::NEWUSER };
    // SAFETY: the flags do not include CLONE_FILES, so that descriptors stay valid.
    if unsafe { rustix::thread::unshare_unsafe(wanted) }.is_err() {
        return Ok(None);
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
    Ok(Some(left))
}

/// The mounts of the namespace that this process was started in. Where mounts are not shared, as in most containers,
/// unmounting one there leaves the disk busy here.
pub(crate) struct LeftMounts {
    /// That namespace's, in which it was opened (proc_pid_mountinfo(5)).
    table: File,
    /// The mounts that the server can do without: device, root and mount point, as in the table.
    spare: Vec<[Vec<u8>; 3]>,
}

impl LeftMounts {
    fn find(needed: &[&Path]) -> io::Result<Self> {
        let mut table = File::open("/proc/self/mountinfo")?;
        let needed: Vec<PathBuf> = needed.iter().map(|path| fs_err::canonicalize(path).unwrap_or_default()).collect();
        let is_needed = |point: &Path| point == SHARED_MEMORY || needed.iter().any(|path| path.starts_with(point));
        // Mounts that a user namespace was made with are locked (mount_namespaces(7)).
        let mut spare = if geteuid().is_root() { mounts(&mut table)? } else { Vec::new() };
        spare.retain(|mount| !is_needed(&unescape(&mount[2])));
        Ok(Self { table, spare })
    }

    /// Unmounts here each mount that is gone there.
    pub(crate) fn follow(&mut self) {
        let mut fds = [PollFd::new(&self.table, PollFlags::PRI)];
        if !matches!(rustix::event::poll(&mut fds, Some(&Timespec::default())), Ok(1..)) {
            return;
        }
        let own = File::open("/proc/self/mountinfo").and_then(|mut table| mounts(&mut table));
        let (Ok(there), Ok(here)) = (mounts(&mut self.table), own) else { return };
        self.spare.retain(|mount| {
            let is_left = there.contains(mount);
            // The last one at a mount point covers the others.
            if !is_left && here.iter().rfind(|other| other[2] == mount[2]) == Some(mount) {
                unbind(&unescape(&mount[2]));
            }
            is_left
        });
    }
}

fn mounts(table: &mut File) -> io::Result<Vec<[Vec<u8>; 3]>> {
    let mut text = Vec::new();
    table.rewind()?;
    table.read_to_end(&mut text)?;
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ').skip(2).map(<[u8]>::to_vec);
        Some([fields.next()?, fields.next()?, fields.next()?])
    };
    Ok(text.split(|byte| *byte == b'\n').filter_map(mount).collect())
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
