//! Commands run as a user who owns nothing.

use std::ffi::OsStr;
use std::process::Command;

use crate::sys;

/// A second user without any privilege: no capability, no supplementary group, no account.
#[derive(Debug)]
pub struct UnprivilegedUser;

impl UnprivilegedUser {
    /// The user id. Not 65534, which the kernel also shows for ids that a user namespace does not map.
    pub const UID: u32 = 12345;
    pub const GID: u32 = 12345;

    /// Returns a command that runs `program` as this user. Only root can become another user: see [`require_root`](crate::require_root).
    ///
    /// The program and all directories above it must be reachable by others, as those of a build below a private home directory are not:
    /// then copy the program to a [`Volume`](crate::Volume) first.
    pub fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = sys::command_as(program.as_ref(), Self::UID, Self::GID);
        // Root's home would be read for configuration, and refused.
        command.env("HOME", "/nonexistent");
        command
    }
}
