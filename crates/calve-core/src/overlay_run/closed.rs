//! Opens entries that a command has closed to its own user, because Calve has to read them, and closes them again.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, RawMode, Stat};

use crate::sys;
use crate::tree::location::DIRECTORY;
use crate::tree::node::{Node, open_above};

const PERMISSIONS: RawMode = 0o7777;

/// The entries that are open meanwhile, with the modes that the command gave them.
#[derive(Default)]
pub(super) struct ClosedEntries(BTreeMap<PathBuf, Modes>);

struct Modes {
    closed: RawMode,
    open: RawMode,
}

impl ClosedEntries {
    /// Opens the closed entries of the directory `name` and below, and the directory itself.
    pub(super) fn open(&mut self, above: BorrowedFd<'_>, name: &CStr) -> sys::Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        self.open_entry(above, name, PathBuf::new)?;
        let root = sys::open_at(above, name, DIRECTORY)?;
        let mut next = vec![Node::root()];
        while let Some(node) = next.pop() {
            let Some(directory) = sys::unless_gone(node.open(root.as_fd(), OFlags::RDONLY))? else { continue };
            for (name, _) in sys::list(directory.as_fd())? {
                if self.open_entry(directory.as_fd(), &name, || node.path_of(&name))? {
                    next.push(Node::child(&node, &name));
                }
            }
        }
        Ok(())
    }

    /// Returns whether the entry is a directory. A process that the command left behind may have removed it.
    fn open_entry(&mut self, above: BorrowedFd<'_>, name: &CStr, path: impl FnOnce() -> PathBuf) -> sys::Result<bool> {
        let Some(stat) = sys::unless_gone(sys::stat_at(above, name))? else { return Ok(false) };
        let closed = stat.st_mode as RawMode & PERMISSIONS;
        let open = match sys::kind(stat) {
            FileType::Directory => closed | 0o500,
            FileType::RegularFile => closed | 0o400,
            _ => return Ok(false),
        };
        if closed != open && stat.st_uid == rustix::process::geteuid().as_raw() {
            let set = sys::set_mode_of_name(above, name, Mode::from_raw_mode(open));
            if sys::unless_gone(set)?.is_none() {
                return Ok(false);
            }
            self.0.insert(path(), Modes { closed, open });
        }
        Ok(sys::is_directory(stat))
    }

    pub(super) fn as_left(&self, path: impl FnOnce() -> PathBuf, mut stat: Stat) -> Stat {
        if !self.0.is_empty()
            && let Some(modes) = self.0.get(&path())
            && modes.are_of(&stat)
        {
            stat.st_mode = (stat.st_mode & !0o7777) | modes.closed;
        }
        stat
    }

    /// Closes the `chosen` entries that still exist. Goes on after a failure, and returns the first one.
    pub(super) fn close(&self, root: BorrowedFd<'_>, chosen: impl Fn(&Path) -> bool) -> sys::Result<()> {
        let mut closed = Ok(());
        // Deepest first: nothing is reached through a closed directory.
        for (path, modes) in self.0.iter().rev().filter(|(path, _)| chosen(path)) {
            closed = closed.and(sys::unless_gone(close(root, path, modes)).map(drop));
        }
        closed
    }
}

impl Modes {
    /// Returns false if a process that the command left behind has changed or replaced the entry.
    fn are_of(&self, stat: &Stat) -> bool {
        stat.st_mode as RawMode & PERMISSIONS == self.open
    }
}

fn close(root: BorrowedFd<'_>, path: &Path, modes: &Modes) -> sys::Result<()> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let (above, name) = open_above(root, path, sys::PATH_ONLY)?;
    match modes.are_of(&sys::stat_at(&above, &*name)?) {
        true => sys::set_mode_of_name(above.as_fd(), &name, Mode::from_raw_mode(modes.closed)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::overlay_run::PrivateOverlay;

    fn mode(path: &Path) -> u32 {
        fs_err::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        fs_err::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_has_gone_is_not_opened() {
        let spot = tempfile::tempdir().unwrap();
        let root = sys::open_at(rustix::fs::CWD, spot.path(), DIRECTORY).unwrap();
        let mut closed = ClosedEntries::default();
        assert_eq!(closed.open_entry(root.as_fd(), c"gone", || PathBuf::from("gone")), Ok(false));
        assert!(closed.0.is_empty());
    }

    /// A process that the command left behind has removed some entries since they were opened, and made others anew.
    #[test]
    fn changes_are_set_aside_whatever_has_become_of_what_was_closed() {
        let spot = tempfile::tempdir().unwrap();
        let [tree, changes] = ["tree", "runs"].map(|name| spot.path().join(name));
        [&tree, &changes].into_iter().for_each(|path| fs_err::create_dir(path).unwrap());
        let mut overlay = PrivateOverlay::new(&tree, &changes).unwrap();
        let upper = overlay.state.path.join("upper");
        for name in ["a/b", "again", "z"] {
            fs_err::create_dir_all(upper.join(name)).unwrap();
        }
        for (name, now) in [("a/b", 0o700), ("a", 0o700), ("again", 0o755), ("z", 0o700)] {
            chmod(&upper.join(name), now);
        }
        fs_err::write(upper.join("file"), "file").unwrap();
        fs_err::os::unix::fs::symlink("z", upper.join("link")).unwrap();
        let modes = || Modes { closed: 0o200, open: 0o700 };
        for name in ["", "a", "a/b", "a/gone", "again", "file/in", "gone/in", "link", "link/in", "z"] {
            overlay.closed.0.insert(name.into(), modes());
        }
        // It was a directory, and is a file with a mode that an opened file could have.
        fs_err::write(upper.join("other"), "").unwrap();
        chmod(&upper.join("other"), 0o400);
        overlay.closed.0.insert("other".into(), Modes { closed: 0, open: 0o500 });
        chmod(&upper, 0o700);
        let dst = changes.join("aside");
        overlay.set_aside(&dst).unwrap();
        assert_eq!(mode(&dst), 0o200);
        chmod(&dst, 0o700);
        assert_eq!(["a", "again", "z"].map(|name| mode(&dst.join(name))), [0o200, 0o755, 0o200]);
        chmod(&dst.join("a"), 0o700);
        assert_eq!(mode(&dst.join("a/b")), 0o200);
        assert_eq!(fs_err::read(dst.join("file")).unwrap(), b"file");
        assert_eq!(mode(&dst.join("other")), 0o400);
        for name in ["a/b", "z"] {
            chmod(&dst.join(name), 0o700);
        }
    }
}
