//! A file that a new one replaces: the new one keeps the old one's permissions or fewer, never more.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{FileType, Gid, Mode, RawMode, Stat, Uid};
use rustix::io::Errno;

use crate::sys::{self, XattrTarget};
use crate::tree::fill::metadata::is_overlays_own;

const ACCESS_ACL: &CStr = c"system.posix_acl_access";
/// Attributes that hold for the old contents only: capabilities(7), and the hashes of IMA and EVM.
const OF_CONTENTS: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];
/// System attributes other than [`ACCESS_ACL`] grant access too, as `system.nfs4_acl` does.
const OF_SYSTEM: &[u8] = b"system.";

/// A regular file that is to be replaced by a new one of its name.
#[derive(Debug)]
pub struct ReplacedFile {
    stat: Stat,
    /// `None` if this user may not read it.
    opened: Option<OwnedFd>,
    acl: OldAcl,
    xattrs: Vec<(CString, Vec<u8>)>,
}

#[derive(Debug)]
enum OldAcl {
    None,
    Has(Acl),
    /// Unreadable, or of an unknown form.
    Unknown,
}

impl ReplacedFile {
    /// Mode to create the new file with: until [`keep_in`](Self::keep_in), only this user can open it.
    pub const NEW_MODE: u32 = 0o600;

    /// Finds the file of this name. Returns `None` if it is missing or not a regular file.
    pub fn find(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<Self>> {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        let stat = match sys::stat_at(directory, &*name) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        if sys::kind(stat) != FileType::RegularFile {
            return Ok(None);
        }
        let opened = sys::open_at(directory, &*name, sys::FILE).ok();
        let (opened, stat) = match opened.map(|opened| rustix::fs::fstat(&opened).map(|stat| (opened, stat))) {
            Some(Ok((opened, stat))) if sys::kind(stat) == FileType::RegularFile => (Some(opened), stat),
            _ => (None, stat),
        };
        let from = match &opened {
            Some(opened) => XattrTarget::Open(opened.as_fd()),
            None => XattrTarget::Named(directory, &name),
        };
        let (acl, xattrs) = attributes(from, opened.is_some());
        Ok(Some(Self { stat, opened, acl, xattrs }))
    }

    /// Gives a new file the old one's owner, group, permission bits, access control list and extended attributes, where
    /// permitted; anything refused is taken from everyone who could profit from it. Drops set-ID bits and capabilities,
    /// which were granted to other contents. Call it before writing the contents. Returns whether owner and group stay.
    ///
    /// # Errors
    /// Fails if more users could open the new file than the old one.
    pub fn keep_in(&self, file: BorrowedFd<'_>) -> io::Result<bool> {
        let old = &self.stat;
        let new = rustix::fs::fstat(file)?;
        let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        let group_stays = new.st_gid == old.st_gid || rustix::fs::fchown(file, None, Some(group)).is_ok();
        let owner_stays = new.st_uid == old.st_uid || rustix::fs::fchown(file, Some(owner), None).is_ok();
        let mut acl_stays = true;
        for (name, value) in &self.xattrs {
            let written = XattrTarget::Open(file).write(name, value);
            acl_stays &= written.is_ok() || !name.to_bytes().starts_with(OF_SYSTEM);
        }
        // The directory may have bequeathed one.
        sys::drop_acl(file)?;
        if let Some(opened) = &self.opened {
            sys::keep_acl(opened.as_fd(), file)?;
        }
        let classes = Classes::from_mode(old.st_mode);
        let kept = match &self.acl {
            _ if !acl_stays => classes.owner_only(),
            OldAcl::Unknown => classes.owner_only(),
            OldAcl::None if group_stays => classes,
            OldAcl::None => classes.in_another_group(),
            OldAcl::Has(acl) => {
                let acl = if group_stays { acl.clone() } else { acl.in_another_group(new.st_gid) };
                match XattrTarget::Open(file).write(ACCESS_ACL, &acl.to_bytes()) {
                    // The list contains the permission bits.
                    Ok(()) => return Ok(owner_stays && group_stays),
                    Err(_) => acl.without_names(),
                }
            }
        };
        rustix::fs::fchmod(file, kept.mode())?;
        Ok(owner_stays && group_stays)
    }
}

fn attributes(from: XattrTarget<'_>, is_readable: bool) -> (OldAcl, Vec<(CString, Vec<u8>)>) {
    let mut names = Vec::new();
    let Ok(names) = sys::list_xattrs(from, &mut names) else { return (OldAcl::Unknown, Vec::new()) };
    let (mut acl, mut xattrs, mut value) = (OldAcl::None, Vec::new(), Vec::new());
    for name in sys::xattr_names(names) {
        let is_kept = !OF_CONTENTS.contains(&name.to_bytes()) && !is_overlays_own(name);
        let is_of_system = name.to_bytes().starts_with(OF_SYSTEM);
        if !is_kept || !is_readable && !is_of_system {
            continue;
        }
        match from.read(name, &mut value) {
            Ok(length) if name == ACCESS_ACL => {
                acl = Acl::parse(&value[..length]).map_or(OldAcl::Unknown, OldAcl::Has);
            }
            Ok(length) => xattrs.push((name.to_owned(), value[..length].to_vec())),
            Err(sys::NO_ATTRIBUTE) => {}
            Err(_) if is_of_system => acl = OldAcl::Unknown,
            Err(_) => {}
        }
    }
    (acl, xattrs)
}

/// Permissions of owner, group and all others, three bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Classes {
    owner: u16,
    group: u16,
    other: u16,
}

