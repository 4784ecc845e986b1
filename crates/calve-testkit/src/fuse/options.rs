//! The faults of a file system.

use std::ffi::OsString;
use std::time::Duration;

/// Faults of a [`FuseVolume`](super::FuseVolume), besides having no reflinks, no xattrs, no ACLs and no `RENAME_NOREPLACE`.
#[derive(Clone, Debug, Default)]
pub struct FuseOptions {
    /// Reading a file of this name fails with EIO; it can be written.
    pub unreadable_name: Option<OsString>,
    /// How long creating or removing a file takes at least.
    pub slowness: Duration,
    /// copy_file_range(2) copies at most this many bytes from the start of a file, and then returns 0 before the file's end, as
    /// NFS, CIFS and Ceph may. By default the file system has no such call.
    pub copies_up_to_bytes: Option<u64>,
    /// flock(2) fails with EOPNOTSUPP.
    pub refuses_flock: bool,
}
