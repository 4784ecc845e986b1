//! Checks that the directory at the path of a worktree is that worktree.
//!
//! git lists the paths that its entries name (`worktrees/ID/gitdir`). Anything may be there by now: another repository, the worktree of the
//! repository that this one was copied from. It is the worktree if its `.git` file names the entry in turn (gitrepository-layout(5)). This
//! compares both ends as directories, by device and inode, not as text.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use calve_core::ShownPath;
use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use strum::{IntoStaticStr, VariantNames};

use super::Worktree;
use super::entries;
use crate::error::Error;
use crate::paths::{plain, pointed_to};
use crate::remedy::Remedy;

/// The relation between the repository that lists a worktree and what is at its path.
#[derive(Debug, Clone, PartialEq, Eq, Default, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum WorktreeState {
    /// It is the worktree: both sides name each other. Also the main worktree.
    #[default]
    Intact,
    Gone,
    /// It was moved here, and git does not know it: the user is in it.
    Moved(PathBuf),
    /// Its `.git` file names its entry at a place that does not exist: the repository was moved.
    Adrift,
    /// It is a worktree of the repository at this path, from which this one was copied.
    Foreign(PathBuf),
    /// A link to it, which is at this place: it was moved there, and git still finds it.
    Linked(PathBuf),
    /// Something else: a repository of its own, a directory without `.git`, a file, a link to anything else.
    Replaced(&'static str),
    /// Two entries name this place.
    Duplicate,
    /// The check failed, for this reason.
    Unseen(String),
}

impl WorktreeState {
    /// The names of all.
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns its name in lists and JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns what is wrong with the worktree at `path`; `None` if nothing is wrong.
    pub fn problem(&self, path: &Path) -> Option<Error> {
        (*self != WorktreeState::Intact).then(|| self.refusal(path))
    }

    /// Returns the error for an operation on the worktree at `path`, which something is wrong with.
    pub(crate) fn refusal(&self, path: &Path) -> Error {
        let path = ShownPath(path);
        match self {
            WorktreeState::Intact | WorktreeState::Gone => {
                Error::refused(format!("the worktree `{path}` is gone"), Remedy::Prune)
            }
            WorktreeState::Moved(here) => Error::refused(
                format!("the worktree `{path}` was moved to `{}`, and git does not know it", ShownPath(here)),
                Remedy::RepairWorktree,
            ),
            WorktreeState::Adrift => Error::refused(
                format!("the `.git` file of `{path}` names a place in a repository that is not there"),
                Remedy::RepairFromMain,
            ),
            WorktreeState::Foreign(repository) => Error::refused(
                format!("`{path}` is a worktree of another repository, `{}`", ShownPath(repository)),
                Remedy::PruneOrRepair,
            ),
            WorktreeState::Linked(real) => Error::refused(
                format!("`{path}` is a link to the worktree, which is at `{}`", ShownPath(real)),
                Remedy::RepairLinkedPath,
            ),
            WorktreeState::Replaced(what) => {
                Error::refused(format!("`{path}` is {what}, not the worktree any more"), Remedy::PruneOrRepair)
            }
            WorktreeState::Duplicate => {
                Error::refused(format!("two worktrees are registered at `{path}`"), Remedy::PruneDuplicate)
            }
            WorktreeState::Unseen(why) => {
                Error::refused(format!("cannot tell whether `{path}` is the worktree: {why}"), Remedy::AllowReading)
            }
        }
    }
}

/// A linked worktree of this repository, held open. Only [`LinkedWorktree::open`] makes one, and it checks both ends.
#[derive(Debug)]
pub(crate) struct LinkedWorktree {
    root: OwnedFd,
    path: PathBuf,
    entry: PathBuf,
}

