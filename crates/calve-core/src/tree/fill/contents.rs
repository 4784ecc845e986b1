//! Moving the contents of one file: by sharing extents, or by reading and writing.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::metadata::Fault;
use crate::progress::CancelToken;
use crate::sys::{self, retry, size, stored};
use crate::tree::node::open_source;
use crate::vocabulary::operation::Operation;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct MovedBytes {
    pub(crate) shared: u64,
    pub(crate) written: u64,
    pub(crate) inlined: u64,
    /// The source ended before its size.
    pub(crate) short: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum ContentsMethod {
    /// Share extents. `tell_inlined` counts unshareable contents, inside the file system's metadata, separately.
    Reflink {
        tell_inlined: bool,
    },
    Copy,
    /// Ask the file system to copy; a network file system asks its server.
    CopyOnServer,
}

/// Larger files are moved in pieces of this size, smaller ones with one read and one write.
const BUFFER_BYTES: usize = 256 * 1024;

pub(crate) struct Mover<'a> {
    buffer: Vec<u8>,
    cancel: &'a CancelToken,
    flush: &'a Flush,
}

/// Decides when to have the source's file system write back everything: when several of the first reflinks of small
/// files are slow. Fresh files show at once; later, slow reflinks have other causes (a lock, a busy disk), and the
/// clone's own data would be written back.
#[derive(Debug, Default)]
pub(crate) struct Flush {
    seen: AtomicUsize,
    slow: AtomicUsize,
}

impl Flush {
    const WATCHED: usize = 64;
    const SLOW_ONES: usize = 8;

    /// Large files do not count: they may be slow because of their many extents.
    fn is_due(&self, bytes: u64, took: Duration) -> bool {
        const SLOW: Duration = Duration::from_millis(2);
        const LARGE_BYTES: u64 = 1 << 20;
        self.seen.load(Ordering::Relaxed) < Self::WATCHED
            && self.seen.fetch_add(1, Ordering::Relaxed) < Self::WATCHED
            && took > SLOW
            && bytes < LARGE_BYTES
            && self.slow.fetch_add(1, Ordering::Relaxed) + 1 == Self::SLOW_ONES
    }
}

impl<'a> Mover<'a> {
    pub(crate) fn new(cancel: &'a CancelToken, flush: &'a Flush) -> Self {
        Self { buffer: Vec::new(), cancel, flush }
    }

    /// The inner error is a reason that permits copying this file's bytes.
    pub(crate) fn reflink(
        &self,
        src: BorrowedFd<'_>,
        dst: BorrowedFd<'_>,
        stat: &Stat,
        tell_inlined: bool,
    ) -> Result<Result<MovedBytes, Errno>, Fault> {
        let started = Instant::now();
        let mut result = retry(|| sys::reflink(src, dst));
        if result == Err(Errno::INVAL) && sys::copy_nocow(src, dst).unwrap_or(false) {
            // btrfs shares only between files that agree on copy-on-write.
            result = retry(|| sys::reflink(src, dst));
        }
        // Reflinks write dirty pages file by file; one go takes far fewer trips to the disk.
        if self.flush.is_due(size(stat), started.elapsed()) {
            // A failure shows again, with a name, when its file is cloned.
            let _ = sys::sync_file_system(src);
        }
        match result {
            // Asked after the reflink, which writes out dirty pages: before, the answer may differ.
            Ok(()) if tell_inlined && sys::is_inline(src, size(stat)) => {
                Ok(Ok(MovedBytes { inlined: size(stat), ..MovedBytes::default() }))
            }
            Ok(()) => Ok(Ok(MovedBytes { shared: stored(stat), ..MovedBytes::default() })),
            Err(errno) if permits_copy(errno, dst, size(stat)) => Ok(Err(errno)),
            Err(errno) => Err(Fault::dst(Operation::ShareExtents)(errno)),
        }
    }

