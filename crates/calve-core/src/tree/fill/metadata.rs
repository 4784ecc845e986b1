//! Metadata of an entry: owner, extended attributes (with ACLs and capabilities), mode, times. Kept in that order: a
//! change of owner clears capabilities and set-ID bits, and every change alters times.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Gid, Mode, RawMode, Stat, Timestamps, Uid};
use rustix::io::Errno;

use crate::options::internal::{KeptTimes, KeptXattrs, PlainCopy};
use crate::sys::{self, XattrTarget};
use crate::tree::held_times::{HeldTimes, times};
use crate::tree::notes::Notes;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;

/// A failure without a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) operation: Operation,
    pub(crate) side: FaultSide,
    pub(crate) errno: Errno,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultSide {
    Src,
    Dst,
}

impl Fault {
    pub(crate) fn src(operation: Operation) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { operation, side: FaultSide::Src, errno }
    }

    pub(crate) fn dst(operation: Operation) -> impl FnOnce(Errno) -> Self {
        move |errno| Self { operation, side: FaultSide::Dst, errno }
    }
}

/// Metadata that this process's files get in the destination, found by creating one. It saves a change of owner and
/// mode per file, and a look at the umask, which belongs to the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewFileDefaults {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Permission bits that the umask lets through.
    pub(crate) mask: RawMode,
    pub(crate) times: HeldTimes,
}

impl XattrTarget<'_> {
    fn chown(self, uid: Option<Uid>, gid: Option<Gid>) -> sys::Result<()> {
        match self {
            Self::Open(fd) => rustix::fs::fchown(fd, uid, gid),
            Self::Named(directory, name) => rustix::fs::chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
        }
    }

    fn set_times(self, times: &Timestamps) -> sys::Result<()> {
        match self {
            Self::Open(fd) => rustix::fs::futimens(fd, times),
            Self::Named(directory, name) => rustix::fs::utimensat(directory, name, times, AtFlags::SYMLINK_NOFOLLOW),
        }
    }
}

/// Copies metadata. One per worker, so that its buffers need no lock.
pub(crate) struct MetadataKeeper<'a> {
    created: NewFileDefaults,
    plain: Option<&'a PlainCopy>,
    /// The source may be an overlay's upper directory, whose own attributes are not kept.
    pub(super) of_upper: bool,
    notes: &'a Notes,
    names: Vec<u8>,
    value: Vec<u8>,
    /// Refused owners, not tried again for each file.
    refused: Vec<(u32, u32, Errno)>,
}

pub(crate) const PERMISSIONS: RawMode = 0o777;
const CAPABILITY: &CStr = c"security.capability";
const SET_ID: RawMode = 0o6000;
const ALL_MODE_BITS: RawMode = 0o7777;

impl<'a> MetadataKeeper<'a> {
    pub(crate) fn new(created: NewFileDefaults, plain: Option<&'a PlainCopy>, notes: &'a Notes) -> Self {
        Self { created, plain, of_upper: false, notes, names: Vec::new(), value: Vec::new(), refused: Vec::new() }
    }

    /// Reads the names of the source's extended attributes for the next [`Self::keep`].
    pub(crate) fn load_xattrs(&mut self, src: XattrTarget<'_>) -> Result<(), Fault> {
        if self.plain.is_some_and(|plain| plain.xattrs == KeptXattrs::No) {
            return Ok(());
        }
        match (sys::list_xattrs(src, &mut self.names).map(drop), src) {
            // Without /proc, or the name has just gone.
            (Err(Errno::NOENT), XattrTarget::Named(..)) => self.names.clear(),
            (listed, _) => listed.map_err(Fault::src(Operation::ReadXattrs))?,
        }
        Ok(())
    }

    /// Returns the mode to create a file with: the final one, if nothing must be done to the file before it gets it.
    pub(crate) fn creation_mode(&self, stat: &Stat) -> Mode {
        let owned = self.plain.is_some() || (stat.st_uid, stat.st_gid) == (self.created.uid, self.created.gid);
        if owned && self.names.is_empty() {
            Mode::from_raw_mode(stat.st_mode & PERMISSIONS)
        } else {
            Mode::RUSR | Mode::WUSR
        }
    }

