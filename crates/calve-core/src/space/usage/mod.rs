//! The space that trees take up, the shared part of it, and the space that deleting them would free.

mod inodes;
mod ledger;
mod sweep;
mod tally;
mod verdict;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::tally::{SharedTally, Tally, TallyVisitor};
use super::volumes::Volumes;
use super::walk::{UnreadableEntries, Walk};
use crate::error::Error;
use crate::operation::Operation;
use crate::options::Mounts;
use crate::progress::{CancelToken, Progress};
use crate::report::{SkippedEntry, Warning};
use crate::tree::location::is_inside;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;

/// How to look at trees. `DiskUsageOptions::default()` is what most callers want.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DiskUsageOptions {
    /// Whether to go into other file systems below a path.
    pub mounts: Mounts,
    pub threads: Option<NonZeroUsize>,
    /// A directory for a temporary file without a name, which is used when there are more than a million shared extents. Without
    /// one they stay in memory, 32 bytes each.
    pub scratch: Option<PathBuf>,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    pub cancel: CancelToken,
}

/// The space that one tree, or all of them together, take up. In bytes, where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Regular files, each inode once.
    pub files: u64,
    pub directories: u64,
    /// Symbolic links, FIFOs, sockets and devices.
    pub others: u64,
    /// Further names of files counted already.
    pub hard_links: u64,
    /// The sum of the files' sizes.
    pub apparent: u64,
    /// The allocation by the file system, each inode once: the figure of `du`.
    pub allocated: u64,
    /// On extents that nobody else uses. Where files lie compressed, counted as they are read.
    pub exclusive: u64,
    /// On extents that these trees use more than once, each extent once.
    pub shared_within: u64,
    /// On extents that something else is known to use too, each extent once.
    pub shared_outside_min: u64,
    /// The same, with those extents of which that cannot be known.
    pub shared_outside_max: u64,
    /// Contents that the file system keeps in its metadata.
    pub inline: u64,
    /// The space of file contents that deleting them frees, where that is known exactly.
    pub frees_data: Option<u64>,
    /// The least space that deleting them frees.
    pub frees_min: u64,
    /// The most space that deleting them frees.
    pub frees_max: u64,
}

/// One of the paths that were asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUsage {
    pub path: PathBuf,
    /// The space that it takes up.
    pub usage: Usage,
    /// Another path contains it, or is the same; it is not added to the total a second time.
    pub inside_another: bool,
}

/// The answer of [`disk_usage`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DiskUsage {
    /// In the order given.
    pub paths: Vec<PathUsage>,
    /// All of them together: what they share with each other is counted once, and freed by deleting all.
    pub total: Usage,
    /// How many entries could not be looked at. They are in none of the figures.
    pub unreadable: u64,
    /// The first 1,000 of them.
    pub skipped: Vec<SkippedEntry>,
    /// Other facts that the user should know.
    pub warnings: Vec<Warning>,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// Looks at the extents of every file below `paths`, and says what they take up, what they share, and what deleting them would free.
///
/// Nothing is written (on btrfs, root has what waits in memory written out first, which its exact figures need). Memory does not
/// grow with the number of files, but by some 300 bytes each with those that have several names.
pub fn disk_usage(paths: &[impl AsRef<Path>], options: &DiskUsageOptions) -> Result<DiskUsage, Error> {
    let begin = Instant::now();
    let roots = paths.iter().map(|path| Source::open(path.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let nested = nested(&roots)?;
    let volumes = Volumes::exact_where_possible();
    let troubles = UnreadableEntries::default();
    let walk = Walk {
        roots: &roots,
        volumes: &volumes,
        threads: thread_count(options.threads),
        mounts: options.mounts,
        progress: &options.progress,
        cancel: &options.cancel,
        troubles: &troubles,
    };
    let shared = SharedTally::new(&roots, &troubles, options.scratch.as_deref());
    let visitors = walk.run(|| TallyVisitor::new(&shared))?;
    let mut tally = Tally::new(roots.len());
    for visitor in visitors {
        tally.merge(visitor.finish()?);
    }
    shared.charge_links(&mut tally, &nested)?;
    let (unreadable, skipped) = troubles.take();
    let (usages, total, warnings) = self::verdict::verdict(tally, &shared, &volumes, &nested, unreadable == 0)?;
    let paths = roots.iter().zip(usages).zip(nested);
    Ok(DiskUsage {
        paths: paths
            .map(|((root, usage), inside_another)| PathUsage { path: root.path().to_path_buf(), usage, inside_another })
            .collect(),
        total,
        unreadable,
        skipped,
        warnings,
        elapsed: begin.elapsed(),
    })
}

/// Returns which of the roots are inside another root, or the same as an earlier one.
fn nested(roots: &[Source]) -> Result<Vec<bool>, Error> {
    let mut nested = vec![false; roots.len()];
    for (index, root) in roots.iter().enumerate() {
        for (other_index, other) in roots.iter().enumerate() {
            if index == other_index {
                continue;
            }
            nested[index] |= if root.identity() == other.identity() {
                other_index < index
            } else {
                other.single().is_none()
                    && is_inside(root.directory(), other.identity())
                        .map_err(|errno| Error::io(Operation::FindVolume, root.path(), errno))?
            };
        }
    }
    Ok(nested)
}