    pub(crate) fn copy(
        &mut self,
        src: BorrowedFd<'_>,
        dst: BorrowedFd<'_>,
        stat: &Stat,
        on_server: bool,
    ) -> Result<MovedBytes, Fault> {
        let size = size(stat);
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES];
        }
        if stored(stat) < size
            && let Some(moved) = self.copy_around_holes(src, dst, size)?
        {
            return Ok(moved);
        }
        let begun = if on_server { self.copy_on_server(src, dst, size)? } else { 0 };
        // Files of /proc and the like claim to be empty, and are not.
        let limit = if size == 0 { u64::MAX } else { size };
        let written = self.copy_range(dst, begun..limit, |buffer, _| rustix::io::read(src, buffer))?;
        Ok(MovedBytes { written, short: written < size, ..MovedBytes::default() })
    }

    /// Writes what `read` returns for this range until it returns nothing. Returns the final position.
    fn copy_range(
        &mut self,
        dst: BorrowedFd<'_>,
        Range { start: mut position, end }: Range<u64>,
        read: impl Fn(&mut [u8], u64) -> sys::Result<usize>,
    ) -> Result<u64, Fault> {
        while position < end {
            let wanted = usize::try_from(end - position).unwrap_or(usize::MAX).min(self.buffer.len());
            let piece = &mut self.buffer[..wanted];
            let length = retry(|| read(piece, position)).map_err(Fault::src(Operation::Read))?;
            if length == 0 {
                break;
            }
            write_all_at(dst, &self.buffer[..length], position)?;
            position += length as u64;
            self.stop_if_cancelled()?;
        }
        Ok(position)
    }

    /// Copies the data of a file without its holes. Returns `None` if the file system cannot tell data from holes.
    fn copy_around_holes(
        &mut self,
        src: BorrowedFd<'_>,
        dst: BorrowedFd<'_>,
        size: u64,
    ) -> Result<Option<MovedBytes>, Fault> {
        let mut moved = MovedBytes::default();
        let mut position = 0;
        let mut end = 0;
        while position < size {
            let data = match sys::seek_data(src, position) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(Errno::INVAL | Errno::OPNOTSUPP) if position == 0 => return Ok(None),
                Err(errno) => return Err(Fault::src(Operation::FindData)(errno)),
            };
            let hole = match sys::seek_hole(src, data) {
                Ok(hole) => hole,
                // It was cut before that place meanwhile.
                Err(Errno::NXIO) => {
                    moved.short = true;
                    return Ok(Some(moved));
                }
                Err(errno) => return Err(Fault::src(Operation::FindHoles)(errno)),
            };
            let stop = hole.min(size);
            position = self.copy_range(dst, data..stop, |buffer, at| rustix::io::pread(src, buffer, at))?;
            if position > data {
                end = position;
                moved.written += position - data;
            }
            if position < stop {
                moved.short = true;
                return Ok(Some(moved));
            }
        }
        if end < size {
            rustix::fs::ftruncate(dst, size).map_err(Fault::dst(Operation::SetSize))?;
        }
        Ok(Some(moved))
    }

    /// Copies as much as the server does, from both offsets, and returns how much. It may stop anywhere, with an error
    /// or 0, which on NFS, CIFS and Ceph does not mean the end of the file: only a read tells.
    fn copy_on_server(&self, src: BorrowedFd<'_>, dst: BorrowedFd<'_>, size: u64) -> Result<u64, Fault> {
        const PIECE: u64 = 1 << 30;
        let mut written = 0;
        while written < size {
            let wanted = usize::try_from((size - written).min(PIECE)).unwrap_or(usize::MAX);
            match sys::copy_range(src, dst, wanted) {
                Ok(0) | Err(Errno::XDEV | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => break,
                Ok(length) => written += length as u64,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Fault::dst(Operation::CopyOnServer)(errno)),
            }
            self.stop_if_cancelled()?;
        }
        Ok(written)
    }

    fn stop_if_cancelled(&self) -> Result<(), Fault> {
        match self.cancel.is_cancelled() {
            true => Err(Fault::src(Operation::Read)(Errno::CANCELED)),
            false => Ok(()),
        }
    }
}

/// Returns whether a refused reflink permits copying this file's bytes. Everything else is a failure.
///
/// EINVAL and ETXTBSY concern one file (a no-copy-on-write mismatch, a swap file). ENOSPC may come from a single full
/// allocation group of XFS, and permits copying only while the file system as a whole has room.
fn permits_copy(errno: Errno, dst: BorrowedFd<'_>, size: u64) -> bool {
    const MARGIN_BYTES: u64 = 16 << 20;
    match errno {
        Errno::TXTBSY => true,
        errno if sys::permits_copy(errno) => true,
        Errno::NOSPC => rustix::fs::fstatvfs(dst.as_fd())
            .is_ok_and(|room| sys::available(&room) > size.saturating_add(MARGIN_BYTES)),
        _ => false,
    }
}

