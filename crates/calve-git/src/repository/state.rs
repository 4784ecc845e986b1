//! Checks that the directory at a worktree's path is that worktree.
//!
//! git lists the paths that its entries name (`worktrees/ID/gitdir`). Anything may be there by now, such as a worktree
//! of the repository that this one was copied from. It is the worktree if its `.git` file names the entry in turn
//! (gitrepository-layout(5)). Both ends are compared as directories, by device and inode, not as text.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;
use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::directory::open_directory;
use crate::error::Error;
use crate::paths::{plain, pointed_to, pointer_in, real};
use crate::remedy::Remedy;
use crate::repository::entries;
use crate::repository::status::WorktreeState;
use crate::repository::worktree::Worktree;

/// A linked worktree of this repository, held open. Only [`LinkedWorktree::open`] makes one, and it checks both ends.
#[derive(Debug)]
pub(crate) struct LinkedWorktree {
    root: File,
    pub(crate) path: PathBuf,
    pub(crate) entry: PathBuf,
}

impl LinkedWorktree {
    pub(crate) fn open(entry: &Path, path: &Path) -> Result<LinkedWorktree, WorktreeState> {
        let root = match open_directory(CWD, path) {
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

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn is_at(&self, path: &Path) -> bool {
        are_same(rustix::fs::fstat(&self.root), rustix::fs::stat(path))
    }

    fn look_back(&self) -> Result<(), WorktreeState> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let pointer = match rustix::fs::openat(&self.root, ".git", flags, Mode::empty()) {
            Ok(pointer) => File::from(pointer),
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
        // Relative to the worktree, if git is configured so.
        let there = match rustix::fs::openat(&self.root, &named, PATH_ONLY, Mode::empty()) {
            Ok(there) => there,
            Err(Errno::NOENT | Errno::NOTDIR) => {
                // Its name is `worktrees/ID`.
                let name = self.entry.ancestors().nth(2).and_then(|above| self.entry.strip_prefix(above).ok());
                let is_entrys = name.is_some_and(|name| named.ends_with(name));
                return Err(if is_entrys { WorktreeState::Adrift } else { WorktreeState::Replaced(ORPHAN) });
            }
            Err(errno) => return Err(unseen("open", &named, errno)),
        };
        let entry = rustix::fs::openat(CWD, &self.entry, PATH_ONLY, Mode::empty());
        let entry = entry.map_err(|errno| unseen("open", &self.entry, errno))?;
        if are_same(rustix::fs::fstat(&there), rustix::fs::fstat(&entry)) {
            return Ok(());
        }
        let above =
            |directory| rustix::fs::openat(directory, "..", PATH_ONLY, Mode::empty()).and_then(rustix::fs::fstat);
        if are_same(above(&there), above(&entry)) {
            return Err(WorktreeState::Duplicate);
        }
        let named = plain(&self.path.join(named));
        let worktrees = named.parent().filter(|above| above.file_name().is_some_and(|name| name == "worktrees"));
        Err(match worktrees.and_then(Path::parent) {
            Some(common) => WorktreeState::Foreign(common.to_path_buf()),
            None => WorktreeState::Replaced(OTHER),
        })
    }
}

/// Refuses the copy of a linked worktree, in which git and Calve would act on the original. Returns whether `entry`,
/// named by its `.git` file, names it in turn: git does not know where a worktree was moved to.
pub(crate) fn check_original(entry: &Path, root: &Path) -> Result<bool, Error> {
    let listed = entries::worktree_of(entry);
    // Through a link there, git still finds it.
    let places = [listed.as_deref().map(real), entries::noted(entry, entries::MOVED)];
    let original = places.into_iter().flatten().find_map(|path| LinkedWorktree::open(entry, &path).ok());
    if let Some(original) = original.filter(|original| !original.is_at(root)) {
        let (copy, original) = (ShownPath(root), ShownPath(&original.path));
        let text = format!("`{copy}` is a copy of the worktree `{original}`, so git and Calve here act on that one");
        return Err(Error::refused(text, Remedy::RepairOrAdd));
    }
    Ok(listed.is_some_and(|path| LinkedWorktree::open(entry, &path).is_ok()))
}

/// Returns the main worktree of a separate repository, if git was asked there, or a linked worktree notes it as donor.
fn main_root(common: &Path, here: Option<(&Path, &Path)>, entries: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
    let leads_to_it =
        |root: &PathBuf| pointer_in(&root.join(".git")).is_some_and(|named| real(&root.join(named)) == common);
    let asked = here.filter(|(_, own)| *own == common).map(|(root, _)| root.to_path_buf());
    asked.or_else(|| entries.iter().filter_map(|(_, entry)| entries::noted(entry, entries::DONOR)).find(leads_to_it))
}

/// Sets each worktree's status and entry, and the main one's path. `here`: where git was asked, and its entry.
pub(crate) fn look(common: &Path, here: Option<(&Path, &Path)>, worktrees: &mut [Worktree]) -> Result<(), Error> {
    let entries = entries::by_worktree(common)?;
    if let Some(main) = worktrees.iter_mut().find(|one| one.is_main && !one.is_bare && real(&one.path) == common)
        && let Some(root) = main_root(common, here, &entries)
    {
        main.path = root;
    }
    for worktree in worktrees.iter_mut().filter(|worktree| !worktree.is_main) {
        let of_it: Vec<&PathBuf> =
            entries.iter().filter(|(path, _)| *path == worktree.path).map(|(_, entry)| entry).collect();
        // git does not say which line of its list is which entry.
        let entry = of_it.iter().find(|entry| has_head_of(entry, worktree)).or(of_it.first()).copied();
        worktree.entry = entry.cloned();
        worktree.status = match (entry, of_it.len()) {
            (Some(entry), 1) => LinkedWorktree::open(entry, &worktree.path).err().unwrap_or_default(),
            (Some(_), _) => WorktreeState::Duplicate,
            // Removed since git listed it.
            (None, _) if worktree.path.symlink_metadata().is_err() => {
                WorktreeState::Unseen("something else has removed it meanwhile".into())
            }
            (None, _) => WorktreeState::Unseen("cannot find its entry in the repository".into()),
        };
        if let Some(entry) = entry.filter(|_| worktree.status != WorktreeState::Intact) {
            if let Some(root) = moved_to(entry, here, &worktree.status) {
                worktree.status = WorktreeState::Moved(root);
            } else if let Some((mount_point, record)) = entries::unmounted(entry) {
                worktree.status = WorktreeState::Unmounted { mount_point, record };
            }
        }
        worktree.is_unfinished = entry.is_some_and(|entry| entry.join(entries::DATA_SOURCE).exists());
        worktree.is_gone = worktree.status == WorktreeState::Gone;
    }
    Ok(())
}

fn has_head_of(entry: &Path, worktree: &Worktree) -> bool {
    let branch = worktree.branch.as_ref().map(|branch| format!("ref: refs/heads/{branch}"));
    let text = fs_err::read_to_string(entry.join("HEAD")).ok();
    text.is_some_and(|text| Some(text.trim_end()) == branch.as_deref().or(worktree.head.as_deref()))
}

/// Returns where a worktree with this listed status was moved to, if Calve has run or git was asked there.
fn moved_to(entry: &Path, here: Option<(&Path, &Path)>, status: &WorktreeState) -> Option<PathBuf> {
    let asked = here.filter(|(_, own)| *own == entry).map(|(root, _)| root.to_path_buf());
    let noted = match status {
        WorktreeState::Gone | WorktreeState::Foreign(_) | WorktreeState::Replaced(_) | WorktreeState::Duplicate => {
            entries::noted(entry, entries::MOVED)
        }
        // Through a link, git still finds it.
        _ => None,
    };
    // git may have been asked from a copy.
    noted.into_iter().chain(asked).find(|root| LinkedWorktree::open(entry, root).is_ok())
}

const OTHER: &str = "another repository";
const ORPHAN: &str = "a worktree of a repository that is not there";
const PATH_ONLY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// git takes no longer pointers.
const POINTER_BYTES: u64 = 64 * 1024;

fn are_same(a: rustix::io::Result<Stat>, b: rustix::io::Result<Stat>) -> bool {
    matches!((a, b), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

fn no_directory(entry: &Path, path: &Path) -> WorktreeState {
    match fs_err::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            match fs_err::canonicalize(path).map(|real| (LinkedWorktree::open(entry, &real), real)) {
                Ok((Ok(_), real)) => WorktreeState::Linked(real),
                // It may be the worktree.
                Ok((Err(status @ WorktreeState::Unseen(_)), _)) => status,
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
