//! Writes many small files below one directory, or reads them.
//!
//! A batch is grouped by directory, because the kernel serialises creating files in one. Each worker opens a directory
//! once, name by name and never through a symlink. Besides the root, it has two descriptors open at a time, in a table
//! of its own where the system permits that.

mod directory;
mod file;
mod gain;
mod options;
mod plan;
mod read;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use self::directory::Directories;
use self::file::FileToWrite;
use self::gain::Gain;
pub use self::options::{
    Directory, ExistingFile, Flush, OnError, Placement, WriteEntry, WriteFailure, WriteOptions, WriteReport,
};
use self::plan::{Unit, WritePlan, plan};
pub use self::read::{ReadOptions, read_files};
use crate::error::{Error, IoContext};
use crate::sys;
use crate::tree::pool::{Pool, thread_count};
use crate::vocabulary::operation::Operation;

/// Writes files below a directory, batch by batch.
pub struct Writer {
    root: OwnedFd,
    root_path: PathBuf,
    options: WriteOptions,
    report: WriteReport,
    entries: u64,
    gain: Gain,
    makes_one_at_a_time: bool,
    started: Instant,
}

impl Writer {
    /// Opens the root. It may be reached through symlinks; entries below it may not.
    pub fn open(root: &Path, options: WriteOptions) -> Result<Self, Error> {
        let started = Instant::now();
        let open = || sys::open_at(CWD, root, sys::PATH_ONLY | OFlags::DIRECTORY);
        let mut report = WriteReport::default();
        let opened = match open() {
            Err(Errno::NOENT) if options.directory == Directory::Make => {
                match rustix::fs::mkdirat(CWD, root, Mode::from_raw_mode(0o777)) {
                    Ok(()) => report.directories = 1,
                    Err(Errno::EXIST) => {}
                    Err(Errno::NOENT) => {
                        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
                        return Err(Error::ParentMissing(parent.unwrap_or(Path::new(".")).to_path_buf()));
                    }
                    Err(errno) => return Err(Error::io(Operation::CreateDirectory, root, errno)),
                }
                open()
            }
            other => other,
        };
        let root_fd = opened.map_err(|errno| match errno {
            Errno::NOENT => Error::Missing(root.to_path_buf()),
            _ => Error::io(Operation::EnterDirectory, root, errno),
        })?;
        Ok(Self {
            makes_one_at_a_time: sys::makes_one_at_a_time(root_fd.as_fd()),
            root: root_fd,
            root_path: root.to_path_buf(),
            options,
            report,
            entries: 0,
            gain: Gain::default(),
            started,
        })
    }

