//! What trees take up, and sharing after the fact.

mod changing;
mod refused;
mod sharing;
mod usage;

use std::path::Path;

use calve_core::space::{DedupeMode, DedupeOptions, DedupeReport, DiskUsage, DiskUsageOptions, dedupe, disk_usage};
use calve_testkit::{FileSystem, Volume};

use crate::cloning::used;

fn usage(paths: &[&Path]) -> DiskUsage {
    disk_usage(paths, &DiskUsageOptions::default()).unwrap()
}

fn share(paths: &[&Path]) -> DedupeReport {
    dedupe(paths, &plain()).unwrap()
}

fn plain() -> DedupeOptions {
    DedupeOptions::default()
}

fn dry() -> DedupeOptions {
    let mut options = plain();
    options.mode = DedupeMode::DryRun;
    options
}

/// Shares `dst` with `src`, which does not change.
fn share_with(src: &Path, dst: &Path) -> DedupeReport {
    let mut options = plain();
    options.against = vec![src.to_path_buf()];
    dedupe(&[dst], &options).unwrap()
}

/// The two that can share after the fact.
fn volumes() -> impl Iterator<Item = Volume> {
    [FileSystem::Xfs, FileSystem::Btrfs].into_iter().filter_map(Volume::new)
}
