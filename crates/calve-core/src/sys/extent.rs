//! File extents, on platforms that expose them.

#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Offset in the file.
    pub(crate) logical: u64,
    /// Address on disk; meaningless unless `has_address`.
    pub(crate) physical: u64,
    /// Bytes of the file: more than on disk if compressed.
    pub(crate) length: u64,
    /// Used by another file too, or by another part of this one.
    pub(crate) shared: bool,
    /// Kept in the metadata.
    pub(crate) inline: bool,
    pub(crate) has_address: bool,
    /// Compressed.
    pub(crate) encoded: bool,
    /// Reserved, reads as zeros.
    pub(crate) unwritten: bool,
}

/// A file's sharing with its clones, where nothing tells which blocks are shared (APFS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has it")]
pub(crate) struct CloneFamily {
    /// Bytes that deleting the file frees at once.
    pub(crate) private: u64,
    /// Equal for clones of each other that were not written to since.
    pub(crate) number: u64,
    /// Number of such clones on the whole volume, with this file; 0 if unknown.
    pub(crate) members: u32,
}

/// A run of bytes on disk, and the files that use parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskExtent {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) users: Vec<ExtentUser>,
    /// False if `users` may be incomplete.
    pub(crate) all_known: bool,
}

impl DiskExtent {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExtentUser {
    pub(crate) subvolume: u64,
    pub(crate) inode: u64,
}

/// A file system's inode storage: chunks of 64, indexed in each allocation group.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "not every system has it")]
pub(crate) struct InodeSpace {
    pub(crate) inode_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) groups: u64,
    /// Inodes with room on disk, used or not.
    pub(crate) allocated: u64,
    /// Each chunk's first number is a multiple of 64.
    pub(crate) aligned: bool,
}

/// How a file system accounts for space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has all of them")]
pub(crate) enum SpaceRules {
    /// Nothing is shared: deleting a file frees all that it has allocated.
    Exact,
    /// As `Exact`, but files with equal extended attributes may share the block that holds them.
    Ext,
    /// Extents can be shared, small files lie in the metadata, and an extent stays while any part of it is used.
    Btrfs,
    /// Blocks can be shared; inodes are allocated in chunks of 64.
    Xfs,
    /// A file's clones are known, but not how much it still shares with those written to since.
    Apfs,
    Unknown,
}
