//! The real abilities of two places, found by asking their file systems and by trying. The source is only ever read.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::sample;
use crate::error::{Error, IoContext, ShownPath};
use crate::staging::Staging;
use crate::strategy::criteria::RefusalReason;
use crate::sys;
use crate::tree::fill::contents::ContentsMethod;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::held_times::HeldTimes;
use crate::tree::location::DIRECTORY;
use crate::tree::node::open_above;
use crate::tree::source::Source;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::remedy::Remedy;

#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// With the number of subvolumes nested in the source.
    pub(crate) snapshot: Result<usize, RefusalReason>,
    pub(crate) clonefile: Result<(), RefusalReason>,
    pub(crate) reflink: Result<(), RefusalReason>,
    pub(crate) hardlink: Result<(), RefusalReason>,
    /// The destination keeps small contents inside its metadata, where they cannot be shared.
    pub(crate) may_inline: bool,
    pub(crate) copies_on_server: bool,
}

impl Facts {
    /// Asks the two file systems, without making anything.
    pub(crate) fn between(source: &Source, dst_parent: BorrowedFd<'_>) -> Self {
        let clonefile = sys::clone_directory_refusal(source.directory(), dst_parent);
        let magic = sys::magic(dst_parent).unwrap_or(0);
        Self {
            snapshot: snapshot(source, dst_parent),
            clonefile: clonefile.map_or(Ok(()), |why| Err(RefusalReason::new(why))),
            reflink: Err(RefusalReason::new("not tried")),
            hardlink: match rustix::fs::fstat(dst_parent) {
                Ok(stat) if stat.st_dev == source.stat().st_dev => Ok(()),
                _ => Err(RefusalReason::new("source and destination are on different file systems")),
            },
            may_inline: magic == sys::BTRFS_MAGIC,
            copies_on_server: sys::copies_on_the_server(magic),
        }
    }

    /// Returns the best way to clone single files, once sharing was tried.
    pub(crate) fn contents(&self) -> ContentsMethod {
        match (&self.reflink, self.copies_on_server) {
            (Ok(()), _) => ContentsMethod::Reflink { tell_inlined: false },
            (Err(_), true) => ContentsMethod::CopyOnServer,
            (Err(_), false) => ContentsMethod::Copy,
        }
    }

    /// Tries sharing a file in the empty staged directory, which is the only way to find out.
    pub(crate) fn try_in(&mut self, source: &Source, staging: &Staging<'_>) -> Result<NewFileDefaults, Error> {
        with_new_file(staging, |root, file| self.reflink = sample::try_reflink(source, root, file))
    }
}

pub(crate) fn created_in(staging: &Staging<'_>) -> Result<NewFileDefaults, Error> {
    with_new_file(staging, |_, _| {})
}

/// Makes a file in the staged directory, passes both to `then`, and removes it. Returns the metadata that it had.
fn with_new_file(
    staging: &Staging<'_>,
    then: impl FnOnce(BorrowedFd<'_>, BorrowedFd<'_>),
) -> Result<NewFileDefaults, Error> {
    let made = || {
        let root = staging.root().ok_or(Errno::NOENT)?;
        let file = sys::create_at(root, PROBE_NAME, OFlags::RDWR, Mode::from_raw_mode(0o777))?;
        let stat = rustix::fs::fstat(&file)?;
        then(root, file.as_fd());
        let times = HeldTimes::find(file.as_fd());
        rustix::fs::unlinkat(root, PROBE_NAME, AtFlags::empty())?;
        sys::Result::Ok(NewFileDefaults { uid: stat.st_uid, gid: stat.st_gid, mask: stat.st_mode & 0o777, times })
    };
    made().io(Operation::Create, staging.parent_path())
}

const PROBE_NAME: &CStr = c".calve-probe";

/// Returns the number of nested subvolumes, or why no snapshot is possible. Only the call tells if it is permitted.
fn snapshot(source: &Source, dst_parent: BorrowedFd<'_>) -> Result<usize, RefusalReason> {
    let src = source.directory();
    if source.single().is_some() {
        return Err(RefusalReason::new("the source is not a directory"));
    }
    if sys::magic(src) != Ok(sys::BTRFS_MAGIC) {
        return Err(RefusalReason::new(format!("{} has no snapshots", sys::file_system_name(src)))
            .with_remedy(Remedy::KeepInSubvolume));
    }
    if !sys::is_subvolume(src, source.stat()).unwrap_or(false) {
        return Err(RefusalReason::new("the source is not a btrfs subvolume").with_remedy(Remedy::CloneIntoSubvolume));
    }
    if !sys::same_btrfs(src, dst_parent) {
        return Err(RefusalReason::new("source and destination are on different file systems")
            .with_remedy(Remedy::StayOnFileSystem));
    }
    let mounts = sys::mounts_below(src)
        .map_err(|errno| RefusalReason::new(format!("cannot tell what is mounted below the source: {errno}")))?;
    if let Some(first) = mounts.first() {
        return Err(RefusalReason::new(format!("`{}` is mounted below the source", ShownPath(first)))
            .with_remedy(Remedy::Unmount(first.clone())));
    }
    let mut nested = sys::nested_subvolumes(src).map_err(cannot_list)?;
    nested.retain(|path| !path.to_bytes().split(|&byte| byte == b'/').any(is_calves_own));
    let user = rustix::process::geteuid();
    if !user.is_root() {
        only_own(src, &nested, user.as_raw())?;
    }
    Ok(nested.len())
}

fn cannot_list(errno: Errno) -> RefusalReason {
    RefusalReason::new(format!("cannot list the subvolumes nested in it: {}", std::io::Error::from(errno)))
}

/// Fails if the user may not snapshot a nested subvolume: only its owner and root may, and each needs its own snapshot.
fn only_own(root: BorrowedFd<'_>, nested: &[CString], user: u32) -> Result<(), RefusalReason> {
    const OWNER_MAY_CHANGE: RawMode = 0o300;
    for path in nested {
        let path = sys::path(path);
        let (parent, name) = open_above(root, path, OFlags::RDONLY).map_err(cannot_list)?;
        let is_in_root = path.parent() == Some(Path::new(""));
        let stat = rustix::fs::fstat(&parent).map_err(cannot_list)?;
        // The root belongs to this user until it is published.
        if !is_in_root && (stat.st_uid != user || stat.st_mode & OWNER_MAY_CHANGE != OWNER_MAY_CHANGE) {
            let why = format!("the nested subvolume `{}` is in a directory that you may not change", ShownPath(path));
            return Err(RefusalReason::new(why));
        }
        let below = sys::open_at(&parent, &*name, DIRECTORY).map_err(cannot_list)?;
        if rustix::fs::fstat(&below).map_err(cannot_list)?.st_uid != user {
            let why = format!("only the owner of the nested subvolume `{}` (or root) may snapshot it", ShownPath(path));
            return Err(RefusalReason::new(why).with_remedy(Remedy::RunAsOwner));
        }
        only_own(below.as_fd(), &sys::nested_subvolumes(below.as_fd()).map_err(cannot_list)?, user)?;
    }
    Ok(())
}
