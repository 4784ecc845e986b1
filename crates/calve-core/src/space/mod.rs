//! The space that trees take up on the disk, the space that deleting them would free, and sharing of data that are stored more than once.

mod dedupe;
mod usage;
mod volumes;
mod walk;

pub use dedupe::{DedupeMode, DedupeOptions, DedupeReport, HashedFiles, LeftFiles, SharedFiles, dedupe};
pub use usage::{DiskUsage, DiskUsageOptions, PathUsage, Usage, UsageEntries, disk_usage};
