//! Reads many files at once.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rustix::buffer::spare_capacity;
use rustix::fs::{CWD, FileType, OFlags};
use rustix::io::Errno;

use crate::error::{Error, IoContext};
use crate::progress::CancelToken;
use crate::sys;
use crate::tree::pool::{Pool, thread_count};
use crate::vocabulary::operation::Operation;

/// How files are to be read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// Worker threads. By default as many as processors, at most 8, and one for every 16 files.
    pub threads: Option<NonZeroUsize>,
    /// No file is begun once so much has been read: 64 MiB.
    pub enough_bytes: u64,
    /// Ends the reading early.
    pub cancel: CancelToken,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { threads: None, enough_bytes: 64 << 20, cancel: CancelToken::default() }
    }
}

/// With fewer files, another worker is not worth its start.
const FILES_PER_THREAD: usize = 16;

type FileContents = Result<Vec<u8>, Error>;

/// Reads `paths`, following symlinks. The result is shorter than `paths`, but not empty, if
/// [`ReadOptions::enough_bytes`] was reached: call again with the rest.
pub fn read_files(paths: &[impl AsRef<Path> + Sync], options: &ReadOptions) -> Result<Vec<FileContents>, Error> {
    let threads = match options.threads {
        Some(_) => thread_count(options.threads),
        None => thread_count(None).min(paths.len() / FILES_PER_THREAD).max(1),
    };
    let next = AtomicUsize::new(0);
    let bytes = AtomicU64::new(0);
    let work = |pool: &Pool<()>| {
        sys::private_descriptors(&[]);
        let mut own = Vec::new();
        // Files are taken in order and each one taken is read, so that the result has no gap.
        while bytes.load(Ordering::Relaxed) < options.enough_bytes && !pool.stopped() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(number) else { break };
            let read = read_file(path.as_ref());
            bytes.fetch_add(read.as_ref().map_or(0, |read| read.len() as u64), Ordering::Relaxed);
            own.push((number, read));
        }
        own
    };
    let read = Pool::new(threads, options.cancel.clone()).run((), work)?;
    let mut all: Vec<_> = read.into_iter().flatten().collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, contents)| contents).collect())
}

fn read_file(path: &Path) -> FileContents {
    // Do not wait for a FIFO's writer.
    let file = match sys::open_at(CWD, path, OFlags::RDONLY | OFlags::NONBLOCK) {
        Err(Errno::NOENT) => return Err(Error::Missing(path.to_path_buf())),
        other => other.io(Operation::Open, path)?,
    };
    let stat = rustix::fs::fstat(&file).io(Operation::Stat, path)?;
    match sys::kind(stat) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Error::io(Operation::Read, path, Errno::ISDIR)),
        _ => {
            let kind = "FIFO, socket or device";
            return Err(Error::NotAFile { operation: Operation::Read, path: path.to_path_buf(), kind });
        }
    }
    let size = usize::try_from(stat.st_size).map_err(|_| Error::io(Operation::Read, path, Errno::FBIG))?;
    let mut contents = Vec::new();
    // Generated files (/proc) have the size 0.
    contents
        .try_reserve_exact(if size == 0 { 4096 } else { size })
        .map_err(|_| Error::io(Operation::Read, path, Errno::NOMEM))?;
    loop {
        let read = sys::retry(|| rustix::io::read(&file, spare_capacity(&mut contents))).io(Operation::Read, path)?;
        if read == 0 || (size > 0 && contents.len() >= size) {
            return Ok(contents);
        }
        if contents.len() == contents.capacity() {
            contents.try_reserve(contents.len()).map_err(|_| Error::io(Operation::Read, path, Errno::NOMEM))?;
        }
    }
}
