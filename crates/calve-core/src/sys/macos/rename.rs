//! Renames, which macOS may deny because of a directory's own mode, access control list or flags.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};

use super::kernel;
use crate::vocabulary::hidden_name::is_calves_own;

/// Renames unless the new name exists (EEXIST). ENOTSUP on file systems that cannot.
pub(crate) fn rename_no_replace(
    from: BorrowedFd<'_>,
    name: &CStr,
    parent: BorrowedFd<'_>,
    new_name: &CStr,
) -> Result<()> {
    opened_up(&[(from, name)], || kernel::rename(from, name, parent, new_name, RenameFlags::NOREPLACE))
}

/// Exchanges two names in one step. ENOTSUP on file systems that cannot.
pub(crate) fn rename_exchange(from: BorrowedFd<'_>, name: &CStr, parent: BorrowedFd<'_>, other: &CStr) -> Result<()> {
    let names = [(from, name), (parent, other)];
    opened_up(&names, || kernel::rename(from, name, parent, other, RenameFlags::EXCHANGE))
}

/// Renames. If denied, lifts the entries' restraints, renames, and restores them by descriptor. May fail as before.
fn opened_up(names: &[(BorrowedFd<'_>, &CStr)], rename: impl Fn() -> Result<()>) -> Result<()> {
    let first = rename();
    if !matches!(first, Err(Errno::ACCESS | Errno::PERM)) {
        return first;
    }
    let mut restraints = Vec::new();
    let lifted = names.iter().try_for_each(|(parent, name)| {
        restraints.push(Restraints::read(*parent, name)?);
        restraints.last().map_or(Ok(()), Restraints::lift)
    });
    let renamed = match lifted {
        Ok(()) => rename(),
        Err(_) => first,
    };
    // In reverse, in case both are one.
    restraints.iter().rev().for_each(Restraints::impose);
    renamed
}

struct Restraints {
    file: OwnedFd,
    mode: Mode,
    /// Only for Calve's own entries: a list or a flag on a user's entry means that it is to stay.
    acl: Option<Vec<u8>>,
    flags: u32,
}

impl Restraints {
    fn read(parent: BorrowedFd<'_>, name: &CStr) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        let (acl, flags) = match is_calves_own(name.to_bytes()) {
            true => (kernel::read_acl(file.as_fd())?, kernel::flags(file.as_fd())?),
            false => (None, 0),
        };
        Ok(Self { file, mode, acl, flags })
    }

    fn lift(&self) -> Result<()> {
        let file = self.file.as_fd();
        if self.flags & kernel::LOCKED != 0 {
            kernel::set_flags(file, self.flags & !kernel::LOCKED)?;
        }
        if self.acl.is_some() {
            kernel::drop_acl(file);
        }
        rustix::fs::fchmod(file, self.mode | Mode::RWXU)
    }

    fn impose(&self) {
        let file = self.file.as_fd();
        let _ = rustix::fs::fchmod(file, self.mode);
        if let Some(acl) = &self.acl {
            let _ = kernel::write_acl(file, acl);
        }
        if self.flags & kernel::LOCKED != 0 {
            let _ = kernel::set_flags(file, self.flags);
        }
    }
}