/// Opens a file for its contents as [`open_source`] does, without waiting for a FIFO's writer.
///
/// Waits for another process's lease (fcntl(2), `F_SETLEASE`), which the kernel has the holder release. Fails with
/// EAGAIN after the time that the kernel gives holders by default.
pub(crate) fn open_contents(
    directory: BorrowedFd<'_>,
    name: &CStr,
    stopped: impl Fn() -> bool,
) -> sys::Result<OwnedFd> {
    const PATIENCE: Duration = Duration::from_secs(45);
    let mut until = None;
    loop {
        match open_source(directory, name, sys::FILE) {
            Err(Errno::AGAIN) if stopped() => return Err(Errno::CANCELED),
            Err(Errno::AGAIN) if Instant::now() < *until.get_or_insert_with(|| Instant::now() + PATIENCE) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn write_all_at(dst: BorrowedFd<'_>, mut bytes: &[u8], mut position: u64) -> Result<(), Fault> {
    while !bytes.is_empty() {
        let length = match retry(|| rustix::io::pwrite(dst, bytes, position)) {
            // Prevents an endless loop on a file system that accepts nothing and gives no reason.
            Ok(0) => return Err(Fault::dst(Operation::Write)(Errno::IO)),
            other => other.map_err(Fault::dst(Operation::Write))?,
        };
        bytes = &bytes[length..];
        position += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_written_back_once_and_only_for_several_small_files() {
        let (slow, quick) = (Duration::from_millis(3), Duration::from_millis(1));
        let times = |flush: &Flush, bytes, took, count| (0..count).filter(|_| flush.is_due(bytes, took)).count();
        let fresh = Flush::default();
        assert_eq!(times(&fresh, 10 << 20, slow, 20), 0, "large files");
        assert_eq!(times(&fresh, 1000, quick, 20), 0, "quick ones");
        assert_eq!(times(&fresh, 1000, slow, 100), 1, "once");
        let written_back = Flush::default();
        assert_eq!(times(&written_back, 1000, quick, 64), 0);
        assert_eq!(times(&written_back, 1000, slow, 100), 0, "only at the beginning");
    }

    // 0 from copy_file_range(2) was taken for the end of the file.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_server_does_not_copy_is_read_and_written() {
        use calve_testkit::{FuseOptions, FuseVolume};

        let contents: Vec<u8> = (0..700_000u32).map(|number| (number % 251) as u8).collect();
        for limit in [0, 4096, 300_000, 700_000] {
            let options = FuseOptions { copies_up_to_bytes: Some(limit), ..FuseOptions::default() };
            let Some(volume) = FuseVolume::with_options(options) else { return };
            let [src_path, dst_path] = ["src", "dst"].map(|name| volume.path().join(name));
            fs_err::write(&src_path, &contents).unwrap();
            let src = fs_err::File::open(&src_path).unwrap();
            let stat = rustix::fs::fstat(&src).unwrap();
            let dst = fs_err::File::create_new(&dst_path).unwrap();
            let (cancel, flush) = (CancelToken::default(), Flush::default());
            let Ok(moved) = Mover::new(&cancel, &flush).copy(src.as_fd(), dst.as_fd(), &stat, true) else {
                panic!("copying failed")
            };
            assert_eq!((moved.written, moved.short), (700_000, false), "the server copies {limit} bytes");
            assert!(fs_err::read(&dst_path).unwrap() == contents, "the server copies {limit} bytes");

            // A source that became shorter since it was looked at is one that changed.
            fs_err::OpenOptions::new().write(true).open(&src_path).unwrap().set_len(500_000).unwrap();
            let src = fs_err::File::open(&src_path).unwrap();
            let dst = fs_err::File::create(&dst_path).unwrap();
            let Ok(moved) = Mover::new(&cancel, &flush).copy(src.as_fd(), dst.as_fd(), &stat, true) else {
                panic!("copying failed")
            };
            assert_eq!((moved.written, moved.short), (500_000, true), "the server copies {limit} bytes");
            assert!(fs_err::read(&dst_path).unwrap() == contents[..500_000]);
        }
    }
}