impl Classes {
    #[allow(clippy::useless_conversion, reason = "on macOS a mode has 16 bits")]
    fn from_mode(mode: RawMode) -> Self {
        let class = |shift: u32| u16::try_from(mode >> shift & 0o7).unwrap_or(0);
        Self { owner: class(6), group: class(3), other: class(0) }
    }

    /// Returns the permissions in another group. Its members were among all others, and the old group's now are.
    fn in_another_group(self) -> Self {
        let both = self.group & self.other;
        Self { group: both, other: both, ..self }
    }

    fn owner_only(self) -> Self {
        Self { group: 0, other: 0, ..self }
    }

    fn mode(self) -> Mode {
        let [owner, group, other] = [self.owner, self.group, self.other].map(RawMode::from);
        Mode::from_raw_mode(owner << 6 | group << 3 | other)
    }
}

/// A POSIX access control list, as the kernel stores it (acl(5), include/uapi/linux/posix_acl_xattr.h).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Acl(Vec<AclEntry>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AclEntry {
    tag: u16,
    permissions: u16,
    id: u32,
}

impl Acl {
    const VERSION: [u8; 4] = 2_u32.to_le_bytes();
    const OWNER: u16 = 0x01;
    const USER: u16 = 0x02;
    const OWN_GROUP: u16 = 0x04;
    const GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (entries, rest) = bytes.strip_prefix(&Self::VERSION)?.as_chunks::<8>();
        let entry = |&[t0, t1, p0, p1, i0, i1, i2, i3]: &[u8; 8]| AclEntry {
            tag: u16::from_le_bytes([t0, t1]),
            permissions: u16::from_le_bytes([p0, p1]),
            id: u32::from_le_bytes([i0, i1, i2, i3]),
        };
        rest.is_empty().then(|| Self(entries.iter().map(entry).collect()))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let entries = self.0.iter().flat_map(|AclEntry { tag, permissions, id }| {
            let [tag, permissions] = [tag, permissions].map(|number| number.to_le_bytes());
            [&tag[..], &permissions, &id.to_le_bytes()].concat()
        });
        Self::VERSION.into_iter().chain(entries).collect()
    }

    fn permissions(&self, tag: u16) -> Option<u16> {
        self.0.iter().find(|entry| entry.tag == tag).map(|entry| entry.permissions)
    }

    /// Returns the classes' permissions, with the mask applied to the group.
    fn classes(&self) -> Classes {
        let of = |tag| self.permissions(tag).unwrap_or(0);
        Classes { owner: of(Self::OWNER), group: of(Self::OWN_GROUP) & self.mask(), other: of(Self::OTHER) }
    }

    fn mask(&self) -> u16 {
        self.permissions(Self::MASK).unwrap_or(0o7)
    }

    /// Returns the list in another group: see [`Classes::in_another_group`]. An entry for that group stays its limit.
    fn in_another_group(&self, group: u32) -> Self {
        let Classes { group: most, other, .. } = self.classes().in_another_group();
        let named = self.0.iter().filter(|entry| entry.tag == Self::GROUP && entry.id == group);
        let most = named.fold(most, |most, entry| most & entry.permissions);
        let changed = |&entry: &AclEntry| match entry.tag {
            Self::OWN_GROUP => AclEntry { permissions: most, ..entry },
            Self::OTHER => AclEntry { permissions: other, ..entry },
            _ => entry,
        };
        Self(self.0.iter().map(changed).collect())
    }

    /// Returns the permissions without the list. Named entries fall back to a class: it may have no more than they.
    fn without_names(&self) -> Classes {
        let named = self.0.iter().filter(|entry| [Self::USER, Self::GROUP].contains(&entry.tag));
        let most = named.fold(0o7, |most, entry| most & entry.permissions & self.mask());
        let classes = self.classes();
        Classes { group: classes.group & most, other: classes.other & most, ..classes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_ID: u32 = u32::MAX;

    fn acl(entries: &[(u16, u16, u32)]) -> Acl {
        Acl(entries.iter().map(|&(tag, permissions, id)| AclEntry { tag, permissions, id }).collect())
    }

    fn classes(owner: u16, group: u16, other: u16) -> Classes {
        Classes { owner, group, other }
    }

    #[test]
    fn a_list_is_read_and_written() {
        let list = acl(&[
            (Acl::OWNER, 6, NO_ID),
            (Acl::USER, 4, 1001),
            (Acl::OWN_GROUP, 0, NO_ID),
            (Acl::MASK, 4, NO_ID),
            (Acl::OTHER, 0, NO_ID),
        ]);
        assert_eq!(Acl::parse(&list.to_bytes()), Some(list.clone()));
        assert_eq!(list.to_bytes()[..12], [2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255]);
        for bad in [&b""[..], &[1, 0, 0, 0], &[2, 0, 0, 0, 1], &[2, 0]] {
            assert_eq!(Acl::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn without_its_list_a_file_is_open_to_nobody_new() {
        // The mask let one user in, and not the group.
        let reader = acl(&[
            (Acl::OWNER, 6, NO_ID),
            (Acl::USER, 4, 1001),
            (Acl::OWN_GROUP, 0, NO_ID),
            (Acl::MASK, 4, NO_ID),
            (Acl::OTHER, 0, NO_ID),
        ]);
        assert_eq!(reader.without_names(), classes(6, 0, 0));
        // One user was kept out of what everybody may read.
        let denied = acl(&[
            (Acl::OWNER, 6, NO_ID),
            (Acl::USER, 0, 1001),
            (Acl::OWN_GROUP, 4, NO_ID),
            (Acl::MASK, 4, NO_ID),
            (Acl::OTHER, 4, NO_ID),
        ]);
        assert_eq!(denied.without_names(), classes(6, 0, 0));
        // The mask narrows the group.
        let masked = acl(&[
            (Acl::OWNER, 7, NO_ID),
            (Acl::OWN_GROUP, 7, NO_ID),
            (Acl::GROUP, 7, 50),
            (Acl::MASK, 5, NO_ID),
            (Acl::OTHER, 1, NO_ID),
        ]);
        assert_eq!(masked.without_names(), classes(7, 5, 1));
    }

    #[test]
    fn in_another_group_a_file_is_open_to_nobody_new() {
        for (mode, expected) in [(0o640, 0o600), (0o644, 0o644), (0o604, 0o600), (0o664, 0o644), (0o6755, 0o755)] {
            assert_eq!(Classes::from_mode(mode).in_another_group().mode(), Mode::from_raw_mode(expected), "{mode:o}");
        }
        let list = acl(&[
            (Acl::OWNER, 6, NO_ID),
            (Acl::OWN_GROUP, 6, NO_ID),
            (Acl::GROUP, 0, 50),
            (Acl::MASK, 6, NO_ID),
            (Acl::OTHER, 4, NO_ID),
        ]);
        assert_eq!(list.in_another_group(60).classes(), classes(6, 4, 4));
        // That group was kept out.
        assert_eq!(list.in_another_group(50).classes(), classes(6, 0, 4));
    }
}
