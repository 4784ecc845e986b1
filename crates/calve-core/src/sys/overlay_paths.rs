//! Mounts for one command, and the calls that may be refused.

use std::os::fd::BorrowedFd;
use std::path::Path;

/// An overlay that one command sees, and the lock that its processes inherit.
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux has it"))]
pub(crate) struct OverlayPaths<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) upper: &'a Path,
    pub(crate) work: &'a Path,
    pub(crate) lock: BorrowedFd<'a>,
}

/// The calls that the system has refused to a command.
#[cfg_attr(any(target_os = "macos", like_macos), allow(dead_code, reason = "only Linux has it"))]
pub(crate) enum Denial {
    Namespaces,
    Overlay,
    /// The working directory, in the overlay.
    WorkingDirectory,
}
