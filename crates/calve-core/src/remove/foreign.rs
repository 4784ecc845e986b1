//! Entries of another user that this one cannot delete: found before the tree is moved out of sight.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::{DIRECTORY, Location};
use crate::tree::node::{Node, full_path};
use crate::vocabulary::operation::Operation;

/// Search limits, level by level: a removal must not take longer for a large tree. The rest shows during deletion.
const DIRECTORIES: usize = 256;
const ENTRIES: usize = 8192;

/// Refuses a tree with a directory of another user that this one cannot empty: a rename would only hide it, for good.
pub(super) fn refuse_what_cannot_be_deleted(location: &Location) -> Result<(), Error> {
    if rustix::process::geteuid().is_root() || !location.stat()?.is_some_and(sys::is_directory) {
        return Ok(());
    }
    let Some(found) = find(location) else { return Ok(()) };
    let path = full_path(location.path(), &found.path());
    Err(Error::io(Operation::DeleteContents, path, Errno::ACCESS))
}

fn find(location: &Location) -> Option<Arc<Node>> {
    let root = match open(location.parent(), location.name()) {
        Ok(root) => root?,
        Err(Foreign) => return Some(Node::root()),
    };
    let (mut waiting, mut entries, mut buffer) = (VecDeque::from([Node::root()]), 0, ListingBuffer::new());
    for _ in 0..DIRECTORIES {
        let node = waiting.pop_front()?;
        let opened = match node.parent() {
            None => open(root.as_fd(), c"."),
            Some((above, name)) => match above.open(root.as_fd(), OFlags::RDONLY) {
                Ok(above) => open(above.as_fd(), name),
                Err(_) => Ok(None),
            },
        };
        let directory = match opened {
            Ok(Some(directory)) => directory,
            Ok(None) => continue,
            Err(Foreign) => return Some(node),
        };
        let Ok(stat) = rustix::fs::fstat(&directory) else { continue };
        let (can_be_emptied, keeps_others) = (may_empty(directory.as_fd(), &stat), keeps_others(&stat));
        let Ok(mut listing) = Listing::new(directory.as_fd(), &mut buffer) else { continue };
        while let Some(Ok(entry)) = listing.next() {
            // An empty directory goes with its parent.
            let is_own = || sys::stat_at(&directory, entry.name).is_ok_and(|stat| is_mine(&stat));
            if !can_be_emptied || keeps_others && !is_own() {
                return Some(node);
            }
            if matches!(entry.kind, FileType::Directory | FileType::Unknown) {
                waiting.push_back(Node::child(&node, entry.name));
            }
            entries += 1;
            if entries > ENTRIES {
                return None;
            }
        }
    }
    None
}

/// A directory of another user that this one may not even list.
struct Foreign;

/// Opens a directory. Returns `None` if it is not one, gone, or this user's own without permission, to be opened up.
fn open(parent: BorrowedFd<'_>, name: &CStr) -> Result<Option<OwnedFd>, Foreign> {
    match sys::open_at(parent, name, DIRECTORY) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::ACCESS) if sys::stat_at(parent, name).is_ok_and(|stat| !is_mine(&stat)) => Err(Foreign),
        Err(_) => Ok(None),
    }
}

/// Returns whether this user may delete entries of its own in a directory. An owner without permission takes it.
fn may_empty(directory: BorrowedFd<'_>, stat: &Stat) -> bool {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    is_mine(stat) || !matches!(rustix::fs::accessat(directory, c".", wanted, AtFlags::EACCESS), Err(Errno::ACCESS))
}

/// Returns whether the sticky bit of a directory keeps this user from removing and renaming other users' entries.
pub(crate) fn keeps_others(directory: &Stat) -> bool {
    let is_sticky = Mode::from_raw_mode(directory.st_mode).contains(Mode::SVTX);
    is_sticky && !is_mine(directory) && !rustix::process::geteuid().is_root()
}

pub(crate) fn is_mine(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
}
