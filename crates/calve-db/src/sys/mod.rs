//! The only home of platform code and of `unsafe` in this crate: one folder or file per system, with equal signatures.

#![allow(unsafe_code)]

mod announce;
pub(crate) use announce::announce;
pub(crate) use rustix::io::retry_on_intr as retry;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

/// Defines calls that this system does not have, each with its constant answer, if any.
#[cfg(not(target_os = "linux"))]
macro_rules! absent {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $returned:ty = $answer:expr)?;)*) => {
        $(pub(crate) fn $name($($argument: $type),*) $(-> $returned)? { $($answer)? })*
    };
}
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::*;

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// Waits until one of these is readable or closed, a signal comes, or `limit` is over. Returns which of them are.
pub(crate) fn wait_for_any<'f>(descriptors: impl IntoIterator<Item = BorrowedFd<'f>>, limit: Duration) -> Vec<bool> {
    let mut fds: Vec<_> = descriptors.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let limit = Timespec { tv_sec: limit.as_secs().cast_signed(), tv_nsec: limit.subsec_nanos().into() };
    let polled = rustix::event::poll(&mut fds, Some(&limit));
    fds.iter().map(|fd| polled.is_ok() && !fd.revents().is_empty()).collect()
}

pub(crate) fn exchange(path: &Path, other: &Path) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(rustix::fs::CWD, path, rustix::fs::CWD, other, rustix::fs::RenameFlags::EXCHANGE)
}

/// Returns this session's leader (setsid(2)). `None`: this process, an ended one, or one outside of this PID namespace.
pub(crate) fn session() -> Option<(u32, u64)> {
    // Not rustix's, which takes the zero of a session outside of the namespace for impossible.
    // SAFETY: no pointers; it cannot fail for the caller itself.
    let leader = unsafe { libc::getsid(0) }.cast_unsigned();
    (leader != 0 && leader != std::process::id()).then_some((leader, start_time(leader)?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum ProcessEnd {
    #[error("exit code {0}")]
    Exit(i32),
    #[error("signal {0}")]
    Signal(i32),
}

/// System V shared memory, which outlives the processes that use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "only Linux needs to be told")]
pub(crate) struct Segment {
    pub(crate) id: i32,
    pub(crate) key: i32,
    /// The pid of its creator, which may be reused.
    pub(crate) creator: u32,
    pub(crate) attached: u64,
    /// The user that owns it, and the one that made it.
    pub(crate) owner: u32,
    pub(crate) maker: u32,
    /// When it was made, in seconds since 1970.
    pub(crate) made: u64,
}

/// The bytes read of a segment: more than the header that tells of other memory.
pub(crate) const SEGMENT_HEAD: usize = 48;

/// A program to start, with empty input.
pub(crate) struct Launch<'a> {
    /// The program's path, then its arguments.
    pub(crate) command: &'a [OsString],
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: &'a Path,
    /// Becomes its standard output and standard error.
    pub(crate) log: BorrowedFd<'a>,
    /// The user and group that it becomes, if this process is root.
    pub(crate) account: Option<(u32, u32)>,
    /// It is the first process of a PID namespace, which ends with it.
    #[allow(dead_code, reason = "only Linux has such namespaces")]
    pub(crate) own_processes: bool,
}
