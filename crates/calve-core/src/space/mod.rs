//! The disk space that trees use, the space that deleting them would free, and the sharing of duplicate data.

mod dedupe;
mod usage;
mod volumes;
mod walk;

pub use dedupe::{Amount, DedupeMode, DedupeOptions, DedupeReport, LeftFiles, dedupe};
pub use usage::{DiskUsage, DiskUsageOptions, PathUsage, Usage, UsageEntries, disk_usage};
