//! Results: the plain data behind a receipt.

#![warn(missing_docs)]

use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::choice::{Refusal, Strategy};
use crate::error::Error;
use crate::reason::{SkipReason, WarningCode};

/// How many entries of each kind a clone has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entries {
    /// Directories, the root included.
    pub directories: u64,
    /// Regular files, each inode once.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Named pipes.
    pub fifos: u64,
    /// Character and block devices.
    pub devices: u64,
    /// Further names of a file counted already.
    pub hard_links: u64,
}

impl Entries {
    /// Returns the number of all entries together.
    pub fn total(&self) -> u64 {
        self.directories + self.files + self.symlinks + self.fifos + self.devices + self.hard_links
    }
}

impl AddAssign for Entries {
    fn add_assign(&mut self, other: Self) {
        self.directories += other.directories;
        self.files += other.files;
        self.symlinks += other.symlinks;
        self.fifos += other.fifos;
        self.devices += other.devices;
        self.hard_links += other.hard_links;
    }
}

/// The fate of the contents of regular files, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bytes {
    /// The sum of the files' sizes.
    pub apparent: u64,
    /// Shared with the source. Holes do not count.
    pub shared: u64,
    /// Written by Calve.
    pub written: u64,
    /// Written by the kernel although a reflink was asked for: contents that the file system keeps inside its metadata.
    /// `None` where they were not told from the shared ones, with which they are counted: [`crate::InlinedBytes::WithShared`].
    pub inlined: Option<u64>,
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.apparent += other.apparent;
        self.shared += other.shared;
        self.written += other.written;
        self.inlined = self.inlined.zip(other.inlined).map(|(one, other)| one + other);
    }
}

/// Files that got another treatment than the strategy's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct Fallback {
    /// The treatment that was refused.
    pub from: Strategy,
    /// The one that was used.
    pub to: Strategy,
    /// The operating system's reason.
    pub errno: i32,
    pub files: u64,
    /// The first of them, relative to the source.
    pub first_path: PathBuf,
}

/// An entry that is not in the clone, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct SkippedEntry {
    /// Relative to the source.
    pub path: PathBuf,
    pub reason: SkipReason,
}

/// Something the user should know that is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct Warning {
    pub code: WarningCode,
    /// The first path concerned.
    pub path: Option<PathBuf>,
    /// For people.
    pub message: String,
}

/// A tree that waits to be deleted: see [`crate::reap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedTree {
    /// The directory whose trash it is.
    pub parent: PathBuf,
    /// Its name there.
    pub name: std::ffi::OsString,
}

/// The report of one clone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CloneReport {
    /// As given.
    pub src: PathBuf,
    /// As given.
    pub dst: PathBuf,
    /// The strategy that was used.
    pub strategy: Strategy,
    /// The better ones, and why they were not used.
    pub refused: Vec<Refusal>,
    /// The spare that was handed over, if one was.
    pub spare: Option<SpareReport>,
    /// Whether there is room for another spare of this source: work for [`crate::Spares::refill`].
    pub spares_wanted: bool,
    /// `None` when the strategy did not walk the tree.
    pub entries: Option<Entries>,
    /// `None` when the strategy did not walk the tree.
    pub bytes: Option<Bytes>,
    /// Files that got another treatment.
    pub fell_back: Vec<Fallback>,
    /// Entries that are not in the clone.
    pub skipped: Vec<SkippedEntry>,
    /// Entries of the source that changed while they were cloned, relative to the source.
    pub changed: Vec<PathBuf>,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// The entry that [`crate::ExistingDestination::Replace`] moved away.
    pub trashed: Option<TrashedTree>,
    /// Whether there is trash beside the destination, of this run or of earlier ones: work for [`crate::reap`].
    pub trash_waits: bool,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// A spare that was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the other names say it")]
pub struct SpareReport {
    pub built: SystemTime,
    /// How it was made sure that it equals its source.
    pub checked: SpareCheck,
    /// How many entries were looked at for that.
    pub entries_checked: u64,
    /// How many differed and were made again.
    pub entries_updated: u64,
}

/// How it is made sure that a spare equals its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpareCheck {
    /// The source is a template, which does not change.
    Frozen,
    /// A watcher knows what has changed.
    Watched,
    /// Every entry was compared with what was recorded of it.
    Walked,
}

impl SpareCheck {
    /// Returns a stable word for programs.
    pub fn code(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Watched => "watched",
            Self::Walked => "walked",
        }
    }
}

/// The report of one removal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RemoveReport {
    /// As given.
    pub path: PathBuf,
    /// Where the tree waits for [`crate::reap`]; `None` when it is gone.
    pub trashed: Option<TrashedTree>,
    /// How many entries were deleted before returning.
    pub deleted: u64,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// The answer of [`crate::plan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClonePlan {
    /// The strategy that would be used.
    pub strategy: Strategy,
    /// The better ones, and why they would not be.
    pub refused: Vec<Refusal>,
}

/// The file system that a path is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystemReport {
    /// As given.
    pub path: PathBuf,
    /// "btrfs", "xfs", "ext4", …
    pub file_system: String,
    /// Device number, major and minor.
    pub device: (u32, u32),
}

/// One strategy, and whether it can be used between the two paths.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the other names say it")]
pub struct Offer {
    pub strategy: Strategy,
    /// `None` when it is available.
    pub refused: Option<Refusal>,
}

/// The strategies that can be used between two paths.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbeReport {
    /// The file system of the source.
    pub src: FileSystemReport,
    /// The file system of the destination, or of the directory that it would be made in.
    pub dst: FileSystemReport,
    /// All strategies, in order of preference.
    pub offers: Vec<Offer>,
    /// The strategy that [`crate::clone_tree`] would use; `None` where nothing can be made at `dst`.
    pub chosen: Option<Strategy>,
}

/// The result of [`crate::reap`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ReapReport {
    /// How many entries were deleted.
    pub deleted: u64,
    /// The first entries that could not be deleted, and why. They stay in the trash.
    pub failure: Option<Error>,
}
