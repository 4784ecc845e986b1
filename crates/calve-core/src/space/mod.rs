//! The space that trees take up on the disk, the space that deleting them would free, and sharing of data that are stored more than once.

mod apply;
mod blocks;
mod cache;
mod catalog;
mod content;
mod dedupe;
mod find;
mod inodes;
mod ledger;
mod measure;
mod pieces;
mod share;
mod sweep;
mod tally;
mod turns;
mod usage;
mod verdict;
mod volumes;
mod walk;

pub use dedupe::{DedupeMode, DedupeOptions, DedupeReport, Granularity, LeftFiles, dedupe, reshare};
pub use usage::{DiskUsage, DiskUsageOptions, PathUsage, Usage, disk_usage};
