//! Entries that another user owns inside a tree, and this one cannot delete: looked for before the tree is moved out of sight.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags, FileType, OFlags};
use rustix::io::Errno;

use crate::error::Error;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::location::Location;
use crate::tree::node::Node;
use crate::vocabulary::operation::Operation;

/// How much is looked at, level by level: a removal must not take longer because the tree is large. The rest shows when it is deleted.
const DIRECTORIES: usize = 256;
const ENTRIES: usize = 8192;

/// Refuses a tree with a directory that another user owns and this one cannot empty: a rename would only hide it, for good.
pub(super) fn refuse_what_cannot_be_deleted(location: &Location) -> Result<(), Error> {
    let is_directory = |stat: rustix::fs::Stat| sys::is_directory(stat);
    if rustix::process::geteuid().is_root() || !location.stat()?.is_some_and(is_directory) {
        return Ok(());
    }
    let refuse = |below: Option<&Node>| {
        let path = below.map_or_else(|| location.path().into(), |node| location.path().join(node.path()));
        Err(Error::io(Operation::DeleteContents, path, Errno::ACCESS))
    };
    let root = match open(location.parent(), location.name()) {
        ForeignEntry::Directory(root) => root,
        ForeignEntry::Undeletable => return refuse(None),
        ForeignEntry::Nothing => return Ok(()),
    };
    let mut search = Search { waiting: VecDeque::from([Node::root()]), entries: 0, listing: ListingBuffer::new() };
    for _ in 0..DIRECTORIES {
        let Some(node) = search.waiting.pop_front() else { break };
        match search.visit(root.as_fd(), &node) {
            ForeignVerdict::Undeletable if node.parent().is_none() => return refuse(None),
            ForeignVerdict::Undeletable => return refuse(Some(&node)),
            ForeignVerdict::Enough => break,
            ForeignVerdict::GoOn => {}
        }
    }
    Ok(())
}

enum ForeignEntry {
    Directory(OwnedFd),
    /// Another user's, which this user may not even list.
    Undeletable,
    /// Not a directory, gone, or one of this user's that he will have to open up first.
    Nothing,
}

enum ForeignVerdict {
    GoOn,
    Undeletable,
    Enough,
}

struct Search {
    waiting: VecDeque<Arc<Node>>,
    entries: usize,
    listing: ListingBuffer,
}

impl Search {
    fn visit(&mut self, root: BorrowedFd<'_>, node: &Arc<Node>) -> ForeignVerdict {
        let found = match node.parent() {
            None => open(root, c"."),
            Some((above, name)) => match above.open(root, OFlags::RDONLY) {
                Ok(above) => open(above.as_fd(), name),
                Err(_) => ForeignEntry::Nothing,
            },
        };
        let directory = match found {
            ForeignEntry::Directory(directory) => directory,
            ForeignEntry::Undeletable => return ForeignVerdict::Undeletable,
            ForeignEntry::Nothing => return ForeignVerdict::GoOn,
        };
        let can_be_emptied = may_empty(directory.as_fd());
        let Ok(mut listing) = Listing::new(directory.as_fd(), &mut self.listing) else { return ForeignVerdict::GoOn };
        while let Some(Ok(entry)) = listing.next() {
            // An empty directory goes with the one that it is in.
            if !can_be_emptied {
                return ForeignVerdict::Undeletable;
            }
            if matches!(entry.kind, FileType::Directory | FileType::Unknown) {
                self.waiting.push_back(Node::child(node, entry.name));
            }
            self.entries += 1;
            if self.entries > ENTRIES {
                return ForeignVerdict::Enough;
            }
        }
        ForeignVerdict::GoOn
    }
}

fn open(parent: BorrowedFd<'_>, name: &CStr) -> ForeignEntry {
    match sys::open_at(parent, name, crate::tree::location::DIRECTORY) {
        Ok(directory) => ForeignEntry::Directory(directory),
        Err(Errno::ACCESS) => match sys::stat_at(parent, name) {
            Ok(stat) if stat.st_uid != rustix::process::geteuid().as_raw() => ForeignEntry::Undeletable,
            _ => ForeignEntry::Nothing,
        },
        Err(_) => ForeignEntry::Nothing,
    }
}

/// Returns whether this user may delete the entries of a directory. The owner gives himself the permission where he lacks it.
fn may_empty(directory: BorrowedFd<'_>) -> bool {
    let is_own = |stat: rustix::fs::Stat| stat.st_uid == rustix::process::geteuid().as_raw();
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::fstat(directory).is_ok_and(is_own)
        || !matches!(rustix::fs::accessat(directory, c".", wanted, AtFlags::EACCESS), Err(Errno::ACCESS))
}
