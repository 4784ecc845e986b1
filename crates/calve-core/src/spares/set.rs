use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use strum::{Display, VariantNames};

use crate::claim::store::SpareSource;
use crate::json::{As, ReceiptPath, Seconds, Text};
use crate::options::CloneOptions;
use crate::template::HeldTemplate;

/// The spares of one user.
#[derive(Debug, Clone)]
pub struct Spares {
    pub(super) home: PathBuf,
}

/// A request for spares: see [`Spares::add`].
#[derive(Debug, Clone, Default)]
pub struct SpareOptions {
    /// How many to keep ready; by default one.
    pub count: Option<usize>,
    /// The directory for the spares' hidden directory. By default the store if it is on the source's file system, else
    /// the source's parent. Spares serve destinations on the same file system.
    pub at: Option<PathBuf>,
    /// Makes refills start the watcher ([`Spares::watch`]) if none runs. False changes nothing for an existing set.
    pub watched: bool,
    /// For roots of trees that [`crate::internal::stage_in`] assembles: on btrfs subvolumes. Required if the source is
    /// a subvolume, whose other clones are snapshots. See [`made_without`](crate::options::SpareUse::made_without).
    pub staged: bool,
    /// The `exclude`, `mounts` and `unreadable` of the clones to serve.
    pub like: CloneOptions,
}

/// A source and its spares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "SpareSetReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpareSet {
    /// The directory without links, or the name of the template with an `@` before it.
    #[serde(with = "As::<ReceiptPath>")]
    pub source: SpareSource,
    /// The number of spares to keep ready.
    pub count: u64,
    /// No more spares are built.
    #[serde(rename = "paused")]
    pub is_paused: bool,
    /// The watcher is started after clones.
    #[serde(rename = "watched")]
    pub is_watched: bool,
    /// The directory that the spares are in.
    #[serde(rename = "place", with = "As::<ReceiptPath>")]
    pub directory: PathBuf,
    /// The file system of that directory is not mounted.
    #[serde(skip)]
    pub is_away: bool,
    /// It was not there before this [`Spares::add`].
    #[serde(skip)]
    pub is_new: bool,
    /// The patterns of what they leave out.
    pub exclude: Vec<String>,
    /// The space that the next spare takes: 0 where it shares the data of the source. Null if none is missing, or if that cannot be found out.
    pub next_bytes: Option<u64>,
    /// The spares that there are, the newest first.
    pub spares: Vec<SpareState>,
}

/// One spare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "SpareReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpareState {
    /// Its name.
    pub id: String,
    /// `building`: it is being built or handed over. `ready`: it can be handed over, after a check. `stale`: it cannot be used any more.
    #[serde(with = "As::<Text>")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Readiness::VARIANTS)))]
    pub state: Readiness,
    /// Why it is stale. Null if it is not.
    pub reason: Option<&'static str>,
    /// When it was built, in seconds since 1970. Null if it is not complete.
    #[serde(rename = "built_at", with = "As::<Option<Seconds>>")]
    pub built: Option<SystemTime>,
    /// The number of entries in it. Null if it is not complete.
    pub entries: Option<u64>,
    /// The sum of the sizes of its files. Null if it is not complete.
    pub apparent_bytes: Option<u64>,
    /// The part of that which takes up space of its own, because it was not shared when the spare was built. Null if it is not complete.
    pub written_bytes: Option<u64>,
}

/// The state of a spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Readiness {
    /// It is being built, or being handed over.
    Building,
    /// It can be handed over, after a check.
    Ready,
    /// It cannot be used any more.
    Stale,
}

/// The directory of a source.
#[derive(Debug)]
pub enum SpareOrigin {
    /// A directory that may change.
    Directory(PathBuf),
    /// The tree of a template.
    Template(Box<HeldTemplate>),
}

impl SpareOrigin {
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Directory(path) => path,
            Self::Template(template) => &template.tree,
        }
    }

    /// Returns the directory for spares beside `real`. A template's is above its versions: a refresh deletes a version.
    pub(super) fn place<'a>(&self, real: &'a Path) -> Option<&'a Path> {
        match self {
            Self::Directory(_) => real.parent(),
            Self::Template(_) => real.ancestors().nth(3),
        }
    }
}

impl Spares {
    /// Returns the spares kept in the directory `home`, which need not exist.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }
}
