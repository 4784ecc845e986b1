//! Filling a staged directory from a source, by several workers. A task is a directory.
//!
//! Further names of files are made when everything else is there, and directories get their times last of all, as whatever is made in
//! them changes those.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_SYSTEM, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_WRITE_ATTRIBUTES,
    READ_CONTROL,
};

use super::file::{LINK_FALLS_BACK, is_any, settable};
use super::location::below;
use crate::error::Error;
use crate::hidden::is_calves_own;
use crate::operation::Operation;
use crate::progress::{CancelToken, Progress};
use crate::reason::{SkipReason, WarningCode};
use crate::report::{Bytes, Entries};
use crate::sys::{self, Info};
use crate::tree::exclude::Exclusions;
use crate::tree::notes::Notes;
use crate::tree::pool::Pool;

/// The way in which files are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Files {
    Copy,
    /// `strict`: the caller insists on shared blocks, so that a file that cannot be shared ends the run.
    Reflink {
        strict: bool,
    },
    Hardlink,
}

/// One filling: what all workers know.
pub(super) struct Fill<'a> {
    /// The source's root. With `single` it is the directory that the source is in.
    pub(super) src: &'a Path,
    pub(super) dst: &'a Path,
    /// The same for messages.
    pub(super) shown_src: &'a Path,
    pub(super) shown_dst: &'a Path,
    /// The one entry to be made; it is not a directory.
    pub(super) single: Option<&'a OsStr>,
    pub(super) files: Files,
    /// Every file is written to the disk.
    pub(super) sync: bool,
    pub(super) exclude: &'a Exclusions,
    pub(super) notes: &'a Notes,
    pub(super) progress: &'a Progress,
    pub(super) cancel: &'a CancelToken,
    pub(super) threads: usize,
}

/// The result.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct FillTally {
    pub(super) entries: Entries,
    pub(super) bytes: Bytes,
}

#[derive(Default)]
struct FillState {
    /// The first name of each file that has several.
    names: Mutex<HashMap<sys::Identity, PathBuf>>,
    /// The others: what they are further names of, and they.
    further: Mutex<Vec<(PathBuf, PathBuf)>>,
    /// The metadata that directories get at the end.
    directories: Mutex<Vec<(PathBuf, Info)>>,
}

pub(super) struct FillWorker<'f> {
    pub(super) fill: &'f Fill<'f>,
    shared: &'f FillState,
    pub(super) tally: FillTally,
}

/// Fills the empty directory `fill.dst`.
pub(super) fn fill(fill: &Fill<'_>) -> Result<FillTally, Error> {
    let shared = FillState::default();
    let mut last = FillWorker { fill, shared: &shared, tally: FillTally::default() };
    if let Some(name) = fill.single {
        last.single(Path::new(name))?;
        return Ok(last.tally);
    }
    let pool = Pool::new(fill.threads, fill.cancel.clone());
    let tallies = pool.run(PathBuf::new(), |pool| {
        let mut worker = FillWorker { fill, shared: &shared, tally: FillTally::default() };
        let mut own = Vec::new();
        while let Some(task) = pool.next() {
            own.push(task);
            while let Some(directory) = own.pop() {
                if pool.stopped() {
                    break;
                }
                if let Err(error) = worker.directory(&directory, &mut own) {
                    pool.fail(error);
                }
                if pool.hungry() && own.len() > 1 {
                    own.drain(..own.len() / 2).for_each(|task| pool.give(task));
                }
            }
        }
        worker.tally
    })?;
    last.further_names(take(&shared.further))?;
    last.finish_directories(take(&shared.directories))?;
    Ok(tallies.into_iter().fold(last.tally, FillTally::plus))
}

fn take<T: Default>(from: &Mutex<T>) -> T {
    std::mem::take(&mut from.lock().unwrap_or_else(PoisonError::into_inner))
}

