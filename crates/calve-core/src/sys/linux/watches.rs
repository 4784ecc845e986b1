//! Directory watches (inotify(7)), and leases against open writers (fcntl(2)).

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::{Errno, Result};

use crate::sys::{WatchEvent, WatchEventKind};

/// The watches of one tree. Their queue has everything that happened before a call of [`Watches::drain`].
pub(crate) struct Watches {
    queue: OwnedFd,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Watches {
    pub(crate) fn new() -> Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { queue, buffer: vec![MaybeUninit::uninit(); 64 * 1024] })
    }

    /// Watches an open directory and returns the watch's number: the old one if it is watched already.
    pub(crate) fn add(&self, directory: BorrowedFd<'_>) -> Result<i32> {
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::OPEN
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        // No call takes a descriptor. This name leads to the directory itself, wherever it is by now.
        inotify::add_watch(&self.queue, format!("/proc/self/fd/{}", directory.as_raw_fd()), flags)
    }

    pub(crate) fn remove(&self, watch: i32) {
        let _ = inotify::remove_watch(&self.queue, watch);
    }

    pub(crate) fn drain(&mut self, mut each: impl FnMut(WatchEvent)) -> Result<()> {
        /// Least size of an event in the queue; a name adds to it.
        const LEAST_BYTES: u64 = 16;
        // At most 17 times the events queued now, if all names are longest: a busy tree must not hold up the caller.
        let most = rustix::io::ioctl_fionread(&self.queue)? / LEAST_BYTES;
        let mut reader = inotify::Reader::new(&self.queue, &mut self.buffer);
        for _ in 0..most {
            match reader.next() {
                Ok(event) => each(translated(&event)),
                Err(Errno::WOULDBLOCK) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        // The reader may have fetched more.
        while !reader.is_buffer_empty() {
            match reader.next() {
                Ok(event) => each(translated(&event)),
                Err(_) => break,
            }
        }
        Ok(())
    }

    pub(crate) fn queue(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn translated(event: &inotify::Event<'_>) -> WatchEvent {
    const KINDS: [(ReadFlags, WatchEventKind); 9] = [
        (ReadFlags::QUEUE_OVERFLOW, WatchEventKind::Overflow),
        (ReadFlags::UNMOUNT, WatchEventKind::Unmounted),
        (ReadFlags::IGNORED, WatchEventKind::WatchEnded),
        (ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF), WatchEventKind::DirectoryTaken),
        (ReadFlags::CREATE, WatchEventKind::Made),
        (ReadFlags::MOVED_TO, WatchEventKind::MovedHere),
        (ReadFlags::MOVED_FROM, WatchEventKind::MovedAway),
        (ReadFlags::DELETE, WatchEventKind::Removed),
        (ReadFlags::OPEN, WatchEventKind::Opened),
    ];
    let flags = event.events();
    let first = KINDS.iter().find(|(any, _)| flags.intersects(*any));
    WatchEvent {
        watch: event.wd(),
        happening: first.map_or(WatchEventKind::Changed, |(_, kind)| *kind),
        is_directory: flags.contains(ReadFlags::ISDIR),
        cookie: event.cookie(),
        name: event.file_name().map(CStr::to_owned),
    }
}

/// Returns the most watches of one program: a quarter of the user's limit.
pub(crate) fn most_watches() -> usize {
    const LIMITS: [&str; 2] = ["/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches"];
    let limits = LIMITS.into_iter().filter_map(|limit| super::beginning_of(limit)?.parse::<usize>().ok());
    limits.min().unwrap_or(8192) / 4
}

/// Takes a read lease until the file is closed; opening it to write waits meanwhile. EAGAIN: it is open or mapped for
/// writing. Only for the file's owner and the privileged.
pub(crate) fn lease(file: BorrowedFd<'_>) -> Result<()> {
    /// Sent when a writer waits. It does nothing; the default signal ends the process.
    const SIGNAL: libc::c_int = libc::SIGURG;
    /// From asm-generic/fcntl.h.
    const F_SETSIG: libc::c_int = 10;
    // SAFETY: F_SETSIG takes a number, and changes the open file only, which the caller has opened.
    let set = unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, SIGNAL) };
    // SAFETY: F_SETLEASE takes a number; no memory is involved.
    if set < 0 || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) } < 0 {
        let errno = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&errno).unwrap_or(Errno::INVAL));
    }
    Ok(())
}