    /// Gives `dst`, which belongs to `created`, all metadata of `src`. `mode_now` is the mode that `dst` is known to have:
    /// not a directory's, which may have inherited the set-group-ID bit. `load_xattrs(src)` must have been called.
    pub(crate) fn keep(
        &mut self,
        src: XattrTarget<'_>,
        dst: XattrTarget<'_>,
        stat: &Stat,
        mode_now: Option<RawMode>,
        path: &dyn Fn() -> PathBuf,
    ) -> Result<(), Fault> {
        let owner_kept = self.keep_owner(dst, stat, path)?;
        if !self.names.is_empty() {
            self.keep_xattrs(src, dst, owner_kept, path)?;
        }
        if sys::kind(stat) != FileType::Symlink {
            let mut mode = stat.st_mode & ALL_MODE_BITS;
            if !owner_kept && mode & SET_ID != 0 {
                mode &= !SET_ID;
                self.notes.not_kept(WarningCode::SetIdDropped, "set-user-ID or set-group-ID bits", Errno::PERM, path);
            }
            if mode_now != Some(mode) || !self.names.is_empty() {
                self.set_mode(dst, mode)?;
            }
        }
        let times_kept = match self.plain.map(|plain| plain.times) {
            None | Some(KeptTimes::OfAll) => true,
            Some(KeptTimes::OfFiles) => sys::kind(stat) == FileType::RegularFile,
            Some(KeptTimes::None) => false,
        };
        if times_kept {
            dst.set_times(&times(stat)).map_err(Fault::dst(Operation::SetTimes))?;
            if !self.created.times.has(stat) {
                self.notes.not_kept(WarningCode::TimesNotKept, "exact modification time", Errno::NOTSUP, path);
            }
        }
        // A directory with flags could not be filled.
        if let (XattrTarget::Open(src), XattrTarget::Open(dst), true) = (src, dst, !sys::is_directory(stat)) {
            self.set_flags(dst, self.flags(src), stat, path);
        }
        Ok(())
    }

    pub(crate) fn flags(&self, src: BorrowedFd<'_>) -> u32 {
        if self.plain.is_some() { 0 } else { sys::flags_to_keep(src) }
    }

    /// Sets an entry's flags, after which it may be unchangeable. `src` is its source's metadata.
    pub(crate) fn set_flags(&self, dst: BorrowedFd<'_>, flags: u32, src: &Stat, path: &dyn Fn() -> PathBuf) {
        if flags != 0
            && let Err(errno) = sys::add_flags(dst, flags, src)
        {
            self.notes.not_kept(WarningCode::AttributeNotKept, "flags", errno, path);
        }
    }

    pub(crate) fn set_mode(&self, dst: XattrTarget<'_>, mode: RawMode) -> Result<(), Fault> {
        let mode = Mode::from_raw_mode(mode);
        match dst {
            XattrTarget::Open(fd) => rustix::fs::fchmod(fd, mode),
            XattrTarget::Named(directory, name) => sys::set_mode_of_name(directory, name, mode),
        }
        .map_err(Fault::dst(Operation::SetMode))
    }

    pub(crate) fn mode_after_umask(&self, mode: Mode) -> RawMode {
        mode.bits() & self.created.mask
    }

    fn keep_owner(&mut self, dst: XattrTarget<'_>, stat: &Stat, path: &dyn Fn() -> PathBuf) -> Result<bool, Fault> {
        let (now, wanted) = ((self.created.uid, self.created.gid), (stat.st_uid, stat.st_gid));
        if wanted == now || self.plain.is_some() {
            return Ok(true);
        }
        let known = self.refused.iter().find(|(uid, gid, _)| (*uid, *gid) == wanted).map(|known| known.2);
        let refused = match known {
            Some(errno) => Err(errno),
            None => {
                let uid = (wanted.0 != now.0).then(|| Uid::from_raw(wanted.0));
                let gid = (wanted.1 != now.1).then(|| Gid::from_raw(wanted.1));
                match dst.chown(uid, gid) {
                    // The owner may be out of reach where the group is not.
                    Err(Errno::PERM | Errno::INVAL) if uid.is_some() && gid.is_some() => {
                        let _ = dst.chown(None, gid);
                        Err(Errno::PERM)
                    }
                    other => other,
                }
            }
        };
        match refused {
            Ok(()) => Ok(true),
            // INVAL: an id without a mapping in this user namespace. NOTSUPP: a file system without owners.
            Err(errno @ (Errno::PERM | Errno::INVAL | Errno::NOTSUP)) => {
                if known.is_none() && self.refused.len() < 64 && wanted.1 == now.1 {
                    self.refused.push((wanted.0, wanted.1, errno));
                }
                self.notes.not_kept(WarningCode::OwnerNotKept, "owner or group", errno, path);
                Ok(false)
            }
            Err(errno) => Err(Fault::dst(Operation::ChangeOwner)(errno)),
        }
    }

