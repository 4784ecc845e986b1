//! Spares: what there is, and what was done about them.

use calve_core::{Readiness, SpareSet, SpareSource, SpareState};
use serde::Serialize;

use crate::values::{ReceiptPath, Seconds, path, seconds_since_1970};

/// The report of `calve spares` with any of its commands: the sources that there are spares of.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "calve.spares/1")]
pub struct SparesReceipt {
    /// The sources.
    pub sources: Vec<SpareSetReceipt>,
    /// The number of spares that were built.
    pub built: u64,
    /// The number of spares that were deleted.
    pub removed: u64,
}

/// A source and its spares.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpareSetReceipt {
    /// The directory without links, or the name of the template with an `@` before it.
    source: ReceiptPath,
    /// The number of spares to keep ready.
    count: u64,
    /// No more spares are built.
    paused: bool,
    /// The watcher is started after clones.
    watched: bool,
    /// The directory that the spares are in.
    place: ReceiptPath,
    /// The patterns of what they leave out.
    exclude: Vec<String>,
    /// The space that the next spare takes: 0 where it shares the data of the source. Null if none is missing, or if that cannot be found out.
    next_bytes: Option<u64>,
    /// The spares that there are, the newest first.
    spares: Vec<SpareReceipt>,
}

/// One spare.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SpareReceipt {
    /// Its name.
    id: String,
    /// `building`: it is being built or handed over. `ready`: it can be handed over, after a check. `stale`: it cannot be used any more.
    #[cfg_attr(test, schemars(extend("enum" = ["building", "ready", "stale"])))]
    state: &'static str,
    /// Why it is stale. Null if it is not.
    reason: Option<&'static str>,
    /// When it was built, in seconds since 1970. Null if it is not complete.
    built_at: Option<Seconds>,
    /// The number of entries in it.
    entries: u64,
    /// The sum of the sizes of its files.
    apparent_bytes: u64,
    /// The part of that which takes up space of its own, because it was not shared when the spare was built.
    written_bytes: u64,
}

impl From<&SpareSet> for SpareSetReceipt {
    fn from(set: &SpareSet) -> Self {
        let source = match &set.source {
            SpareSource::Directory(directory) => path(directory),
            SpareSource::Template(name) => path(format!("@{name}")),
        };
        Self {
            source,
            count: set.count as u64,
            paused: set.is_paused,
            watched: set.is_watched,
            place: path(&set.directory),
            exclude: set.exclude.clone(),
            next_bytes: set.next_bytes,
            spares: set.spares.iter().map(SpareReceipt::from).collect(),
        }
    }
}

impl From<&SpareState> for SpareReceipt {
    fn from(spare: &SpareState) -> Self {
        let (state, reason) = match spare.standing {
            Readiness::Building => ("building", None),
            Readiness::Ready => ("ready", None),
            Readiness::Stale(reason) => ("stale", Some(reason)),
        };
        Self {
            id: spare.id.clone(),
            state,
            reason,
            built_at: spare.built.map(seconds_since_1970),
            entries: spare.entries,
            apparent_bytes: spare.apparent_bytes,
            written_bytes: spare.written_bytes,
        }
    }
}
