//! Bringing a copy up to date: what differs is removed, then made again by the engine.
//!
//! A large file of which little differs is not: it gets the ranges that do ([`super::ranges`]). All removals come before the first
//! entry is made, and a directory gets its metadata when everything in it is done. Nothing is followed out of either tree.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::check::{DirectoryChanges, SpareDifferences, node};
use super::ranges::renew_ranges;
use crate::error::Error;
use crate::options::CloneOptions;
use crate::remove::delete::{Deletion, delete};
use crate::sys::{self, XattrTarget};
use crate::tree::exclude::Exclusions;
use crate::tree::fill::contents::Contents;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::fill::{Files, Fill, FillPart, Paths, Scope, fill};
use crate::tree::names::Names;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;

pub(crate) struct UpdateRequest<'a> {
    pub(crate) source: &'a Source,
    pub(crate) exclude: &'a Exclusions,
    pub(crate) tree: BorrowedFd<'a>,
    pub(crate) dst: &'a Path,
    pub(crate) contents: Contents,
    /// No file data may be written.
    pub(crate) strict: bool,
    pub(crate) created: NewFileDefaults,
    pub(crate) keeps_nocow: bool,
    pub(crate) notes: &'a Notes,
    pub(crate) options: &'a CloneOptions,
}

/// Makes the tree what the source is. The root's own metadata is left to the caller.
pub(crate) fn update(update: &UpdateRequest<'_>, differences: SpareDifferences) -> Result<(), Error> {
    let mut parts = Vec::new();
    for (path, touched) in differences.directories {
        parts.extend(prepare(update, &path, touched)?);
    }
    let options = update.options;
    let work = Fill {
        src_root: update.source.directory(),
        dst_root: update.tree,
        src_path: update.source.path(),
        dst_path: update.dst,
        paths: Paths::Below,
        files: Files::Clone(update.contents),
        strict: update.strict,
        exclude: update.exclude,
        is_upper: false,
        created: update.created,
        keeps_nocow: update.keeps_nocow,
        threads: thread_count(options.threads),
        notes: update.notes,
        options,
    };
    fill(&work, Scope::Parts(parts)).map(|_| ())
}

/// Removes what differs in one directory, and resets it to a new one's state. Returns the entries to make; `None` if it is gone on either side.
fn prepare(update: &UpdateRequest<'_>, path: &Path, touched: DirectoryChanges) -> Result<Option<FillPart>, Error> {
    let node = node(path);
    let shown = update.dst.join(path);
    let src = match node.open_source(update.source.directory()) {
        Ok(src) => src,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(Error::io(Operation::OpenDirectory, update.source.path().join(path), errno)),
    };
    let stat =
        rustix::fs::fstat(&src).map_err(|errno| Error::io(Operation::Stat, update.source.path().join(path), errno))?;
    let copy = match node.open(update.tree, OFlags::RDONLY) {
        Ok(copy) => copy,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(Error::io(Operation::OpenDirectory, shown, errno)),
    };
    renew(copy.as_fd(), update.created).map_err(|errno| Error::io(Operation::SetMode, &shown, errno))?;
    let deletion = Deletion::from_options(update.options);
    let mut names = Names::default();
    for name in &touched.gone {
        delete(copy.as_fd(), name, &shown, &deletion)?;
    }
    // A plain copy keeps no times.
    let may_renew = matches!(update.contents, Contents::Reflink { .. }) && update.options.internal.plain.is_none();
    for (kind, name) in &touched.made {
        if may_renew
            && *kind == FileType::RegularFile
            && renew_ranges(src.as_fd(), copy.as_fd(), name, &update.options.cancel)
        {
            continue;
        }
        delete(copy.as_fd(), name, &shown, &deletion)?;
        names.push(*kind, name);
    }
    Ok(Some(FillPart { node, stat, names }))
}

/// Takes owner, mode and extended attributes back to what a new directory has.
pub(crate) fn renew(directory: BorrowedFd<'_>, created: NewFileDefaults) -> sys::Result<()> {
    let stat = rustix::fs::fstat(directory)?;
    if (stat.st_uid, stat.st_gid) != (created.uid, created.gid) {
        let (uid, gid) = (Uid::from_raw(created.uid), Gid::from_raw(created.gid));
        rustix::fs::fchown(directory, Some(uid), Some(gid))?;
    }
    let mut buffer = Vec::new();
    let listed = sys::list_xattrs(XattrTarget::Open(directory), &mut buffer)?.to_vec();
    for name in listed.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = std::ffi::CStr::from_bytes_with_nul(name) else { continue };
        match sys::remove_xattr(directory, name) {
            // An attribute that this process may not remove, it could not have set either: the system made it.
            Ok(()) | Err(sys::NO_ATTRIBUTE | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::fchmod(directory, Mode::RWXU & Mode::from_raw_mode(created.mask))
}
