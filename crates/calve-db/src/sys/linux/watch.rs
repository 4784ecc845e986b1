//! Changes in a directory (inotify(7)), and opened files of a file system (fanotify(7)).

use std::ffi::{CString, OsStr, OsString, c_int, c_uint};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::super::{Appearance, FileOpening};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// A descriptor that polls as readable when something has happened.
pub(crate) struct Appearances(OwnedFd);

impl Appearances {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?))
    }

    /// Watches what appears in this directory from now on. Returns the directory's number in [`Appearance`].
    pub(crate) fn add(&self, directory: &Path) -> io::Result<i32> {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        Ok(inotify::add_watch(&self.0, directory, flags)?)
    }

    /// Returns the names that have appeared since the last call.
    pub(crate) fn read(&self) -> Vec<Appearance> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        let mut found = Vec::new();
        while let Ok(event) = reader.next() {
            if let Some(name) = event.file_name() {
                found.push(Appearance {
                    directory: event.wd(),
                    name: OsStr::from_bytes(name.to_bytes()).to_owned(),
                    is_directory: event.events().contains(ReadFlags::ISDIR),
                });
            }
        }
        found
    }
}

impl AsFd for Appearances {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The files of a file system that are opened, and by which thread. Nobody is kept waiting.
pub(crate) struct FileOpenings(OwnedFd);

/// Whom it takes: CAP_SYS_ADMIN, and not only in a user namespace.
const OPENS_FLAGS: c_uint =
    libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_TID | libc::FAN_UNLIMITED_QUEUE;

impl FileOpenings {
    /// Watches files of the file system that is mounted at `path`, by whichever mount they are opened.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let events = libc::O_RDONLY | libc::O_LARGEFILE | libc::O_CLOEXEC;
        // SAFETY: takes numbers, and returns a descriptor or -1.
        let made = unsafe { libc::fanotify_init(OPENS_FLAGS, events.cast_unsigned()) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has made this descriptor for this call, and nobody else knows it.
        let made = unsafe { OwnedFd::from_raw_fd(made) };
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        // SAFETY: `path` ends in a zero byte and lives until the call returns; the rest are numbers.
        let marked =
            unsafe { libc::fanotify_mark(made.as_raw_fd(), flags, libc::FAN_OPEN, libc::AT_FDCWD, path.as_ptr()) };
        if marked < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(made)) }
    }

    /// Returns the files that were opened since the last call.
    pub(crate) fn read(&self) -> Vec<FileOpening> {
        const LENGTH: usize = size_of::<libc::fanotify_event_metadata>();
        let mut found = Vec::new();
        let mut buffer = [0; 128 * LENGTH];
        while let Ok(length @ 1..) = crate::sys::retry(|| rustix::io::read(&self.0, &mut buffer)) {
            let mut rest = &buffer[..length];
            while rest.len() >= LENGTH {
                // SAFETY: there are as many bytes as the structure has, which is plain numbers; any alignment will do.
                let event = unsafe { rest.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
                let step = usize::try_from(event.event_len).unwrap_or(LENGTH).max(LENGTH);
                rest = rest.get(step..).unwrap_or_default();
                found.extend(opened(event.fd, event.pid));
            }
        }
        found
    }
}

impl AsFd for FileOpenings {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn opened(descriptor: c_int, thread: c_int) -> Option<FileOpening> {
    // An event without one tells that others were lost.
    if descriptor < 0 {
        return None;
    }
    // SAFETY: the kernel has made this descriptor for the event, and nobody else knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let link = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(FileOpening { path: OsString::from_vec(path.into_bytes()).into(), thread: u32::try_from(thread).ok()? })
}

/// Returns the time by the clock that files are stamped with, which moves a few milliseconds at once.
pub(crate) fn stamp() -> SystemTime {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::new(now.tv_sec.cast_unsigned(), nanoseconds)
}
