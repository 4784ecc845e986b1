//! Results: the plain data behind a receipt.

use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use strum::{Display, VariantNames};

use crate::error::Error;
use crate::json::{As, ErrorName, FromReport, Milliseconds, ReceiptPath, Seconds, Text};
pub use crate::vocabulary::reason::{LeftReason, SkipReason, WarningCode};
use crate::vocabulary::strategy::{Refusal, Strategy};

/// The number of entries of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entries {
    /// Directories, with the root.
    pub directories: u64,
    /// Regular files. Each inode counts once.
    pub files: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Named pipes.
    pub fifos: u64,
    /// Character and block devices.
    pub devices: u64,
    /// Further names of files that `files` counts.
    pub hard_links: u64,
}

impl Entries {
    /// Returns the number of all entries.
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

/// The contents of regular files, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bytes {
    /// The sum of the files' sizes.
    pub apparent: u64,
    /// Bytes that the clone shares with the source.
    pub shared: u64,
    /// Bytes that Calve wrote, without holes.
    pub written: u64,
    /// Bytes that the file system copied because it keeps them inside its metadata. Null if `shared` contains them.
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

/// Files that were made in another way than the strategy's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "FallBack")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fallback {
    /// The way that was refused.
    pub from: Strategy,
    /// The way that was used.
    pub to: Strategy,
    /// The name of the system's error, such as `EXDEV`.
    #[serde(with = "As::<ErrorName>")]
    pub errno: i32,
    /// The number of files.
    pub files: u64,
    /// The first of them, relative to the source.
    #[serde(with = "As::<ReceiptPath>")]
    pub first_path: PathBuf,
}

/// An entry that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkippedEntry {
    /// The entry's path.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The reason in a few words.
    #[serde(with = "As::<Text>")]
    pub reason: SkipReason,
}

/// Something that the user should know and that is not an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warning {
    /// A stable word for programs.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = WarningCode::CODES)))]
    pub code: WarningCode,
    /// The first path concerned. Absent if the warning is about no path.
    #[serde(with = "As::<Option<ReceiptPath>>", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "ReceiptPath"))]
    pub path: Option<PathBuf>,
    /// A sentence for people.
    pub message: String,
}

/// A tree that waits to be deleted: see [`crate::reap`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashedTree {
    /// The directory that the trash is in.
    pub parent: PathBuf,
    /// Its name there.
    pub name: std::ffi::OsString,
}

impl FromReport<TrashedTree> for ReceiptPath {
    fn from_report(tree: &TrashedTree) -> Self {
        Self::new(&tree.parent.join(&tree.name))
    }
}

/// The report of one clone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "schema", rename = "calve.clone/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CloneReport {
    /// The source as given.
    #[serde(with = "As::<ReceiptPath>")]
    pub src: PathBuf,
    /// The destination as given.
    #[serde(with = "As::<ReceiptPath>")]
    pub dst: PathBuf,
    /// The strategy that was used.
    pub strategy: Strategy,
    /// The better strategies that were not used.
    pub refused: Vec<Refusal>,
    /// The spare that was handed over. Absent if the clone was made when it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "SpareReport"))]
    pub spare: Option<SpareReport>,
    /// There is room for another spare of this source: work for [`crate::spares::Spares::refill`].
    #[serde(skip)]
    pub spares_wanted: bool,
    /// The entries of the clone. Null if the strategy did not walk the tree.
    pub entries: Option<Entries>,
    /// The contents of the regular files. Null if the strategy did not walk the tree.
    pub bytes: Option<Bytes>,
    /// Files that were made in another way than the strategy's own.
    pub fell_back: Vec<Fallback>,
    /// Entries that are not in the clone, with paths relative to the source. At most 10,000.
    pub skipped: Vec<SkippedEntry>,
    /// Entries of the source that changed while they were cloned, relative to the source. At most 10,000.
    #[serde(with = "As::<Vec<ReceiptPath>>")]
    pub changed: Vec<PathBuf>,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// The entry that [`crate::ExistingDestination::Replace`] moved away.
    #[serde(skip)]
    pub trashed: Option<TrashedTree>,
    /// There is trash beside the destination, of this run or an earlier one: work for [`crate::reap`].
    #[serde(skip)]
    pub trash_waits: bool,
    /// The time in milliseconds from the start to the published clone.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

/// A clone that was made ahead of time and handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "Spare")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpareReport {
    /// When it was built, in seconds since 1970.
    #[serde(rename = "built_at", with = "As::<Seconds>")]
    pub built: SystemTime,
    /// How it was made sure that it equals the source: `frozen` (the source is a template), `watched` (a watcher knows what has changed),
    /// `walked` (every entry was compared with what was recorded of it).
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = SpareCheck::VARIANTS)))]
    pub checked: SpareCheck,
    /// The number of entries that were looked at for that.
    pub entries_checked: u64,
    /// The number of entries that differed and were cloned again.
    pub entries_updated: u64,
}

/// The check that a spare equals its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum SpareCheck {
    /// The source is a template, which does not change.
    Frozen,
    /// A watcher knows the changes.
    Watched,
    /// Every entry was compared with its record.
    Walked,
}

/// The report of one removal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename = "RemoveReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoveReport {
    /// The path as given.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The path at which the tree waits to be deleted. Null if it is deleted.
    #[serde(rename = "trash", with = "As::<Option<ReceiptPath>>")]
    pub trashed: Option<TrashedTree>,
    /// The number of entries that were deleted so far. A btrfs subvolume is one, whatever is in it: it is deleted as a whole.
    #[serde(rename = "deleted_entries")]
    pub deleted: u64,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// The time that the removal took in milliseconds, without deletion in the background.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

/// A path and its file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "Place")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSystemReport {
    /// The path as given.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The type of the file system, such as `xfs`.
    pub file_system: String,
    /// The options of the mount, a semicolon, and those of the file system. Empty where the system does not tell.
    #[serde(skip)]
    pub mount_options: String,
    /// The device number as `major:minor`.
    pub device: String,
}

/// A strategy, and its availability between the two paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The strategy.
    pub strategy: Strategy,
    /// `None` if it is available.
    pub refused: Option<Refusal>,
}

/// The strategies that can be used between two paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeReport {
    /// The source.
    pub src: FileSystemReport,
    /// The destination.
    pub dst: FileSystemReport,
    /// The strategy that a clone would use. Null if nothing can be made at the destination.
    pub chosen: Option<Strategy>,
    /// All strategies, in order of preference.
    #[serde(skip)]
    pub offers: Vec<Offer>,
}

/// The result of [`crate::reap`].
#[derive(Debug, Default)]
pub struct ReapReport {
    /// The number of deleted entries. A btrfs subvolume is one.
    pub deleted: u64,
    /// The first entry that could not be deleted, and why. Such entries stay in the trash.
    pub failure: Option<Error>,
}
