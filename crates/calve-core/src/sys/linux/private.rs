//! Mounts that only one command sees.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, OFlags};
use rustix::io::{Errno, FdFlags, Result};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::pipe::PipeFlags;
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::overlay::mount_overlay;
use crate::sys::Denial;

/// Tells at which step the start of a command failed.
pub(crate) struct Steps(OwnedFd);

const STARTED: u8 = u8::MAX;

impl Steps {
    /// Returns the refused step. `None`: the command itself failed.
    pub(crate) fn refused(&self) -> Option<Denial> {
        let mut steps = [0; 256];
        let length = rustix::io::read(&self.0, &mut steps).unwrap_or(0);
        let last = *steps[..length].last()?;
        let denials = [Denial::Namespaces, Denial::Overlay, Denial::WorkingDirectory];
        denials.into_iter().find(|&denial| denial as u8 == last)
    }
}

/// Prepares `command` to run with mounts of its own, with an overlay over a tree: `paths` are the tree, its upper and
/// its work directory. The command's processes inherit the lock.
pub(crate) fn contain(
    command: &mut Command,
    paths: [&Path; 3],
    lock: BorrowedFd<'_>,
    working_directory: &Path,
) -> Result<Steps> {
    let (steps, tell) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    // A directory outside the tree stays as it is, even if no path leads there any more.
    let here = working_directory.starts_with(paths[0]).then(|| text(working_directory));
    let [tree, upper, work] = paths.map(text);
    let lock = lock.as_raw_fd();
    let enter = move || {
        rustix::io::write(&tell, &[Denial::Namespaces as u8])?;
        enter_namespaces()?;
        rustix::io::write(&tell, &[Denial::Overlay as u8])?;
        // Opened in the new namespace: the kernel rejects directories of another one.
        let target = directory(&tree)?;
        mount_overlay(target.as_fd(), directory(&upper)?.as_fd(), directory(&work)?.as_fd(), target.as_fd())?;
        if let Some(here) = &here {
            rustix::io::write(&tell, &[Denial::WorkingDirectory as u8])?;
            rustix::process::chdir(here)?;
        }
        rustix::io::write(&tell, &[STARTED])?;
        // SAFETY: the process that starts the command holds the descriptor, of which this one has a copy, until it has started.
        rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(lock) }, FdFlags::empty())?;
        Ok(())
    };
    // SAFETY: the closure runs in the child, between fork and exec. It touches no state of other threads, and the C libraries that
    // Calve is built for permit a forked child to allocate.
    unsafe {
        command.pre_exec(enter);
    }
    Ok(Steps(steps))
}

/// Gives this process mounts of its own; without privilege, in a user namespace that maps this user to itself.
fn enter_namespaces() -> Result<()> {
    let (user, group) = (geteuid(), getegid());
    let new_user = if user.is_root() { UnshareFlags::empty() } else { UnshareFlags::NEWUSER };
    // SAFETY: the flags do not include CLONE_FILES, so that descriptors stay valid.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS | new_user)? };
    if !user.is_root() {
        let (user, group) = (user.as_raw(), group.as_raw());
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &format!("{user} {user} 1"))?;
        write(c"/proc/self/gid_map", &format!("{group} {group} 1"))?;
    }
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
}

fn write(path: &CStr, text: &str) -> Result<()> {
    let file = crate::sys::open_at(CWD, path, OFlags::WRONLY)?;
    let written = rustix::io::write(&file, text.as_bytes())?;
    if written == text.len() { Ok(()) } else { Err(Errno::IO) }
}

fn directory(path: &CStr) -> Result<OwnedFd> {
    crate::sys::open_at(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY)
}
