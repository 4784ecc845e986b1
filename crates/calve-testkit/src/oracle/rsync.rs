//! A second opinion, by rsync.

use std::path::Path;
use std::process::Command;

use crate::must::run;
use crate::skip::require_program;

/// Returns what `rsync` would have to do to make the tree `b` the same as `a`: its itemized list, empty if they are equal, and
/// empty after a [`skip`](crate::skip()) if there is no `rsync`. Also empty on macOS, whose `rsync` is another program with other options.
///
/// It compares contents, modes, owners, nanosecond times, xattrs, ACLs, hard links, devices and names, but not holes,
/// and it cannot go deeper than PATH_MAX.
///
/// # Panics
/// If `rsync` fails.
#[track_caller]
pub fn rsync_differences(a: impl AsRef<Path>, b: impl AsRef<Path>) -> String {
    if cfg!(target_os = "macos") || !require_program("rsync") {
        return String::new();
    }
    run(Command::new("rsync")
        .args(["-aHAX", "--checksum", "--modify-window=-1", "--dry-run", "--itemize-changes", "--delete"])
        // XFS shows its ACLs to root a second time, in its own form. No other file system does.
        .args(["--filter=-x trusted.SGI_ACL_*", "--"])
        // With a slash at the end: the contents of the directory.
        .args([a.as_ref().join(""), b.as_ref().join("")])
        .env("LC_ALL", "C"))
}
