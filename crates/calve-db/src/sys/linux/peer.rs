//! The other end of a Unix socket (unix(7), SO_PEERCRED).

use std::ffi::c_int;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::process::parent;

/// The most generations between this process and a server, such as scripts and tracing tools.
const MOST_GENERATIONS: usize = 16;

/// Connects to a socket. Fails at once if the listener does not accept.
pub(crate) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let made = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&made, &SocketAddrUnix::new(socket)?)?;
    let stream = UnixStream::from(made);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    Ok(peer(socket)?.uid)
}

/// Returns the listener at the other end of a socket. `None`: unknown.
pub(crate) fn listener(socket: &UnixStream) -> Option<u32> {
    peer(socket).ok().and_then(|peer| u32::try_from(peer.pid).ok()).filter(|pid| *pid != 0)
}

/// Returns whether the listener at the other end is one of these processes, or descends from one.
pub(crate) fn descends(socket: &UnixStream, from: &[u32]) -> bool {
    std::iter::successors(listener(socket), |pid| parent(*pid)).take(MOST_GENERATIONS).any(|pid| from.contains(&pid))
}

/// Returns the process, user and group of the peer. The process is 0 if its namespace cannot be seen from here.
fn peer(socket: impl AsFd) -> io::Result<libc::ucred> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
    let socket: c_int = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes no more than `length` bytes into a structure of that size, and both live until it returns.
    let done = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut found).cast(), &raw mut length)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(found) }
}
