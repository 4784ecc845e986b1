//! File extents, on platforms that expose them.

/// A run of a file's bytes on the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// Where in the file.
    pub(crate) logical: u64,
    /// Where on the disk; of no meaning unless `has_address`.
    pub(crate) physical: u64,
    /// Bytes of the file, which for compressed ones is more than on the disk.
    pub(crate) length: u64,
    /// Another file, or another part of this one, uses it too.
    pub(crate) shared: bool,
    /// Kept in the metadata.
    pub(crate) inline: bool,
    /// It has an address of its own on the disk.
    pub(crate) has_address: bool,
    /// Compressed.
    pub(crate) encoded: bool,
    /// Reserved, and read as zeros.
    pub(crate) unwritten: bool,
}

/// The blocks that clones of a file use too, where nothing tells which blocks these are (APFS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has it")]
pub(crate) struct CloneFamily {
    /// Bytes that deleting the file frees at once.
    pub(crate) private: u64,
    /// Clones of each other that nothing was written to since have the same one.
    pub(crate) number: u64,
    /// How many these are, on the whole volume, with this file; 0 where that is not told.
    pub(crate) members: u32,
}

/// A piece of a disk, and the files that use parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskExtent {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    pub(crate) users: Vec<ExtentUser>,
    /// False when there may be users that are not named.
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

/// How a file system keeps its inodes: in chunks of 64, which an index of each allocation group names.
#[derive(Debug, Clone, Copy)]
#[allow(dead_code, reason = "not every system has it")]
pub(crate) struct InodeSpace {
    pub(crate) inode_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) groups: u64,
    /// Inodes that there is room for, used or not.
    pub(crate) allocated: u64,
    /// The first number of each chunk is a multiple of 64.
    pub(crate) aligned: bool,
}

/// How a file system accounts for space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "not every system has all of them")]
pub(crate) enum SpaceRules {
    /// Nothing is shared: what a file has allocated is what deleting it frees.
    Exact,
    /// The same, but for the block that holds the extended attributes of a file: others with equal ones may use it too.
    Ext,
    /// Extents can be shared, small files lie in the metadata, an extent stays while any part of it is used.
    Btrfs,
    /// Blocks can be shared; inodes are allocated in chunks of 64.
    Xfs,
    /// Files tell which other files are clones of them, but not what they share with those that were written to since.
    Apfs,
    Unknown,
}
