//! What trees take up, and sharing after the fact.

mod changing;
mod refused;
mod sharing;
mod usage;

use std::path::Path;

use calve_core::space::{DedupeOptions, DedupeReport, DiskUsage, DiskUsageOptions, dedupe, disk_usage};
use calve_testkit::{FileSystem, Volume};

fn usage(paths: &[&Path]) -> DiskUsage {
    disk_usage(paths, &DiskUsageOptions::default()).unwrap()
}

fn share(paths: &[&Path]) -> DedupeReport {
    dedupe(paths, &plain()).unwrap()
}

fn plain() -> DedupeOptions {
    DedupeOptions::default()
}

/// The two that can share after the fact.
fn volumes() -> impl Iterator<Item = Volume> {
    [FileSystem::Xfs, FileSystem::Btrfs].into_iter().filter_map(Volume::new)
}

/// Used bytes, after the deletions in the background.
fn used(volume: &Volume) -> u64 {
    volume.settle();
    let status = rustix::fs::statvfs(volume.path()).unwrap();
    (status.f_blocks - status.f_bfree) * status.f_frsize
}