impl FillWorker<'_> {
    fn single(&mut self, name: &Path) -> Result<(), Error> {
        let info =
            sys::look(&self.fill.src.join(name)).map_err(|error| self.src_error(Operation::Stat, name, error))?;
        if info.is_link() { self.link(name) } else { self.file(name) }
    }

    /// Makes every entry of one directory; the directories among them become tasks.
    fn directory(&mut self, relative: &Path, tasks: &mut Vec<PathBuf>) -> Result<(), Error> {
        let (src, dst) = self.paths(relative);
        let before = (self.tally.entries.total(), self.tally.bytes.apparent);
        // Nobody can put a link in the copy's place while its entries are made.
        let lost = || Error::StagingLost(self.fill.shown_dst.to_path_buf());
        let pinned = sys::patiently(sys::PATIENCE, || sys::pin(&dst))
            .map_err(|error| self.dst_error(Operation::OpenDirectory, relative, error))?;
        let _pinned = pinned.ok_or_else(lost)?;
        let access = FILE_LIST_DIRECTORY | FILE_READ_ATTRIBUTES | READ_CONTROL;
        let Some(directory) = self.open_source(relative, access)? else { return Ok(()) };
        let info = sys::info(&directory).map_err(|error| self.src_error(Operation::Stat, relative, error))?;
        if info.is_link() || !info.is_directory() {
            self.fill.notes.changed(relative.to_path_buf());
            return Ok(());
        }
        // First, as it is what the entries inherit.
        self.keep_access(&directory, &dst, relative)?;
        self.streams(&src, &dst, relative)?;
        self.shared.directories.lock().unwrap_or_else(PoisonError::into_inner).push((relative.to_path_buf(), info));
        self.tally.entries.directories += 1;
        let failed = |error| self.src_error(Operation::ReadDirectory, relative, error);
        let entries: Vec<_> = std::fs::read_dir(&src).map_err(failed)?.collect::<io::Result<_>>().map_err(failed)?;
        for entry in entries {
            if self.fill.cancel.is_cancelled() {
                return Err(Error::Interrupted);
            }
            let (name, kind) = (entry.file_name(), entry.file_type());
            let path = relative.join(&name);
            let kind = kind.map_err(|error| self.src_error(Operation::Stat, &path, error))?;
            if is_calves_own(name.as_encoded_bytes()) {
                self.fill.notes.skipped(path, SkipReason::CalvesOwn);
            } else if !self.fill.exclude.is_empty() && self.fill.exclude.matches(&path, kind.is_dir()) {
                self.fill.notes.skipped(path, SkipReason::Excluded);
            } else if kind.is_symlink() {
                self.link(&path)?;
            } else if kind.is_dir() {
                std::fs::create_dir(dst.join(&name))
                    .map_err(|error| self.dst_error(Operation::CreateDirectory, &path, error))?;
                tasks.push(path);
            } else {
                self.file(&path)?;
            }
        }
        self.fill.progress.add(self.tally.entries.total() - before.0, self.tally.bytes.apparent - before.1);
        Ok(())
    }

    /// Returns whether the file has been met under another name; then this one is made later.
    pub(super) fn is_further_name(&self, info: &Info, relative: &Path) -> bool {
        let mut names = self.shared.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(&info.identity) {
            None => {
                names.insert(info.identity, relative.to_path_buf());
                false
            }
            Some(first) => {
                let pair = (first.clone(), relative.to_path_buf());
                self.shared.further.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
                true
            }
        }
    }

    fn further_names(&mut self, further: Vec<(PathBuf, PathBuf)>) -> Result<(), Error> {
        // A file that is made instead of a link is one of its own.
        take(&self.shared.names);
        for (first, name) in further {
            let (made, dst) = (self.fill.dst.join(first), self.fill.dst.join(&name));
            match std::fs::hard_link(made, dst) {
                Ok(()) => self.tally.entries.hard_links += 1,
                // The first has gone, and was not made.
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.file(&name)?,
                Err(error) if is_any(&error, &LINK_FALLS_BACK) => {
                    self.fill.notes.not_kept(WarningCode::HardLinkNotKept, "hard link", error, || name.clone());
                    take(&self.shared.names);
                    self.file(&name)?;
                }
                Err(error) => return Err(self.dst_error(Operation::CreateLink, &name, error)),
            }
        }
        Ok(())
    }

    fn finish_directories(&self, mut directories: Vec<(PathBuf, Info)>) -> Result<(), Error> {
        // The deepest first: what is done to one may change the time of the one that it is in.
        directories.sort_by_key(|(path, _)| std::cmp::Reverse(path.components().count()));
        for (relative, mut info) in directories {
            let (src, dst) = self.paths(&relative);
            if src.parent().is_none() {
                // The root of a volume has these, which would put the clone out of sight.
                info.attributes &= !(FILE_ATTRIBUTE_HIDDEN | FILE_ATTRIBUTE_SYSTEM);
            }
            let set = || {
                let copy = sys::open(&dst, FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES)?;
                sys::set_basic(&copy, info.times, settable(info.attributes))?;
                sys::info(&copy)
            };
            let now = sys::patiently(sys::PATIENCE, set)
                .map_err(|error| self.dst_error(Operation::SetTimes, &relative, error))?;
            self.compare_attributes(&info, &now, &relative);
        }
        Ok(())
    }

    /// Opens an entry of the source. Returns `None` if the entry has gone since its directory was read; then its copy, if there is one,
    /// goes too.
    pub(super) fn open_source(&self, relative: &Path, access: u32) -> Result<Option<File>, Error> {
        let (src, dst) = self.paths(relative);
        match sys::patiently(sys::PATIENCE, || sys::open(&src, access)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !relative.as_os_str().is_empty() => {
                let _ = std::fs::remove_dir(dst);
                self.fill.notes.changed(relative.to_path_buf());
                Ok(None)
            }
            Err(error) => Err(self.src_error(Operation::Open, relative, error)),
        }
    }

    pub(super) fn paths(&self, relative: &Path) -> (PathBuf, PathBuf) {
        (below(self.fill.src, relative), below(self.fill.dst, relative))
    }

    pub(super) fn src_error(&self, operation: Operation, relative: &Path, error: io::Error) -> Error {
        Error::io(operation, self.shown(self.fill.shown_src, relative), error)
    }

    pub(super) fn dst_error(&self, operation: Operation, relative: &Path, error: io::Error) -> Error {
        Error::io(operation, self.shown(self.fill.shown_dst, relative), error)
    }

    fn shown(&self, root: &Path, relative: &Path) -> PathBuf {
        if self.fill.single.is_some() { root.to_path_buf() } else { below(root, relative) }
    }
}

impl FillTally {
    fn plus(mut self, other: Self) -> Self {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self
    }
}
