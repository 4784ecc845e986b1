//! A volume as it is asked for, before it is made.

use std::path::PathBuf;

use crate::skip::find_program;

pub(super) const MIB: u64 = 1 << 20;

/// The file systems that a [`Volume`](super::Volume) can have. On macOS those that share extents are APFS, and the others HFS+.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FileSystem {
    /// No sharing of extents at all.
    Ext4,
    /// Its mkfs has made it with `reflink=1` since xfsprogs 5.1.
    Xfs,
    Btrfs,
    /// In memory, without a loop device.
    Tmpfs,
}

impl FileSystem {
    /// All of them, for tests that hold everywhere.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Those that share extents between files.
    pub const REFLINKING: [Self; 2] = [Self::Xfs, Self::Btrfs];

    /// Returns the name that `mount -t` knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }
}

#[derive(Clone, Debug)]
pub struct VolumeBuilder {
    pub(super) file_system: FileSystem,
    pub(super) bytes: u64,
    pub(super) mkfs: Vec<String>,
    pub(super) mount: Vec<String>,
}

impl VolumeBuilder {
    /// Sets the size, raised to the least that the file system can have. The image is sparse.
    pub fn size_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Adds arguments for mkfs, such as `["-N", "256"]` for an ext4 of few inodes, or `["-m", "reflink=0"]` for an XFS that shares no
    /// blocks. tmpfs has none: use `mount_option("nr_inodes=256")`.
    pub fn mkfs_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.mkfs.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a mount option, such as `user_subvol_rm_allowed`.
    pub fn mount_option(mut self, option: impl Into<String>) -> Self {
        self.mount.push(option.into());
        self
    }
}

pub(super) fn program(name: &str) -> PathBuf {
    find_program(name).unwrap_or_else(|| panic!("the program `{name}` is not installed"))
}
