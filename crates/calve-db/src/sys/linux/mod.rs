//! Linux: namespaces, process descriptors, and /proc.

mod freeze;
mod isolate;
mod peer;
mod process;
mod segment;
mod spawn;

pub(crate) use calve_core::internal::lower_priority;
pub(crate) use freeze::freeze;
pub(crate) use isolate::{LeftMounts, bind, isolate, unbind};
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

pub(crate) fn sync_file_system(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(fs_err::File::open(path)?.as_fd())?)
}

/// Makes this process inherit the orphans of its children, so that it can end them.
pub(crate) fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

pub(crate) fn stream_socket() -> rustix::io::Result<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Takes an abstract name (unix(7)), exclusive in this network namespace, as ports are.
pub(crate) fn hold_name(name: &str) -> rustix::io::Result<Option<std::os::fd::OwnedFd>> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    Ok(Some(socket))
}
