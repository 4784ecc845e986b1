//! What a measurement of a place says, and how to ask for one: the same on every system.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::progress::Cancel;
use crate::report::Refusal;

/// What a measurement depends on. Two places with equal values cost the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceIdentity {
    /// A short word for the machine, the same after a restart.
    pub machine: String,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// How many processors this process may use, at most eight: more threads are not used.
    pub processors: usize,
    /// "btrfs", "xfs", "ext4", …
    pub file_system: String,
    /// The file system's UUID, or what else tells it from others.
    pub volume: String,
    /// Those of the mount and those of the file system.
    pub mount_options: String,
}

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
        Self { budget: Duration::from_millis(3500), cancel: Cancel::default() }
    }
}

/// The most that [`crate::measure`] writes, in bytes of file contents.
pub const MEASURE_WRITES_AT_MOST_BYTES: u64 = 200_000_000;

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
    /// What copying the smaller of small files instead of sharing them does for a whole tree; `None` where nothing speaks for it.
    pub small_copies: Option<SmallCopies>,
    /// Up to this size copies pay; what is built in where the trials do not clearly speak against it. `None` without reflinks.
    pub copy_up_to_bytes: Option<u64>,
    /// As many threads as there are processors, at most eight, unless fewer were clearly faster in most trials.
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
