//! The space that trees take up, the shared part of it, and the space that deleting them would free.

mod inodes;
mod ledger;
mod measure;
mod report;
mod sweep;
mod tally;
mod verdict;

use std::path::Path;
use std::time::Instant;

pub use self::report::{DiskUsage, DiskUsageOptions, PathUsage, Usage, UsageEntries};
use self::tally::{SharedTally, Tally, TallyVisitor};
use super::volumes::Volumes;
use super::walk::{UnreadableEntries, Walk, nested, open_readable};
use crate::error::Error;
use crate::tree::pool::thread_count;

/// Measures the space that trees use and share, and that deleting them would free, by the extents of every file.
///
/// Nothing is written, except that root's exact figures for btrfs need a sync. Memory use does not grow with the number
/// of files, except by some 300 bytes for each one with several names.
pub fn disk_usage(paths: &[impl AsRef<Path>], options: &DiskUsageOptions) -> Result<DiskUsage, Error> {
    let begin = Instant::now();
    let troubles = UnreadableEntries::default();
    let roots = open_readable(paths.iter().map(AsRef::as_ref), &troubles)?;
    let nested = nested(&roots, options.mounts)?;
    let volumes = Volumes::exact_where_possible();
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
        tally.merge(visitor.finish());
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
