//! A second opinion, by rsync.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::must::must;
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
    let mut command = Command::new("rsync");
    command
        .args(["-aHAX", "--checksum", "--modify-window=-1", "--dry-run", "--itemize-changes", "--delete"])
        // XFS shows its ACLs to root a second time, in its own form. No other file system does.
        .args(["--filter=-x trusted.SGI_ACL_*", "--"])
        .arg(contents_of(a.as_ref()))
        .arg(contents_of(b.as_ref()))
        .env("LC_ALL", "C");
    let output = must(command.output(), "run", Path::new("rsync"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Adds a slash at the end, with which `rsync` means the contents of the directory.
fn contents_of(dir: &Path) -> OsString {
    let mut argument = dir.as_os_str().to_owned();
    argument.push("/");
    argument
}
