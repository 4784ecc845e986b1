//! The hidden directory for everything that a bench makes, removed whatever happens.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Stdio, id};
use std::thread;
use std::time::{Duration, Instant};

use calve_core::error::Operation;
use calve_core::internal::ShownPath;
use calve_core::{CancelToken, Error, RemovalWait, RemoveOptions, probe, remove_tree};
use calve_receipt::bench::Location;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, StatVfs};
use rustix::io::Errno;

use crate::error::BenchError;
use crate::machine::mount_options;
use crate::remedy::Remedy;
use crate::report::Report;

/// Removed on drop, and at every end of the bench but `kill -9`.
pub(crate) struct Scratch<'a> {
    pub(crate) path: PathBuf,
    directory: OwnedFd,
    next: u32,
    pub(crate) runs: Vec<PathBuf>,
    removed: bool,
    /// Reports remains of this bench and of earlier ones.
    say: &'a dyn Fn(&str),
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

const PREFIX: &str = ".calve-bench-";
const STDERR: &str = "stderr";

impl<'a> Scratch<'a> {
    pub(crate) fn make(into: &Path, say: &'a dyn Fn(&str)) -> Result<Self, BenchError> {
        let into = real_path(into)?;
        if !into.is_dir() {
            let text = format!("`{}` is not a directory", ShownPath(&into));
            return Err(BenchError::usage(text, Remedy::ChooseDirectory));
        }
        tell_of_earlier_ones(&into, say);
        let path = reserve(&into)?;
        let directory = open(&path).map_err(|errno| {
            // It is empty, and nothing else would remove it.
            let _ = rustix::fs::rmdir(&path);
            unusable(&path, errno)
        })?;
        // Without such locks, the next bench only has nothing to report.
        hold(&directory);
        let scratch = Self { path, directory, next: 0, runs: Vec::new(), removed: false, say };
        // It may be in a git work tree.
        fs_err::write(scratch.path.join(".gitignore"), "*\n")
            .map_err(|error| BenchError::failed(error.to_string(), Remedy::FreeSpaceOrChooseAnotherPlace))?;
        Ok(scratch)
    }

    /// Returns a new path, which [`Self::delete_runs`] deletes.
    pub(crate) fn next_run(&mut self) -> PathBuf {
        self.next += 1;
        let path = self.path.join(format!("run-{}", self.next));
        self.runs.push(path.clone());
        path
    }

    pub(crate) fn delete_runs(&mut self, cancel: &CancelToken) -> Result<(), BenchError> {
        for path in std::mem::take(&mut self.runs) {
            delete(&path, cancel)?;
        }
        Ok(())
    }

    pub(crate) fn delete_last_run(&mut self, cancel: &CancelToken) -> Result<(), BenchError> {
        self.runs.pop().map_or(Ok(()), |path| delete(&path, cancel))
    }

    /// Returns an empty file for a program's stderr.
    pub(crate) fn stderr(&self) -> Result<Stdio, BenchError> {
        Ok(Stdio::from(File::from(fs_err::File::create(self.path.join(STDERR))?)))
    }

