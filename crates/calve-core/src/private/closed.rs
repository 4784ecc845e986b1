//! What a command has left in its private copy that is closed to its own user: Calve has to read it all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};

use super::changes::{add_names, file_type};
use crate::sys;
use crate::tree::location::DIRECTORY;
use crate::tree::node::{Node, node_of};

const PERMISSIONS: RawMode = 0o7777;

/// The modes that the command gave to entries which are open meanwhile.
#[derive(Default)]
pub(super) struct ClosedEntries(BTreeMap<PathBuf, Modes>);

struct Modes {
    closed: RawMode,
    open: RawMode,
}

impl ClosedEntries {
    /// Opens what is closed in the directory `name` and below, that directory too.
    pub(super) fn open(&mut self, above: BorrowedFd<'_>, name: &CStr) -> sys::Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        self.open_entry(above, name, PathBuf::new)?;
        let root = sys::open_at(above, name, DIRECTORY, Mode::empty())?;
        let mut next = vec![Node::root()];
        while let Some(node) = next.pop() {
            let directory = node.open(root.as_fd(), OFlags::RDONLY)?;
            let mut names = BTreeSet::new();
            add_names(directory.as_fd(), &mut names)?;
            for name in &names {
                if self.open_entry(directory.as_fd(), name, || node.path_of(name))? {
                    next.push(Node::child(&node, name));
                }
            }
        }
        Ok(())
    }

    /// Opens one entry, if it is closed. Returns whether it is a directory.
    fn open_entry(&mut self, above: BorrowedFd<'_>, name: &CStr, path: impl FnOnce() -> PathBuf) -> sys::Result<bool> {
        let stat = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let needed = match file_type(&stat) {
            FileType::Directory => 0o500,
            FileType::RegularFile => 0o400,
            _ => return Ok(false),
        };
        let closed = stat.st_mode as RawMode & PERMISSIONS;
        let open = closed | needed;
        if closed != open && stat.st_uid == rustix::process::geteuid().as_raw() {
            sys::set_mode_of_name(above, name, Mode::from_raw_mode(open))?;
            self.0.insert(path(), Modes { closed, open });
        }
        Ok(needed == 0o500)
    }

    /// Returns the entry as the command left it.
    pub(super) fn told(&self, path: impl FnOnce() -> PathBuf, mut stat: Stat) -> Stat {
        if !self.0.is_empty()
            && let Some(modes) = self.0.get(&path())
            // Else a process that the command left behind has changed it since.
            && stat.st_mode as RawMode & PERMISSIONS == modes.open
        {
            stat.st_mode = (stat.st_mode & !0o7777) | modes.closed;
        }
        stat
    }

    /// Closes the entries below `root` that are among those `chosen`.
    pub(super) fn close(&self, root: BorrowedFd<'_>, chosen: impl Fn(&Path) -> bool) -> sys::Result<()> {
        // The deepest first: nothing is reached through a closed directory.
        for (path, modes) in self.0.iter().rev().filter(|(path, _)| chosen(path)) {
            let Some(name) = path.file_name() else { continue };
            let name = CString::new(name.as_bytes()).unwrap_or_default();
            let above = node_of(path.parent().unwrap_or(Path::new(""))).open(root, sys::PATH_ONLY)?;
            sys::set_mode_of_name(above.as_fd(), &name, Mode::from_raw_mode(modes.closed))?;
        }
        Ok(())
    }

    /// Returns the mode that the command gave to the root, if that is open meanwhile.
    pub(super) fn of_root(&self) -> Option<Mode> {
        self.0.get(Path::new("")).map(|modes| Mode::from_raw_mode(modes.closed))
    }
}
