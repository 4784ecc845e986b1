use std::path::PathBuf;

use crate::skip::find_program;

pub(super) const MIB: u64 = 1 << 20;

/// The file systems for a [`Volume`](super::Volume). macOS has APFS for those that share extents, else HFS+.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FileSystem {
    Ext4,
    /// `mkfs.xfs` sets `reflink=1` by default since xfsprogs 5.1.
    Xfs,
    Btrfs,
    /// In memory, without a loop device.
    Tmpfs,
}

impl FileSystem {
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    pub const REFLINKING: [Self; 2] = [Self::Xfs, Self::Btrfs];

    /// Returns the name for `mount -t`.
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
    /// Sets the size of the sparse image, raised to the file system's minimum.
    pub fn size_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Adds mkfs arguments, such as `["-N", "256"]` for an ext4 with few inodes, or `["-m", "reflink=0"]` for an XFS
    /// without shared blocks. tmpfs has no mkfs: use `mount_option("nr_inodes=256")`.
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