    fn keep_xattrs(
        &mut self,
        src: XattrTarget<'_>,
        dst: XattrTarget<'_>,
        owner_kept: bool,
        path: &dyn Fn() -> PathBuf,
    ) -> Result<(), Fault> {
        for name in sys::xattr_names(&self.names) {
            if !owner_kept && name == CAPABILITY {
                // As with set-user-ID bits: they were granted to a file of another owner.
                self.notes.not_kept(WarningCode::XattrNotKept, "file capabilities", Errno::PERM, path);
                continue;
            }
            if self.of_upper && is_overlays_own(name) {
                continue;
            }
            let length = match src.read(name, &mut self.value) {
                Ok(length) => length,
                // Removed meanwhile, or listed although this reader may not have it.
                Err(sys::NO_ATTRIBUTE) => continue,
                Err(errno) => return Err(Fault::src(Operation::ReadXattrs)(errno)),
            };
            match dst.write(name, &self.value[..length]) {
                Ok(()) => {}
                Err(errno) if may_be_lost(errno, dst) => {
                    let what = format!("extended attribute {}", name.to_string_lossy());
                    self.notes.not_kept(WarningCode::XattrNotKept, &what, errno, path);
                }
                Err(errno) => return Err(Fault::dst(Operation::SetXattrs)(errno)),
            }
        }
        Ok(())
    }
}

/// Gives the directory `dst` with the metadata `now` everything of `src` (`stat`) but its flags. Returns the keeper.
pub(crate) fn keep_directory<'a>(
    (src, stat): (BorrowedFd<'_>, &Stat),
    (dst, now): (BorrowedFd<'_>, &Stat),
    times: HeldTimes,
    plain: Option<&'a PlainCopy>,
    notes: &'a Notes,
) -> Result<MetadataKeeper<'a>, Fault> {
    let created = NewFileDefaults { uid: now.st_uid, gid: now.st_gid, mask: 0o777, times };
    let mut keeper = MetadataKeeper::new(created, plain, notes);
    let (src, dst) = (XattrTarget::Open(src), XattrTarget::Open(dst));
    keeper.load_xattrs(src)?;
    keeper.keep(src, dst, stat, None, &Default::default)?;
    Ok(keeper)
}

/// Returns whether this user's overlays use the attribute themselves (overlayfs.rst). Root may have `user.overlay.*`.
pub(crate) fn is_overlays_own(name: &CStr) -> bool {
    let is_used = || sys::opaque_attribute().to_bytes().starts_with(b"user.");
    name.to_bytes().starts_with(b"trusted.overlay.") || name.to_bytes().starts_with(b"user.overlay.") && is_used()
}

/// Returns whether a refused attribute is only reported: no privilege, support or room (ENOSPC with free blocks).
pub(crate) fn may_be_lost(errno: Errno, dst: XattrTarget<'_>) -> bool {
    const SOME_ROOM_BYTES: u64 = 1 << 20;
    match errno {
        Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::TOOBIG | Errno::RANGE | Errno::INVAL => true,
        Errno::NOSPC => {
            let (XattrTarget::Open(fd) | XattrTarget::Named(fd, _)) = dst;
            rustix::fs::fstatvfs(fd.as_fd()).is_ok_and(|room| sys::available(&room) > SOME_ROOM_BYTES)
        }
        _ => false,
    }
}

/// Returns whether an entry was not written to between two looks at it.
pub(crate) fn same_version(before: &Stat, after: &Stat) -> bool {
    (before.st_mtime, before.st_mtime_nsec, before.st_ctime, before.st_ctime_nsec, before.st_size)
        == (after.st_mtime, after.st_mtime_nsec, after.st_ctime, after.st_ctime_nsec, after.st_size)
}