    /// Writes a batch, and returns when all of it is written. Batches are written in order.
    pub fn write(&mut self, entries: &[WriteEntry<'_>]) -> Result<(), Error> {
        let (first, written, before) = (self.entries, self.report.files, self.report.failures.len());
        self.entries += entries.len() as u64;
        let most = thread_count(self.options.threads);
        let limit = |planned| match self.options.threads {
            Some(_) => planned,
            None if self.makes_one_at_a_time => 1,
            None => self.gain.threads(planned),
        };
        let WritePlan { units, refused, threads } = plan(entries, first, &self.root_path, &self.options, most, limit);
        let began = Instant::now();
        let stops = self.options.on_error == OnError::Stop;
        let is_outside = |refused: &WriteFailure| matches!(refused.error, Error::OutsideRoot { .. });
        let begins = !stops || !refused.iter().any(is_outside);
        let used = threads.min(units.len());
        let run = Run {
            root: self.root.as_fd(),
            root_path: &self.root_path,
            options: &self.options,
            units: &units,
            next: AtomicUsize::new(0),
            pool: Pool::new(used, self.options.cancel.clone()),
            report: Mutex::new(std::mem::take(&mut self.report)),
        };
        run.report().failures.extend(refused);
        let work = |_: &Pool<()>| {
            sys::private_descriptors(&[run.root]);
            run.work();
        };
        let ran = if begins { run.pool.run((), work).map(drop) } else { self.options.cancel.check() };
        self.report = run.report.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.report.threads = self.report.threads.max(used);
        if let Err(error) = ran {
            self.report.failures.truncate(before);
            return Err(error);
        }
        self.gain.learn(threads, self.report.files - written, began.elapsed());
        self.report.failures[before..].sort_by_key(|failure| failure.index);
        if stops {
            let first = self.report.failures.drain(before..).next();
            return first.map_or(Ok(()), |failure| Err(failure.error));
        }
        Ok(())
    }

    /// Flushes if requested, and returns the report.
    pub fn finish(mut self) -> Result<WriteReport, Error> {
        if self.options.flush == Flush::AtEnd && self.report.files > 0 {
            sys::open_at(&self.root, c".", OFlags::RDONLY | OFlags::DIRECTORY)
                .and_then(|root| sys::sync_file_system(root.as_fd()))
                .io(Operation::Sync, &self.root_path)?;
        }
        self.report.elapsed = self.started.elapsed();
        Ok(self.report)
    }
}

struct Run<'a> {
    root: BorrowedFd<'a>,
    root_path: &'a Path,
    options: &'a WriteOptions,
    units: &'a [Unit<'a>],
    next: AtomicUsize,
    pool: Pool<()>,
    report: Mutex<WriteReport>,
}

impl Run<'_> {
    fn work(&self) {
        let mut directories = Directories::new(self.root, self.root_path, self.options.directory);
        // If one file existed already, the next probably does, too.
        let mut expect_existing = false;
        while let Some(unit) = self.units.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.pool.stopped() {
                break;
            }
            let made_before = directories.made;
            match directories.open(&unit.directory) {
                Ok(directory) => self.fill(directory, unit, &mut expect_existing),
                Err(error) => self.directory_failed(unit, error),
            }
            self.report().directories += directories.made - made_before;
        }
    }

    fn fill(&self, directory: BorrowedFd<'_>, unit: &Unit<'_>, expect_existing: &mut bool) {
        let path = |name: &[u8]| plan::join(self.root_path, &unit.directory, name);
        let (mut files, mut bytes) = (0, 0);
        for item in &unit.items {
            if self.pool.stopped() {
                break;
            }
            let file = FileToWrite { directory, item, options: self.options, path: &path };
            match file.write(expect_existing) {
                Ok(()) => {
                    files += 1;
                    bytes += item.contents.len() as u64;
                }
                Err(error) => self.failed(item.index, error),
            }
        }
        self.count(files, bytes);
        if self.options.flush == Flush::EachFile && files > 0 {
            let synced = sys::open_at(directory, c".", OFlags::RDONLY | OFlags::DIRECTORY)
                .and_then(|fd| sys::sync_file(fd.as_fd()));
            if let Err(errno) = synced {
                let index = unit.items.first().map_or(0, |item| item.index);
                self.failed(index, Error::io(Operation::Sync, path(b""), errno));
            }
        }
    }

    fn count(&self, files: u64, bytes: u64) {
        let mut report = self.report();
        report.files += files;
        report.bytes += bytes;
        self.options.progress.add(files, bytes);
    }

    /// Reports the error for each file of the unit with [`OnError::Collect`], else for the first.
    fn directory_failed(&self, unit: &Unit<'_>, error: Error) {
        let mut items = unit.items.iter();
        if self.options.on_error == OnError::Collect {
            for item in items.by_ref().skip(1) {
                self.failed(item.index, directory::again(&error));
            }
        }
        if let Some(item) = unit.items.first() {
            self.failed(item.index, error);
        }
    }

    fn failed(&self, index: u64, error: Error) {
        if self.options.on_error == OnError::Stop {
            self.pool.stop();
        }
        self.report().failures.push(WriteFailure { index, error });
    }

    fn report(&self) -> MutexGuard<'_, WriteReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
