//! Strategies, what may be required of them, and why one declined.

#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;

use crate::remedy::Remedy;

/// One way to clone. In order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Strategy {
    /// A clone that was made ahead of time, checked and renamed: see [`CloneOptions::spares`].
    Spare,
    /// The file system's own snapshot (btrfs): one call, whatever the size.
    Snapshot,
    /// One `clonefile` call for the tree (APFS).
    Clonefile,
    /// Per file, extents shared (`FICLONE`).
    Reflink,
    /// Per file, bytes read and written. Always works.
    Copy,
    /// Per file, the same inode under a second name: **the trees are not independent**. Only when named.
    Hardlink,
    /// An OverlayFS mount. Only for callers that own the lifetime of the mount: see [`crate::mount_overlay`].
    Overlay,
}

impl Strategy {
    /// All of them, in order of preference.
    pub const ALL: [Self; 7] =
        [Self::Spare, Self::Snapshot, Self::Clonefile, Self::Reflink, Self::Copy, Self::Hardlink, Self::Overlay];

    /// Returns the name that receipts and the command line use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spare => "spare",
            Self::Snapshot => "snapshot",
            Self::Clonefile => "clonefile",
            Self::Reflink => "reflink",
            Self::Copy => "copy",
            Self::Hardlink => "hardlink",
            Self::Overlay => "overlay",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == name)
            .ok_or_else(|| format!("there is no strategy `{name}`"))
    }
}

/// Which strategies may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The fastest that this pair of places really offers.
    #[default]
    Fastest,
    /// This one or none.
    Only(Strategy),
}

/// A property without which the clone must not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// The cost does not grow with the tree.
    Instant,
    /// No file data is written by Calve itself.
    Cow,
    /// No entry changed from the beginning to the end, so that the clone is the source as it was at one moment. A snapshot is;
    /// the per-file strategies look at every entry's change time (ctime) again before the clone gets its name. Times of whole
    /// seconds (ext3, FAT) hide a change within the first second. On Linux the source must be on ext4, XFS or btrfs: elsewhere a store
    /// through a shared mapping may leave no trace.
    Stable,
}

impl Requirement {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Instant, Self::Cow, Self::Stable];

    /// Returns the name that the command line and the packages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instant => "instant",
            Self::Cow => "cow",
            Self::Stable => "stable",
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Requirement {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|requirement| requirement.name() == name);
        named.ok_or_else(|| "the properties are instant, cow and stable".into())
    }
}

/// A strategy that declined, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct Refusal {
    pub strategy: Strategy,
    /// Why, in a few words.
    pub reason: String,
    /// The condition that would make it available, where there is one.
    pub remedy: Option<Remedy>,
}
