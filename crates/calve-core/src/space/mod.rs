//! The disk space that trees use, the space that deleting them would free, and the sharing of duplicate data.

mod dedupe;
mod usage;
mod volumes;
mod walk;

pub use dedupe::{DedupeMode, DedupeOptions, DedupeReport, HashedFiles, LeftFiles, SharedFiles, dedupe};
pub use usage::{DiskUsage, DiskUsageOptions, PathUsage, Usage, UsageEntries, disk_usage};
