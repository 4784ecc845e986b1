//! Updates a copy: differing entries are removed, then made again by the engine.
//!
//! A large file in which little differs only gets those ranges ([`super::ranges`]). All removals come before the first
//! entry is made, and a directory gets its metadata last. Nothing is followed out of either tree.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::check::{DirectoryChanges, SpareDifferences, node};
use super::ranges::renew_ranges;
use crate::error::{Error, IoContext};
use crate::remove::delete::{Deletion, delete};
use crate::sys::{self, XattrTarget};
use crate::tree::fill::contents::ContentsMethod;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::fill::{Files, Fill, FillPart, fill};
use crate::tree::node::Names;
use crate::vocabulary::operation::Operation;

/// Makes the tree equal to the source. The root's own metadata is left to the caller.
pub(crate) fn update(work: &Fill<'_>, differences: SpareDifferences) -> Result<(), Error> {
    let mut parts = Vec::new();
    for (path, touched) in differences.directories {
        parts.extend(prepare(work, &path, touched)?);
    }
    fill(work, Some(parts)).map(|_| ())
}

/// Removes a directory's differing entries and resets its metadata. `None` if it is gone on either side.
fn prepare(work: &Fill<'_>, path: &Path, touched: DirectoryChanges) -> Result<Option<FillPart>, Error> {
    let (node, options) = (node(path), work.options);
    let (src_path, shown) = (work.src_path.join(path), work.dst_path.join(path));
    let copy = sys::unless_gone(node.open(work.dst_root, OFlags::RDONLY)).io(Operation::OpenDirectory, &shown)?;
    let Some(copy) = copy else { return Ok(None) };
    renew(copy.as_fd(), work.created).io(Operation::SetMode, &shown)?;
    let deletion = Deletion::from_options(options);
    // Even if the source's directory has gone meanwhile: entries that the caller did not select must not stay.
    for name in &touched.gone {
        delete(copy.as_fd(), name, &shown, &deletion)?;
    }
    let src = sys::unless_gone(node.open_source(work.src_root)).io(Operation::OpenDirectory, &src_path)?;
    let Some(src) = src else { return Ok(None) };
    let stat = rustix::fs::fstat(&src).io(Operation::Stat, &src_path)?;
    let mut names = Names::default();
    // A plain copy keeps no times.
    let is_shared = matches!(work.files, Files::Clone(ContentsMethod::Reflink { .. }));
    let may_renew = is_shared && options.internal.plain.is_none();
    for (kind, name) in touched.made {
        if may_renew && kind == FileType::RegularFile && renew_ranges(src.as_fd(), copy.as_fd(), &name, &options.cancel)
        {
            continue;
        }
        delete(copy.as_fd(), &name, &shown, &deletion)?;
        names.push_back((kind, name));
    }
    Ok(Some(FillPart { node, stat, names }))
}

/// Resets owner, mode and extended attributes to those of a new directory.
pub(crate) fn renew(directory: BorrowedFd<'_>, created: NewFileDefaults) -> sys::Result<()> {
    let stat = rustix::fs::fstat(directory)?;
    if (stat.st_uid, stat.st_gid) != (created.uid, created.gid) {
        let (uid, gid) = (Uid::from_raw(created.uid), Gid::from_raw(created.gid));
        rustix::fs::fchown(directory, Some(uid), Some(gid))?;
    }
    let mut buffer = Vec::new();
    let listed = sys::list_xattrs(XattrTarget::Open(directory), &mut buffer)?.to_vec();
    for name in sys::xattr_names(&listed) {
        match sys::remove_xattr(directory, name) {
            // If this process may not remove an attribute, it did not set it either: the system made it.
            Ok(()) | Err(sys::NO_ATTRIBUTE | Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::fs::fchmod(directory, Mode::RWXU & Mode::from_raw_mode(created.mask))
}
