//! Removing excluded entries, and Calve's own, from a snapshot. The others are only listed, never opened.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::options::Decision;
use crate::remove::delete::{Deletion, delete};
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::held_times::times;
use crate::tree::location::DIRECTORY;
use crate::tree::node::node_of;
use crate::tree::notes::Notes;
use crate::tree::walk::{Descent, Folder, Walker, walk, whole_tree};
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};

struct Scrub<'a> {
    path: &'a Path,
    exclude: &'a Exclusions,
    notes: &'a Notes,
    deletion: &'a Deletion,
    /// Entries to delete in the directory being listed.
    unwanted: Vec<CString>,
    failure: Option<Error>,
}

/// Deletes every entry below `root` that is not selected, and sockets.
pub(crate) fn scrub(
    root: BorrowedFd<'_>,
    path: &Path,
    exclude: &Exclusions,
    notes: &Notes,
    deletion: &Deletion,
) -> Result<(), Error> {
    let scrub = || Scrub { path, exclude, notes, deletion, unwanted: Vec::new(), failure: None };
    let done = walk(&[root], vec![whole_tree(0)], deletion.threads, &deletion.cancel, scrub)?;
    done.into_iter().find_map(|scrub| scrub.failure).map_or(Ok(()), Err)
}

/// Deletes Calve's own entries in the `directories` below `root`, which need not exist, and nothing elsewhere.
pub(crate) fn scrub_own(
    root: BorrowedFd<'_>,
    path: &Path,
    directories: &[PathBuf],
    notes: &Notes,
    deletion: &Deletion,
) -> Result<(), Error> {
    let exclude = Exclusions::default();
    let scrub = Scrub { path, exclude: &exclude, notes, deletion, unwanted: Vec::new(), failure: None };
    for directory in directories {
        match node_of(directory).open(root, OFlags::RDONLY) {
            Ok(opened) => {
                let listed = sys::list(opened.as_fd())
                    .map_err(|errno| Error::io(Operation::ReadDirectory, path.join(directory), errno))?;
                let own = listed.into_iter().map(|(name, _)| name).filter(|name| is_calves_own(name.to_bytes()));
                scrub.delete(opened.as_fd(), directory, own.collect())?;
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => scrub.unopened(directory.clone(), errno)?,
        }
    }
    Ok(())
}

impl Walker for Scrub<'_> {
    fn open(&mut self, folder: &Folder<'_>, name: &CStr) -> sys::Result<Option<OwnedFd>> {
        let opened = sys::open_at(folder.directory, name, DIRECTORY);
        if let Err(errno) = opened
            && let Err(error) = self.unopened(folder.node.path_of(name), errno)
        {
            self.failure.get_or_insert(error);
        }
        Ok(opened.ok())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent {
        let path = || folder.path.join(sys::path(name));
        let decision = match kind {
            _ if is_calves_own(name.to_bytes()) => Decision::Leave,
            FileType::Socket => Decision::LeaveBecause(SkipReason::Socket),
            kind => self.exclude.choose(&path(), kind == FileType::Directory),
        };
        match decision {
            Decision::Take => return Descent::Yes,
            Decision::Leave => {}
            Decision::LeaveBecause(reason) => self.notes.skipped(path(), reason),
        }
        self.unwanted.push(name.to_owned());
        Descent::No
    }

    fn finished(&mut self, folder: &Folder<'_>) {
        let unwanted = std::mem::take(&mut self.unwanted);
        if let Err(error) = self.delete(folder.directory, folder.path, unwanted) {
            self.failure.get_or_insert(error);
        }
    }

    fn is_over(&self) -> bool {
        self.failure.is_some()
    }

    fn failed(&mut self, _tree: usize, path: PathBuf, errno: Errno) {
        self.failure.get_or_insert_with(|| Error::io(Operation::ReadDirectory, self.path.join(path), errno));
    }
}

impl Scrub<'_> {
    /// Deletes entries of a directory, and restores its times.
    fn delete(&self, directory: BorrowedFd<'_>, below: &Path, unwanted: Vec<CString>) -> Result<(), Error> {
        if unwanted.is_empty() {
            return Ok(());
        }
        let failed = |errno| Error::io(Operation::SetTimes, self.path.join(below), errno);
        let before = rustix::fs::fstat(directory).map_err(failed)?;
        let mut stays = false;
        for name in unwanted {
            let path = below.join(sys::path(&name));
            let is_own = is_calves_own(name.to_bytes());
            match delete(directory, &name, &self.path.join(&path), self.deletion) {
                Ok(_) if is_own => self.notes.skipped(path, SkipReason::CalvesOwn),
                Ok(_) => {}
                Err(error) if is_own && (error.is_errno(Errno::ACCESS) || error.is_errno(Errno::PERM)) => stays = true,
                Err(error) => return Err(error),
            }
        }
        if stays {
            let message = "what a `calve` of another user keeps there came with the snapshot".to_owned();
            self.notes.warn(WarningCode::NotScrubbed, Some(below.to_path_buf()), message);
        }
        rustix::fs::futimens(directory, &times(&before)).map_err(failed)
    }

    /// Warns of an unreadable directory. Its entries are another user's: they came with the snapshot, and stay.
    fn unopened(&self, path: PathBuf, errno: Errno) -> Result<(), Error> {
        if errno != Errno::ACCESS {
            return Err(Error::io(Operation::OpenDirectory, self.path.join(path), errno));
        }
        let message = "a directory that you may not read came with the snapshot as it is".to_owned();
        self.notes.warn(WarningCode::NotScrubbed, Some(path), message);
        Ok(())
    }
}
