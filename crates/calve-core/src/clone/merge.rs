//! Copying into an existing directory: the copy is made under a hidden name, and then its entries are moved in.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, OFlags, RawMode, Stat};
use rustix::io::Errno;

use super::check::{check_apart, sweep_leftovers};
use super::stage::StagedTree;
use crate::error::{Error, IoContext};
use crate::options::internal::KeptLinks;
use crate::options::{CloneOptions, Durability};
use crate::remove::trash::rename_to_new;
use crate::sys::{self, XattrTarget};
use crate::tree::exclude::Exclusions;
use crate::tree::location::{DIRECTORY, Location, identity};
use crate::tree::node::node_of;
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;

/// The fate of a destination's file that has the name of a source's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverwriteRule {
    Yes,
    No,
}

/// Copies the entries of the directory `src` into `dst`. Directories that exist in both are merged, and otherwise stay.
/// With [`Durability::Synced`] all of it is on disk on return. Losses of metadata are not reported.
///
/// First copies everything beside `dst`, then checks that every entry can be moved in, and then moves them one by one,
/// with one call for each tree that `dst` does not have.
///
/// # Errors
/// Leaves `dst` as it was, unless the last step fails because another process changes `dst` meanwhile. Fails where a
/// rename cannot place an entry: a directory and another kind of file have one name; a symlink would replace something;
/// source and destination are the same file; directories bequeath something (default ACLs, the set-group-ID bit).
pub fn merge_tree(src: &Path, dst: &Path, options: &CloneOptions, overwrite: OverwriteRule) -> Result<(), Error> {
    let source = Source::open(src)?;
    let destination = Location::of_destination(dst)?;
    source.expect_directory(Operation::OpenDirectory)?;
    let target = destination.open_at(DIRECTORY).io(Operation::OpenDirectory, dst)?;
    let stat = rustix::fs::fstat(&target).io(Operation::OpenDirectory, dst)?;
    check_apart(&source, &destination, Some((identity(&stat), true)))?;
    let parent = rustix::fs::fstat(destination.parent()).io(Operation::OpenDirectory, dst)?;
    let merge = MergeRules {
        overwrite,
        refuses_links: options.internal.plain.as_ref().is_some_and(|plain| matches!(plain.links, KeptLinks::Refuse)),
        device: identity(&stat).0,
    };
    merge.check_heritage(destination.parent(), &parent, destination.parent_path())?;
    let notes = Notes::default();
    sweep_leftovers(&destination, &notes, options)?;
    let mut staged = StagedTree::for_clone(&destination, options)?;
    let copied = source.directory().try_clone_to_owned();
    let copied = copied.io(Operation::OpenDirectory, src)?;
    let exclude = Exclusions::new(&options.exclude)?.and_select(options.select.clone());
    staged.fill(source, exclude, &notes, options)?;
    let at = MergedDirectory { src: copied.as_fd(), staged: staged.root()?, dst: target.as_fd(), path: dst };
    let mut moves = Vec::new();
    merge.plan(&at, &stat, Path::new(""), &mut moves)?;
    let sync = || match options.durability {
        Durability::Cached => Ok(()),
        Durability::Synced => sys::sync_file_system(target.as_fd()).io(Operation::Sync, dst),
    };
    // Contents before names.
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
}

struct MergedDirectory<'a> {
    src: BorrowedFd<'a>,
    staged: BorrowedFd<'a>,
    dst: BorrowedFd<'a>,
    /// Path of `dst`, for messages.
    path: &'a Path,
}

/// The entries of a directory to move in, and whether each replaces a file.
struct Moves {
    directory: PathBuf,
    entries: Vec<(CString, bool)>,
}

impl MergeRules {
    fn plan(&self, at: &MergedDirectory<'_>, stat: &Stat, below: &Path, moves: &mut Vec<Moves>) -> Result<(), Error> {
        self.check_heritage(at.dst, stat, at.path)?;
        let mut here = Moves { directory: below.to_path_buf(), entries: Vec::new() };
        let mut both = Vec::new();
        for (name, kind) in entries(at.staged).io(Operation::ReadDirectory, at.path)? {
            let path = || at.path.join(sys::path(&name));
            let Some(existing) = sys::find_at(at.dst, &*name).io(Operation::Stat, path())? else {
                // A directory that changes its parent must be writable: its `..` changes.
                if kind == FileType::Directory {
                    let writable = rustix::fs::accessat(at.staged, &*name, Access::WRITE_OK, AtFlags::EACCESS);
                    writable.io(Operation::Publish, path())?;
                }
                here.entries.push((name, false));
                continue;
            };
            let given = sys::stat_at(at.src, &*name).io(Operation::Stat, path())?;
            if identity(&given) == identity(&existing) {
                return Err(Error::Same { src: path(), dst: path() });
            }
            match (kind, sys::kind(existing)) {
                (_, FileType::Symlink) if self.refuses_links => return Err(Error::DestinationExists(path())),
                (FileType::Directory, FileType::Directory) => both.push((name, existing)),
                (FileType::RegularFile, found) if found != FileType::Directory => match self.overwrite {
                    OverwriteRule::Yes => here.entries.push((name, true)),
                    OverwriteRule::No => {}
                },
                _ => return Err(Error::DestinationExists(path())),
            }
        }
        if !here.entries.is_empty() {
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            for directory in [at.staged, at.dst] {
                rustix::fs::accessat(directory, c".", wanted, AtFlags::EACCESS).io(Operation::Publish, at.path)?;
            }
            // Replacing a file cannot be undone, so it comes last.
            here.entries.sort_by_key(|(_, replaces)| *replaces);
            moves.push(here);
        }
        for (name, existing) in both {
            let path = at.path.join(sys::path(&name));
            let opened = open_all(at, &name).io(Operation::OpenDirectory, &path)?;
            let [src, staged, dst] = opened.each_ref().map(|opened| opened.as_fd());
            let inside = MergedDirectory { src, staged, dst, path: &path };
            self.plan(&inside, &existing, &below.join(sys::path(&name)), moves)?;
        }
        Ok(())
    }

    /// Fails where an entry made here gets something that an entry made elsewhere lacks: the directory's group
    /// (set-group-ID) or default access control list. Fails with EXDEV if the directory is not on the root's device.
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

    fn carry_out(&self, at: &MergedDirectory<'_>, moves: &[Moves]) -> Result<(), Error> {
        for Moves { directory, entries } in moves {
            let path = at.path.join(directory);
            let staged = node_of(directory).open(at.staged, OFlags::RDONLY).io(Operation::Publish, &path)?;
            let dst = node_of(directory).open(at.dst, OFlags::RDONLY).io(Operation::Publish, &path)?;
            for (name, replaces) in entries {
                let moved = match replaces {
                    true => rustix::fs::renameat(&staged, &**name, &dst, &**name),
                    false => rename_to_new(staged.as_fd(), name, dst.as_fd(), name),
                };
                moved.io(Operation::Publish, path.join(sys::path(name)))?;
            }
        }
        Ok(())
    }
}

fn open_all(at: &MergedDirectory<'_>, name: &CStr) -> sys::Result<[OwnedFd; 3]> {
    let open = |directory| sys::open_at(directory, name, DIRECTORY);
    Ok([open(at.src)?, open(at.staged)?, open(at.dst)?])
}

fn entries(directory: BorrowedFd<'_>) -> sys::Result<Vec<(CString, FileType)>> {
    let listed = sys::list(directory)?.into_iter();
    listed.map(|(name, kind)| sys::kind_of(directory, &name, kind).map(|kind| (name, kind))).collect()
}
