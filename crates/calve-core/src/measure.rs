//! What a file system's calls cost, measured in a hidden directory that goes away again.

mod calls;
mod choice;
mod tree;
mod trial;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::identify::{PlaceIdentity, identity_of};
use crate::probe::place_of;
use crate::progress::{Cancel, Progress};
use crate::report::Refusal;
use crate::tree::delete::Deletion;
use crate::tree::lock::Purpose;
use crate::tree::place::Place;
use crate::tree::pool::thread_count;
use crate::tree::staging::Staging;
use crate::tree::sweep::sweep;

use trial::Trial;

/// How to measure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MeasureOptions {
    /// How long measuring may take, cleaning up included. Each kind of call is tried at least once, so that a very slow file
    /// system may take longer.
    pub budget: Duration,
    /// Ends measuring early; nothing is left behind.
    pub cancel: Cancel,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self { budget: Duration::from_secs(4), cancel: Cancel::default() }
    }
}

/// The most that [`measure`] writes, in bytes of file contents.
pub const MEASURE_WRITES_AT_MOST_BYTES: u64 = 200_000_000;

/// What is asked to be free before anything is made: small files take whole blocks, and some file systems more at first.
const ROOM_BYTES: u64 = 256 << 20;
const ROOM_INODES: u64 = MOST_FILES as u64 + 5_000;
/// The most files that are made.
const MOST_FILES: usize = 50_000;

/// What a place costs. Times are medians, with the page cache warm and one thread unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// What it holds for.
    pub place: PlaceIdentity,
    /// An empty file: openat(2) and close(2).
    pub create: Duration,
    /// A file, by size, cloned as [`crate::clone_tree`] does it, metadata included. From the smallest to the largest.
    pub files: Vec<FileCost>,
    /// Why nothing could be shared; then no `reflink` in `files` has a value.
    pub reflink_refused: Option<Refusal>,
    /// A file, deleted with its directory.
    pub delete: Option<Duration>,
    /// One snapshot, or why there is none.
    pub snapshot: Result<Duration, Refusal>,
    /// One overlay mount with its directories, or why there is none.
    pub overlay: Result<Duration, Refusal>,
    /// The cost of a small file in a tree of many directories, for some numbers of threads.
    pub threads: Vec<ThreadCost>,
    /// What copying the smaller of small files instead of sharing them does for a whole tree; `None` where no size gains by itself.
    pub small_copies: Option<SmallCopies>,
    /// Up to this size copies pay; `None` without reflinks.
    pub copy_up_to_bytes: Option<u64>,
    /// As many threads as there are processors, at most eight, unless fewer were clearly faster.
    pub best_threads: Option<NonZeroUsize>,
    /// Contents written to measure all this.
    pub written_bytes: u64,
    /// From start to cleaned up.
    pub elapsed: Duration,
}

/// What one file of a size costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileCost {
    /// The file's size.
    pub size_bytes: u64,
    /// Read and written.
    pub copy: Duration,
    /// Its extents shared. `None` where there are none, or sharing is refused.
    pub reflink: Option<Duration>,
}

/// A tree of small files, cloned with copies and without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmallCopies {
    /// Files up to this size were copied.
    pub up_to_bytes: u64,
    /// The time with copies, as a share of the time with reflinks only. On btrfs writing them back counts.
    pub ratio: f64,
}

/// What a small file costs with so many threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadCost {
    /// Worker threads.
    pub threads: NonZeroUsize,
    /// The time for the whole tree, divided by its files.
    pub per_file: Duration,
}

/// Measures the file system that clones to `dst` are made on: in `dst` where it is a directory, otherwise beside it.
///
/// Everything is made in a hidden directory there, which is removed before this returns, whatever happens; when the process is
/// killed, the next clone or measurement in that place removes it. At most [`MEASURE_WRITES_AT_MOST_BYTES`] are written.
///
/// # Errors
/// Where nothing can be made: [`Error::Io`], [`Error::NoRoom`]. [`Error::Interrupted`] when cancelled.
pub fn measure(dst: &Path, options: &MeasureOptions) -> Result<Measurement, Error> {
    let (place, _) = place_of(dst)?;
    sweep_killed(&place, &options.cancel)?;
    let started = Instant::now();
    let room = crate::tree::room::Room { bytes: ROOM_BYTES, inodes: ROOM_INODES };
    crate::tree::room::check_room(&room, place.parent(), place.parent_path())?;
    let mut staging = Staging::reserve(&place)?;
    staging.make_directory()?;
    let measured = Trial::begin(&staging, started, options)?.run()?;
    drop(staging);
    if options.cancel.is_cancelled() {
        return Err(Error::Interrupted);
    }
    Ok(Measurement { elapsed: started.elapsed(), place: identity_of(place.parent()), ..measured })
}

/// What a killed run left may hold the room that is needed now.
fn sweep_killed(place: &Place, cancel: &Cancel) -> Result<(), Error> {
    let deletion = Deletion { threads: thread_count(None), progress: &Progress::default(), cancel, last: None };
    match sweep(place.parent(), place.parent_path(), Purpose::Staging, &deletion) {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        _ => Ok(()),
    }
}
