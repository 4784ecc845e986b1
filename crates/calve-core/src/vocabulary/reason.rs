//! Warnings, and reasons to leave out an entry. Programs compare the values; people read the texts.

use std::fmt;

use strum::{Display, VariantNames};

/// The kind of a warning. Its code is its name in snake case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum WarningCode {
    /// macOS: the flags of a file could not be set.
    AttributeNotKept,
    CacheNotWritten,
    /// The cache of hashes could not be read, or is damaged.
    CacheUnusable,
    /// macOS: `clonefile` dropped something.
    ClonefileDrops,
    /// A tree could not be moved to the trash, and was deleted where it was.
    DeletedInPlace,
    /// A further name became a file of its own.
    HardLinkNotKept,
    ListTruncated,
    /// Nested subvolumes were snapshotted one after the other.
    NestedSubvolumes,
    /// The clone's files are the source's own.
    NotIndependent,
    /// A directory without read permission came with a snapshot as it is.
    NotScrubbed,
    /// Leftovers of a killed run could not be removed.
    NotSwept,
    /// The entry that was replaced is still there under a hidden name.
    OldNotRemoved,
    OwnerNotKept,
    SetIdDropped,
    SharingUnknown,
    /// Leftovers of a killed run were removed.
    Swept,
    /// The file system of the destination cannot hold a modification time.
    TimesNotKept,
    /// Entries that were removed earlier cannot be deleted.
    TrashStuck,
    XattrNotKept,
}

impl WarningCode {
    /// The codes of all warnings, in alphabetical order.
    pub const CODES: &[&str] = Self::VARIANTS;

    /// Returns whether a clone lacks something of its source.
    pub fn is_loss(self) -> bool {
        use WarningCode::{AttributeNotKept, HardLinkNotKept, OwnerNotKept, SetIdDropped, TimesNotKept, XattrNotKept};
        matches!(self, AttributeNotKept | HardLinkNotKept | OwnerNotKept | SetIdDropped | TimesNotKept | XattrNotKept)
    }
}

/// Why a file was not deduped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display)]
pub enum LeftReason {
    #[strum(serialize = "on a file system that cannot share blocks after the fact")]
    FileSystem,
    #[strum(serialize = "the file system cannot share blocks after the fact")]
    Unsupported,
    #[strum(serialize = "another file system")]
    OtherFileSystem,
    #[strum(serialize = "inline: kept in the file system's metadata")]
    Inline,
    #[strum(serialize = "one has copy-on-write turned off")]
    OneIsNocow,
    #[strum(serialize = "immutable")]
    Immutable,
    #[strum(serialize = "another owner's, and not writable")]
    OtherOwner,
    #[strum(serialize = "in use as swap")]
    Swap,
    #[strum(serialize = "no space left for the file system's own notes")]
    NoRoom,
    #[strum(serialize = "the file system is read-only")]
    ReadOnly,
    #[strum(serialize = "refused by the file system")]
    Refused,
    /// It could not be read, or changed meanwhile.
    #[strum(transparent)]
    Skipped(SkipReason),
}

/// Why an entry was left out, or could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    Excluded,
    /// It is a staged tree, trash or a lock of Calve's.
    CalvesOwn,
    Socket,
    /// It is a device node, which only a privileged user can create.
    Device,
    OtherFileSystem,
    /// The caller may not read it, and permits leaving it out.
    Unreadable,
    PermissionDenied,
    Changed,
    TooManyOpenFiles,
    DeviceError,
    Leased,
    CannotBeRead,
    /// A [`crate::Selection`] left it out.
    Selection {
        /// The selection's own number for its reason.
        number: usize,
        text: &'static str,
    },
}

impl SkipReason {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::CalvesOwn => "calve's own",
            Self::Socket => "socket",
            Self::Device => "device node: creating one needs privilege",
            Self::OtherFileSystem => "another file system or subvolume",
            Self::Unreadable => "you may not read it",
            Self::PermissionDenied => "permission denied",
            Self::Changed => "it changed meanwhile",
            Self::TooManyOpenFiles => "too many open files",
            Self::DeviceError => "input/output error",
            Self::Leased => "another program holds a lease on it",
            Self::CannotBeRead => "it cannot be read",
            Self::Selection { text, .. } => text,
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
