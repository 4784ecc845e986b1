//! Removing excluded entries, and Calve's own, from a snapshot. The others are only listed, never opened.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::options::Decision;
use crate::remove::delete::{Deletion, delete};
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclusions;
use crate::tree::held_times::times;
use crate::tree::location::DIRECTORY;
use crate::tree::node::{Names, Node, node_of};
use crate::tree::notes::Notes;
use crate::tree::pool::Pool;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};

/// Below this depth a directory is opened from the root again, so that few descriptors are open.
const MOST_OPEN: usize = 24;

struct Scrub<'a> {
    root: BorrowedFd<'a>,
    /// For messages.
    path: &'a Path,
    exclude: &'a Exclusions,
    notes: &'a Notes,
    deletion: &'a Deletion,
}

/// Deletes every entry below `root` that is not selected, and sockets.
pub(crate) fn scrub(
    root: BorrowedFd<'_>,
    path: &Path,
    exclude: &Exclusions,
    notes: &Notes,
    deletion: &Deletion,
) -> Result<(), Error> {
    let pool = Pool::new(deletion.threads, deletion.cancel.clone());
    let scrub = Scrub { root, path, exclude, notes, deletion };
    pool.run(Node::root(), |pool| {
        let mut buffer = ListingBuffer::new();
        while let Some(node) = pool.next() {
            let opened = node.open(scrub.root, OFlags::RDONLY);
            let done = match opened {
                Ok(directory) => scrub.directory(pool, &node, directory, &mut buffer, 0),
                Err(errno) => scrub.unopened(&node, errno),
            };
            if let Err(error) = done {
                pool.fail(error);
            }
        }
    })?;
    Ok(())
}

/// Deletes Calve's own entries in the `directories` below `root`, of which some may not exist, and nothing below the others.
pub(crate) fn scrub_own(
    root: BorrowedFd<'_>,
    path: &Path,
    directories: &[PathBuf],
    notes: &Notes,
    deletion: &Deletion,
) -> Result<(), Error> {
    let exclude = Exclusions::default();
    let scrub = Scrub { root, path, exclude: &exclude, notes, deletion };
    let mut buffer = ListingBuffer::new();
    for directory in directories {
        let node = node_of(directory);
        match node.open(root, OFlags::RDONLY) {
            Ok(opened) => scrub.own(&node, opened.as_fd(), &mut buffer)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => scrub.unopened(&node, errno)?,
        }
    }
    Ok(())
}

impl Scrub<'_> {
    fn own(&self, node: &Arc<Node>, directory: BorrowedFd<'_>, buffer: &mut ListingBuffer) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::ReadDirectory, self.path.join(node.path()), errno);
        let mut doomed = Names::default();
        let mut listing = Listing::new(directory, buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            if is_calves_own(entry.name.to_bytes()) {
                doomed.push_back((entry.kind, entry.name.to_owned()));
            }
        }
        if doomed.is_empty() {
            return Ok(());
        }
        let failed = |errno| Error::io(Operation::SetTimes, self.path.join(node.path()), errno);
        let before = rustix::fs::fstat(directory).map_err(failed)?;
        let mut stays = false;
        for (_, name) in doomed {
            let path = node.path_of(&name);
            match delete(directory, &name, &self.path.join(&path), self.deletion) {
                Ok(_) => self.notes.skipped(path, SkipReason::CalvesOwn),
                Err(error) if error.is_errno(Errno::ACCESS) || error.is_errno(Errno::PERM) => stays = true,
                Err(error) => return Err(error),
            }
        }
        if stays {
            let message = "what a `calve` of another user keeps there came with the snapshot".to_owned();
            self.notes.warn(WarningCode::NotScrubbed, Some(node.path()), message);
        }
        rustix::fs::futimens(directory, &times(&before)).map_err(failed)
    }

    fn directory(
        &self,
        pool: &Pool<Arc<Node>>,
        node: &Arc<Node>,
        directory: OwnedFd,
        buffer: &mut ListingBuffer,
        depth: usize,
    ) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::ReadDirectory, self.path.join(node.path()), errno);
        let mut below = Names::default();
        let mut doomed = Names::default();
        let mut path = node.path();
        let mut listing = Listing::new(directory.as_fd(), buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            path.push(sys::path(entry.name));
            let of = match entry.kind {
                FileType::Socket => Decision::LeaveBecause(SkipReason::Socket),
                _ if is_calves_own(entry.name.to_bytes()) => Decision::LeaveBecause(SkipReason::CalvesOwn),
                kind => self.exclude.choose(&path, kind == FileType::Directory),
            };
            match of {
                Decision::Take if entry.kind == FileType::Directory => below.push_back((entry.kind, entry.name.to_owned())),
                Decision::Take => {}
                Decision::Leave => doomed.push_back((entry.kind, entry.name.to_owned())),
                Decision::LeaveBecause(reason) => {
                    self.notes.skipped(path.clone(), reason);
                    doomed.push_back((entry.kind, entry.name.to_owned()));
                }
            }
            path.pop();
        }
        if !doomed.is_empty() {
            self.delete(node, directory.as_fd(), doomed)?;
        }
        for (_, name) in below {
            if pool.stopped() {
                return Ok(());
            }
            let child = Node::child(node, &name);
            if depth >= MOST_OPEN || pool.hungry() {
                pool.give(child);
                continue;
            }
            match sys::open_at(directory.as_fd(), &*name, DIRECTORY) {
                Ok(opened) => self.directory(pool, &child, opened, buffer, depth + 1)?,
                Err(errno) => self.unopened(&child, errno)?,
            }
        }
        Ok(())
    }

    /// Deletes the entries `doomed` of a directory, and gives the directory its times back.
    fn delete(&self, node: &Arc<Node>, directory: BorrowedFd<'_>, doomed: Names) -> Result<(), Error> {
        let failed = |errno| Error::io(Operation::SetTimes, self.path.join(node.path()), errno);
        let before = rustix::fs::fstat(directory).map_err(failed)?;
        for (_, name) in doomed {
            delete(directory, &name, &self.path.join(node.path_of(&name)), self.deletion)?;
        }
        rustix::fs::futimens(directory, &times(&before)).map_err(failed)
    }

    /// Warns of a directory that cannot be read. Its entries are another user's, so they came with the snapshot and stay.
    fn unopened(&self, node: &Node, errno: Errno) -> Result<(), Error> {
        if errno != Errno::ACCESS {
            return Err(Error::io(Operation::OpenDirectory, self.path.join(node.path()), errno));
        }
        let message = "a directory that you may not read came with the snapshot as it is".to_owned();
        self.notes.warn(WarningCode::NotScrubbed, Some(node.path()), message);
        Ok(())
    }
}
