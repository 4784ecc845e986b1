use std::ffi::OsStr;
use std::process::Command;

use crate::sys;

/// A user without any privilege: no capability, supplementary group or account.
#[derive(Debug)]
pub struct UnprivilegedUser;

impl UnprivilegedUser {
    /// Not 65534, which the kernel also shows for ids that a user namespace does not map.
    pub const UID: u32 = 12345;
    pub const GID: u32 = 12345;

    /// Returns a command that runs `program` as this user. Needs root: see [`require_root`](crate::require_root). Other
    /// users must be able to reach the program: copy one below a private home to a [`Volume`](crate::Volume).
    pub fn command(program: impl AsRef<OsStr>) -> Command {
        let mut command = sys::command_as(program.as_ref(), Self::UID, Self::GID);
        // Otherwise the program would look for configuration in root's home, and be refused.
        command.env("HOME", "/nonexistent");
        command
    }
}
