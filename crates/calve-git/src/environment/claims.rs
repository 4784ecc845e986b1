//! The ports that are leased on this machine: a directory that all users can write to, with a symlink for each port.
//!
//! It is made only if there is none, so nobody waits for a lock that other users could hold. It names the leases that it belongs to, and is
//! never followed.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use calve_core::ShownPath;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, fchmod, flock, fstat, mkdirat,
    openat, readlinkat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

use crate::paths::path_of;

/// The claims of one user's leases, in an open directory.
pub(super) struct Claims {
    directory: OwnedFd,
    /// The directory that these leases are in.
    leases: PathBuf,
}

impl Claims {
    /// Opens the directory, which is made if it is missing.
    pub(super) fn open(directory: &Path, leases: &Path) -> io::Result<Self> {
        let everybody = Mode::from_raw_mode(0o1777);
        let failed = |error: Errno| {
            let error = io::Error::from(error);
            io::Error::new(error.kind(), format!("failed to open the directory `{}`: {error}", ShownPath(directory)))
        };
        let is_new = mkdirat(CWD, directory, everybody).is_ok();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(CWD, directory, flags, Mode::empty()).map_err(failed)?;
        // The umask has taken a part of it away.
        if is_new || was_left_new(&opened).map_err(failed)? {
            fchmod(&opened, everybody).map_err(failed)?;
        }
        Ok(Self { directory: opened, leases: leases.to_path_buf() })
    }

    /// Claims a port. Returns false if it is leased to somebody else.
    pub(super) fn claim(&self, port: u16) -> io::Result<bool> {
        loop {
            match symlinkat(&self.leases, &self.directory, name(port)) {
                Ok(()) => return Ok(true),
                Err(Errno::EXIST) => match self.holder(port) {
                    Holder::These => return Ok(true),
                    Holder::Nobody if self.remove_dead(port) => {}
                    Holder::Nobody | Holder::Others => return Ok(false),
                },
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Claims ports that are leased, unless they are claimed, and tells whoever removes old files that they are in use. Returns the first
    /// that others have claimed.
    pub(super) fn renew(&self, ports: impl Iterator<Item = u16>) -> io::Result<Option<u16>> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let now = Timestamps { last_access: now, last_modification: now };
        let mut taken = None;
        for port in ports {
            match self.claim(port)? {
                true => utimensat(&self.directory, name(port), &now, AtFlags::SYMLINK_NOFOLLOW)?,
                false => _ = taken.get_or_insert(port),
            }
        }
        Ok(taken)
    }

    /// Gives up all claims of these leases but those that `is_leased`.
    pub(super) fn retain(&self, is_leased: impl Fn(u16) -> bool) -> io::Result<()> {
        for entry in rustix::fs::Dir::read_from(&self.directory)? {
            let entry = entry?;
            let Some(port) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) else { continue };
            if !is_leased(port) && self.holder(port) == Holder::These {
                self.remove(port);
            }
        }
        Ok(())
    }

    fn holder(&self, port: u16) -> Holder {
        let is_own = |found: Stat| found.st_uid == rustix::process::geteuid().as_raw();
        let found = statat(&self.directory, name(port), AtFlags::SYMLINK_NOFOLLOW);
        let (true, Ok(leases)) = (found.is_ok_and(is_own), readlinkat(&self.directory, name(port), Vec::new())) else {
            return Holder::Others;
        };
        match path_of(leases.as_bytes()) {
            leases if leases == self.leases => Holder::These,
            leases if fs_err::symlink_metadata(&leases).is_err_and(|error| error.kind() == ErrorKind::NotFound) => {
                Holder::Nobody
            }
            _ => Holder::Others,
        }
    }

    /// Removes a claim of leases that are gone. Returns false if another process may be doing that, and making a claim of its own.
    fn remove_dead(&self, port: u16) -> bool {
        if flock(&self.directory, FlockOperation::NonBlockingLockExclusive).is_err() {
            return false;
        }
        let is_removed = self.holder(port) == Holder::Nobody && self.remove(port);
        let _ = flock(&self.directory, FlockOperation::Unlock);
        is_removed
    }

    fn remove(&self, port: u16) -> bool {
        matches!(unlinkat(&self.directory, name(port), AtFlags::empty()), Ok(()) | Err(Errno::NOENT))
    }
}

/// Returns whether this user's process was killed between making the directory and opening it to all.
fn was_left_new(directory: &OwnedFd) -> rustix::io::Result<bool> {
    let found = fstat(directory)?;
    if found.st_uid != rustix::process::geteuid().as_raw() || found.st_mode & 0o7777 == 0o1777 {
        return Ok(false);
    }
    let mut names = rustix::fs::Dir::read_from(directory)?;
    Ok(names.all(|entry| entry.is_ok_and(|entry| [&b"."[..], b".."].contains(&entry.file_name().to_bytes()))))
}

fn name(port: u16) -> String {
    port.to_string()
}

/// The holder of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    These,
    /// Another user, or other leases of this user's.
    Others,
    /// Leases of this user's that are no longer there.
    Nobody,
}