impl LinkedWorktree {
    /// Opens the directory at `path` if it is the worktree of `entry`.
    pub(crate) fn open(entry: &Path, path: &Path) -> Result<LinkedWorktree, WorktreeState> {
        let root = match rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty()) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Err(WorktreeState::Gone),
            // A file above it, or at it.
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(no_directory(entry, path)),
            Err(errno) => return Err(unseen("open", path, errno)),
        };
        let linked = LinkedWorktree { root, path: path.to_path_buf(), entry: entry.to_path_buf() };
        linked.look_back()?;
        Ok(linked)
    }

    /// Returns its open directory.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory of the worktree's own files in the repository.
    pub(crate) fn entry(&self) -> &Path {
        &self.entry
    }

    /// Returns whether it is the directory at `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let there = rustix::fs::stat(path);
        matches!((rustix::fs::fstat(&self.root), there), (Ok(own), Ok(there)) if same(&own, &there))
    }

    /// Checks that the `.git` file leads back to the entry.
    fn look_back(&self) -> Result<(), WorktreeState> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let pointer = match rustix::fs::openat(&self.root, ".git", flags, Mode::empty()) {
            Ok(pointer) => std::fs::File::from(pointer),
            Err(Errno::NOENT) => return Err(WorktreeState::Replaced("a directory without `.git`")),
            Err(Errno::LOOP) => return Err(WorktreeState::Replaced(OTHER)),
            Err(errno) => return Err(unseen("open the `.git` of", &self.path, errno)),
        };
        let mut text = Vec::new();
        let is_file = pointer.metadata().is_ok_and(|found| found.is_file());
        if !is_file || pointer.take(POINTER_BYTES).read_to_end(&mut text).is_err() {
            return Err(WorktreeState::Replaced(OTHER));
        }
        let named = pointed_to(&text).ok_or(WorktreeState::Replaced(OTHER))?;
        // Relative to the worktree, where git is told to write it so.
        let there = match rustix::fs::openat(&self.root, &named, PATH_ONLY, Mode::empty()) {
            Ok(there) => there,
            Err(Errno::NOENT | Errno::NOTDIR) if self.has_name_of_entry(&named) => return Err(WorktreeState::Adrift),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(WorktreeState::Replaced(ORPHAN)),
            Err(errno) => return Err(unseen("open", &named, errno)),
        };
        let entry = rustix::fs::openat(CWD, &self.entry, PATH_ONLY, Mode::empty());
        let entry = entry.map_err(|errno| unseen("open", &self.entry, errno))?;
        if are_same(&there, &entry) {
            return Ok(());
        }
        let above = |directory: &OwnedFd| rustix::fs::openat(directory, "..", PATH_ONLY, Mode::empty());
        if matches!((above(&there), above(&entry)), (Ok(a), Ok(b)) if are_same(&a, &b)) {
            return Err(WorktreeState::Duplicate);
        }
        let named = plain(&self.path.join(named));
        let worktrees = named.parent().filter(|above| above.file_name().is_some_and(|name| name == "worktrees"));
        Err(match worktrees.and_then(Path::parent) {
            Some(common) => WorktreeState::Foreign(common.to_path_buf()),
            None => WorktreeState::Replaced(OTHER),
        })
    }

    /// Returns whether a path ends as that of the entry does: `worktrees/ID`.
    fn has_name_of_entry(&self, named: &Path) -> bool {
        let end =
            |path: &Path| path.components().rev().take(2).map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
        end(named) == end(&self.entry)
    }
}

fn are_same(a: &OwnedFd, b: &OwnedFd) -> bool {
    matches!((rustix::fs::fstat(a), rustix::fs::fstat(b)), (Ok(a), Ok(b)) if same(&a, &b))
}

/// Sets the standing and the entry of each worktree that git lists. `here`: the worktree that git was asked from, with its entry.
pub(crate) fn look(
    common: &Path,
    here: Option<(&Path, &Path)>,
    worktrees: &mut [Worktree],
) -> crate::error::Result<()> {
    let entries = entries::by_worktree(common)?;
    for worktree in worktrees.iter_mut().filter(|worktree| !worktree.is_main) {
        let mut of_it = entries.iter().filter(|(path, _)| *path == worktree.path).map(|(_, entry)| entry);
        let entry = of_it.next();
        worktree.entry = entry.cloned();
        worktree.standing = match (entry, of_it.next()) {
            (Some(entry), None) => LinkedWorktree::open(entry, &worktree.path).err().unwrap_or_default(),
            // git does not say which line of its list is which entry.
            (Some(_), Some(_)) => WorktreeState::Duplicate,
            (None, _) => WorktreeState::Unseen("cannot find its entry in the repository".into()),
        };
        if let (Some((root, own)), Some(entry)) = (here, entry)
            && worktree.standing != WorktreeState::Intact
            && own == entry
            && LinkedWorktree::open(entry, root).is_ok()
        {
            worktree.standing = WorktreeState::Moved(root.to_path_buf());
        }
        worktree.is_gone = worktree.standing == WorktreeState::Gone;
    }
    Ok(())
}

const OTHER: &str = "another repository";
const ORPHAN: &str = "a worktree of a repository that is not there";
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// git takes no longer ones.
const POINTER_BYTES: u64 = 64 * 1024;

/// Returns whether two stats are of one file.
fn same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}

fn no_directory(entry: &Path, path: &Path) -> WorktreeState {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            match fs_err::canonicalize(path).map(|real| (LinkedWorktree::open(entry, &real), real)) {
                Ok((Ok(_), real)) => WorktreeState::Linked(real),
                // It may be the worktree.
                Ok((Err(standing @ WorktreeState::Unseen(_)), _)) => standing,
                _ => WorktreeState::Replaced("a link"),
            }
        }
        Ok(_) => WorktreeState::Replaced("a file"),
        Err(_) => WorktreeState::Gone,
    }
}

fn unseen(operation: &str, path: &Path, errno: Errno) -> WorktreeState {
    WorktreeState::Unseen(format!("cannot {operation} `{}`: {}", ShownPath(path), std::io::Error::from(errno)))
}
