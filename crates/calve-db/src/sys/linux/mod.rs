//! Linux: namespaces, descriptors of processes, and what /proc tells.

mod freeze;
mod isolate;
mod peer;
mod process;
mod segment;
mod spawn;

pub(crate) use calve_core::internal::lower_priority;
pub(crate) use freeze::freeze;
pub(crate) use isolate::{bind, isolate, unbind};
pub(crate) use peer::{connect, descends, listener, peer_uid};
pub(crate) use process::{
    ProcessHandle, boot, children, descendants, end_tree, kill_users, lock_holder, members, memory_bytes,
    process_namespace, start_time, tree, with_argument, works_in,
};
pub(crate) use segment::{read_segment, remove_segment, remove_shared, segments};
pub(crate) use spawn::{Server, collect_orphan, spawn};

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Writes everything of the file system that `path` is on to the disk.
pub(crate) fn sync_file_system(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs_err::File::open(path)?.as_fd())?)
}

/// Makes this process the one that inherits the children of its children, so that it can end them.
pub(crate) fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

pub(crate) fn stream_socket() -> rustix::io::Result<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Takes a name that no other process of this network namespace, in which ports are too, can take meanwhile (unix(7), "abstract").
pub(crate) fn hold_name(name: &str) -> rustix::io::Result<Option<std::os::fd::OwnedFd>> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(Some(socket))
}
