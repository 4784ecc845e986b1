//! Copying into a directory that is there already: the copy is made under a hidden name, and then its entries are moved in.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Access, AtFlags, FileType, Mode, RawMode, Stat};
use rustix::io::Errno;

use super::check::{check_apart, sweep_leftovers};
use super::stage::StagedTree;
use crate::error::Error;
use crate::options::internal::KeptLinks;
use crate::options::{CloneOptions, Durability};
use crate::sys::{self, Listing, ListingBuffer, XattrTarget};
use crate::tree::exclude::Exclusions;
use crate::tree::location::{DIRECTORY, Location, identity, open_below};
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;

/// The fate of a file of the destination that has the name of one of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverwriteRule {
    /// The new one takes its place.
    Yes,
    /// It stays.
    No,
}

/// Copies the entries of the directory `src` into the directory `dst`. Directories that both have are merged, and stay as they are
/// otherwise.
///
/// With [`Durability::Synced`] all of it is on the disk on return. What could not be kept is not reported.
///
/// Everything is copied first, beside `dst`. Then it is checked that every entry can be moved in; and then they are, one by one, which
/// takes one call for each tree that `dst` does not have.
///
/// # Errors
/// Leaves `dst` as it was, unless the error is of the last step: when another process changes `dst` meanwhile. Fails where an entry cannot
/// take its place by a rename: a directory and another kind of file have one name; a symlink would replace something; source and
/// destination are the same file; directories hand something down to new entries (default ACLs, the set-group-ID bit).
pub fn merge_tree(src: &Path, dst: &Path, options: &CloneOptions, overwrite: OverwriteRule) -> Result<(), Error> {
    let source = Source::open(src)?;
    let destination = Location::of_destination(dst)?;
    let unfit = |errno| Error::io(Operation::OpenDirectory, dst, errno);
    if source.single().is_some() {
        return Err(Error::io(Operation::OpenDirectory, src, Errno::NOTDIR));
    }
    let target = destination.open_at(DIRECTORY).map_err(unfit)?;
    let stat = rustix::fs::fstat(&target).map_err(unfit)?;
    check_apart(src, dst, &source, &destination, Some((identity(&stat), true)))?;
    let parent = rustix::fs::fstat(destination.parent()).map_err(unfit)?;
    let merge = MergeRules {
        overwrite,
        refuses_links: options.internal.plain.as_ref().is_some_and(|plain| matches!(plain.links, KeptLinks::Refuse)),
        device: identity(&stat).0,
        is_root: rustix::process::geteuid().is_root(),
    };
    merge.check_heritage(destination.parent(), &parent, destination.parent_path())?;
    let notes = Notes::default();
    sweep_leftovers(&destination, &notes, options)?;
    let mut staged = StagedTree::for_clone(&destination, options)?;
    let copied = source.directory().try_clone_to_owned();
    let copied = copied.map_err(|error| Error::io(Operation::OpenDirectory, src, error))?;
    let exclude = Exclusions::new(&options.exclude)?.and_select(options.select.clone());
    staged.fill(source, exclude, &notes, options)?;
    let at = MergedDirectory { src: copied.as_fd(), staged: staged.root()?, dst: target.as_fd(), path: dst };
    let mut moves = Vec::new();
    merge.plan(&at, &stat, &mut Vec::new(), &mut moves)?;
    let sync = || match options.durability {
        Durability::Cached => Ok(()),
        Durability::Synced => {
            sys::sync_file_system(target.as_fd()).map_err(|errno| Error::io(Operation::Sync, dst, errno))
        }
    };
    // The contents before the names.
    sync()?;
    options.check_cancelled()?;
    merge.carry_out(&at, &moves)?;
    sync()
}

struct MergeRules {
    overwrite: OverwriteRule,
    /// Neither the source nor the destination may have a symlink.
    refuses_links: bool,
    device: u64,
    is_root: bool,
}

/// A directory of the source, its copy, and the directory to merge them into.
struct MergedDirectory<'a> {
    src: BorrowedFd<'a>,
    staged: BorrowedFd<'a>,
    dst: BorrowedFd<'a>,
    /// The path of the last one, for messages.
    path: &'a Path,
}

struct Moves {
    /// The names that lead to it from the root.
    directory: Vec<CString>,
    /// Nothing has these names.
    new: Vec<CString>,
    /// Files have them that are to be replaced.
    replacing: Vec<CString>,
}