    /// Returns the last program's stderr on one line.
    pub(crate) fn said(&self) -> String {
        const LONGEST: usize = 400;
        let bytes = fs_err::read(self.path.join(STDERR)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LONGEST)]).into_owned();
        let here = format!("{}/", self.path.display());
        let plain = text.replace(&here, "").split_whitespace().collect::<Vec<_>>().join(" ");
        plain.chars().filter(|c| !c.is_control()).take(LONGEST).collect()
    }

    /// Returns the file system's used space in bytes, as `df` shows it.
    pub(crate) fn used_bytes(&self) -> Result<u64, BenchError> {
        let stat = self.stat()?;
        Ok(stat.f_blocks.saturating_sub(stat.f_bfree) * stat.f_frsize)
    }

    pub(crate) fn free(&self) -> Result<Room, BenchError> {
        let stat = self.stat()?;
        // btrfs reports no number of inodes.
        let inodes = if stat.f_files == 0 { u64::MAX } else { stat.f_favail };
        Ok(Room { bytes: stat.f_bavail * stat.f_frsize, inodes })
    }

    fn stat(&self) -> Result<StatVfs, BenchError> {
        rustix::fs::fstatvfs(&self.directory).map_err(|errno| self.failed(Operation::Stat, errno))
    }

    /// Writes everything to the disk, so that no run pays for another's writes.
    pub(crate) fn flush(&self) -> Result<(), BenchError> {
        #[cfg(target_os = "linux")]
        rustix::fs::syncfs(&self.directory).map_err(|errno| self.failed(Operation::Sync, errno))?;
        #[cfg(not(target_os = "linux"))]
        rustix::fs::sync();
        Ok(())
    }

    /// Waits after a deletion until the used space stands still: file systems free it in the background.
    pub(crate) fn wait_for_freed_space(&self) -> Result<(), BenchError> {
        let give_up = Instant::now() + Duration::from_secs(20);
        let mut before = None;
        while Instant::now() < give_up {
            self.flush()?;
            let now = self.used_bytes()?;
            if before == Some(now) {
                break;
            }
            before = Some(now);
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub(crate) fn add_to(&self, report: &mut Report, label: &'static str) -> Result<(), BenchError> {
        let into = self.path.parent().unwrap_or(&self.path);
        let place = probe(&self.path, &self.path)?.dst;
        let (mount_options, file_system) = (mount_options(&place), place.file_system);
        report.circumstance(label, format!("`{}`, {file_system}, mounted {mount_options}", ShownPath(into)));
        let path = calve_receipt::path(into);
        report.document.facts.target = Some(Location { path, file_system, mount_options });
        Ok(())
    }

    fn failed(&self, operation: Operation, errno: Errno) -> BenchError {
        Error::Io { operation, path: self.path.clone(), source: errno.into() }.into()
    }

    /// Removes everything, and fails where a drop would only report.
    pub(crate) fn remove(mut self) -> Result<(), BenchError> {
        self.removed = true;
        // A token of its own: an interrupted bench cleans up as well.
        delete(&self.path, &CancelToken::default())
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.removed
            && let Err(failure) = delete(&self.path, &CancelToken::default())
        {
            (self.say)(&failure.to_string());
        }
    }
}

/// Returns a path without links. A missing one is the engine's error, in its words.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, BenchError> {
    fs_err::canonicalize(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Missing(path.to_path_buf()).into(),
        _ => BenchError::failed(error.to_string(), Remedy::ChooseReachableDirectory),
    })
}

fn reserve(into: &Path) -> Result<PathBuf, BenchError> {
    let mut number = 0_u32;
    loop {
        let path = into.join(format!("{PREFIX}{}-{number}", id()));
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) => return Ok(path),
            Err(Errno::EXIST) => number += 1,
            Err(errno) => return Err(unusable(into, errno)),
        }
    }
}

fn unusable(path: &Path, errno: Errno) -> BenchError {
    let hint = match errno {
        Errno::ROFS => Remedy::LeaveReadOnlyPlace,
        Errno::NOSPC | Errno::DQUOT => Remedy::FreeSpaceOrChooseAnotherPlace,
        _ => Remedy::ChooseWritablePlace,
    };
    let text = format!("make a directory in `{}`: {}", ShownPath(path), std::io::Error::from(errno));
    BenchError::failed(text, hint)
}

/// Reports directories of killed benches, which no process holds: their files are the user's to delete.
fn tell_of_earlier_ones(into: &Path, say: &dyn Fn(&str)) {
    for entry in std::iter::once(fs_err::read_dir(into)).flatten().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) && open(&path).is_ok_and(|it| hold(&it))
        {
            let shown = ShownPath(&path);
            say(&format!("a bench that was killed left `{shown}`, which you may delete"));
        }
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty())
}

/// Locks a directory until this process ends. Returns false if another process holds it.
fn hold(directory: &OwnedFd) -> bool {
    rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive).is_ok()
}

pub(crate) fn delete(path: &Path, cancel: &CancelToken) -> Result<(), BenchError> {
    let options = RemoveOptions { wait: RemovalWait::Yes, cancel: cancel.clone(), ..RemoveOptions::default() };
    match remove_tree(path, &options) {
        Ok(_) | Err(Error::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
