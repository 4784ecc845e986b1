use std::path::Path;
use std::process::Command;

use crate::must::run;
use crate::skip::require_program;

/// Returns the itemized list of changes that `rsync` would make to turn tree `b` into `a`; empty if they are equal,
/// after a [`skip`](crate::skip()) without `rsync`, and on macOS, whose `rsync` is another program with other options.
///
/// Compares contents, modes, owners, nanosecond times, xattrs, ACLs, hard links, devices and names, but not holes. It
/// cannot go deeper than PATH_MAX.
#[track_caller]
pub fn rsync_differences(a: impl AsRef<Path>, b: impl AsRef<Path>) -> String {
    if cfg!(target_os = "macos") || !require_program("rsync") {
        return String::new();
    }
    run(Command::new("rsync")
        .args(["-aHAX", "--checksum", "--modify-window=-1", "--dry-run", "--itemize-changes", "--delete"])
        // XFS alone shows its ACLs to root a second time, in its own format.
        .args(["--filter=-x trusted.SGI_ACL_*", "--"])
        // A trailing slash means the contents of the directory.
        .args([a.as_ref().join(""), b.as_ref().join("")])
        .env("LC_ALL", "C"))
}