impl MergeRules {
    /// Lists the entries to be moved, and checks that they can be.
    fn plan(
        &self,
        at: &MergedDirectory<'_>,
        stat: &Stat,
        below: &mut Vec<CString>,
        moves: &mut Vec<Moves>,
    ) -> Result<(), Error> {
        self.check_heritage(at.dst, stat, at.path)?;
        let failed = |operation| move |errno| Error::io(operation, at.path, errno);
        let mut here = Moves { directory: below.clone(), new: Vec::new(), replacing: Vec::new() };
        let mut both = Vec::new();
        for (name, kind) in entries(at.staged).map_err(failed(Operation::ReadDirectory))? {
            let path = || at.path.join(OsStr::from_bytes(name.to_bytes()));
            let existing = match rustix::fs::statat(at.dst, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(existing) => existing,
                Err(Errno::NOENT) => {
                    self.check_movable(at.staged, &name, kind)
                        .map_err(|errno| Error::io(Operation::Publish, path(), errno))?;
                    here.new.push(name);
                    continue;
                }
                Err(errno) => return Err(Error::io(Operation::Stat, path(), errno)),
            };
            let given = rustix::fs::statat(at.src, &*name, AtFlags::SYMLINK_NOFOLLOW);
            let given = given.map_err(|errno| Error::io(Operation::Stat, path(), errno))?;
            if identity(&given) == identity(&existing) {
                return Err(Error::Same { src: path(), dst: path() });
            }
            match (kind, FileType::from_raw_mode(existing.st_mode)) {
                (_, FileType::Symlink) if self.refuses_links => return Err(Error::DestinationExists(path())),
                (FileType::Directory, FileType::Directory) => both.push((name, existing)),
                (FileType::RegularFile, found) if found != FileType::Directory => match self.overwrite {
                    OverwriteRule::Yes => here.replacing.push(name),
                    OverwriteRule::No => {}
                },
                _ => return Err(Error::DestinationExists(path())),
            }
        }
        if !here.new.is_empty() || !here.replacing.is_empty() {
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            for directory in [at.staged, at.dst] {
                rustix::fs::accessat(directory, c".", wanted, AtFlags::EACCESS).map_err(failed(Operation::Publish))?;
            }
            moves.push(here);
        }
        for (name, existing) in both {
            let path = at.path.join(OsStr::from_bytes(name.to_bytes()));
            let opened = open_all(at, &name).map_err(|errno| Error::io(Operation::OpenDirectory, &path, errno))?;
            let [src, staged, dst] = opened.each_ref().map(|opened| opened.as_fd());
            let inside = MergedDirectory { src, staged, dst, path: &path };
            below.push(name);
            self.plan(&inside, &existing, below, moves)?;
            below.pop();
        }
        Ok(())
    }

    /// Fails where an entry made here gets what one made elsewhere lacks: the directory's group (set-group-ID) or its default access control list.
    /// Fails with EXDEV if the directory is on another device than the root.
    fn check_heritage(&self, directory: BorrowedFd<'_>, stat: &Stat, path: &Path) -> Result<(), Error> {
        const SET_GID: RawMode = 0o2000;
        let refused = |errno| Error::io(Operation::Publish, path, errno);
        let mut names = Vec::new();
        let has_acl = match sys::list_xattrs(XattrTarget::Open(directory), &mut names) {
            Ok(listed) => listed.split(|&byte| byte == 0).any(|name| name == b"system.posix_acl_default"),
            Err(Errno::NOTSUP) => false,
            Err(errno) => return Err(refused(errno)),
        };
        if stat.st_mode as RawMode & SET_GID != 0 || has_acl {
            return Err(refused(Errno::NOTSUP));
        }
        if identity(stat).0 != self.device {
            return Err(refused(Errno::XDEV));
        }
        Ok(())
    }

    /// Fails if a directory that goes to another directory cannot be written to: its `..` changes.
    fn check_movable(&self, staged: BorrowedFd<'_>, name: &CStr, kind: FileType) -> sys::Result<()> {
        if kind != FileType::Directory || self.is_root {
            return Ok(());
        }
        rustix::fs::accessat(staged, name, Access::WRITE_OK, AtFlags::EACCESS)
    }

    fn carry_out(&self, at: &MergedDirectory<'_>, moves: &[Moves]) -> Result<(), Error> {
        for Moves { directory, new, replacing } in moves {
            let failed = |name: &CStr, errno| {
                let names = directory.iter().map(CString::as_c_str).chain([name]);
                let path =
                    names.fold(at.path.to_path_buf(), |path, name| path.join(OsStr::from_bytes(name.to_bytes())));
                Error::io(Operation::Publish, path, errno)
            };
            let staged = open_below(at.staged, directory.iter()).map_err(|errno| failed(c"", errno))?;
            let dst = open_below(at.dst, directory.iter()).map_err(|errno| failed(c"", errno))?;
            for name in new {
                let moved = match sys::rename_no_replace(staged.as_fd(), name, dst.as_fd(), name) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                        rustix::fs::renameat(&staged, &**name, &dst, &**name)
                    }
                    other => other,
                };
                moved.map_err(|errno| failed(name, errno))?;
            }
            for name in replacing {
                rustix::fs::renameat(&staged, &**name, &dst, &**name).map_err(|errno| failed(name, errno))?;
            }
        }
        Ok(())
    }
}

fn open_all(at: &MergedDirectory<'_>, name: &CStr) -> sys::Result<[OwnedFd; 3]> {
    let open = |directory| sys::open_at(directory, name, DIRECTORY, Mode::empty());
    Ok([open(at.src)?, open(at.staged)?, open(at.dst)?])
}

fn entries(directory: BorrowedFd<'_>) -> sys::Result<Vec<(CString, FileType)>> {
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory, &mut buffer)?;
    let mut found = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let kind = match entry.kind {
            FileType::Unknown => {
                FileType::from_raw_mode(rustix::fs::statat(directory, entry.name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode)
            }
            kind => kind,
        };
        found.push((entry.name.to_owned(), kind));
    }
    Ok(found)
}
