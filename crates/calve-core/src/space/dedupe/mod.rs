//! Shares the extents of equal files, only by FIDEDUPERANGE: the kernel compares both sides under its locks, so that
//! only the place of the bytes can change, whatever other programs do meanwhile.

mod apply;
mod cache;
mod catalog;
mod content;
mod find;
mod finder;
mod groups;
mod parallel;
mod report;
mod share;
mod source;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use self::cache::Cache;
use self::catalog::{Catalog, Collector, can_share, left_elsewhere};
use self::finder::{Fate, Finder, Sharing};
pub use self::report::{Amount, DedupeMode, DedupeOptions, DedupeReport, LeftFiles};
use super::volumes::{Volume, Volumes};
use super::walk::{UnreadableEntries, Walk, nested, open_readable};
use crate::error::{Error, IoContext};
use crate::report::Warning;
use crate::sys;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;

/// Finds equal files below `paths` and makes them share their extents. Contents and metadata stay as they are.
///
/// Works on btrfs and XFS. Fails with [`Error::NoDedupe`] elsewhere.
pub fn dedupe(paths: &[impl AsRef<Path>], options: &DedupeOptions) -> Result<DedupeReport, Error> {
    let begin = Instant::now();
    let (volumes, troubles) = (Volumes::default(), UnreadableEntries::default());
    // No file may count twice. The first roots are those to share with: see `may_change`.
    let mut roots = options.against.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>()?;
    let asked = open_readable(paths.iter().map(AsRef::as_ref), &troubles)?;
    let nested = nested(&asked, options.mounts)?;
    // A tree to share with is not changed, even if it is also named among the others.
    let is_source = |root: &Source| roots.iter().any(|source| source.identity() == root.identity());
    let asked = asked.into_iter().zip(nested).filter(|(root, is_nested)| !is_nested && !is_source(root));
    let asked: Vec<_> = asked.map(|(root, _)| root).collect();
    roots.extend(asked);
    let threads = thread_count(options.threads);
    for root in &roots {
        refuse_where_impossible(root, &volumes)?;
    }
    let walk = Walk {
        roots: &roots,
        volumes: &volumes,
        threads,
        mounts: options.mounts,
        progress: &options.progress,
        cancel: &options.cancel,
        troubles: &troubles,
    };
    let collectors = walk.run(Collector::default)?;
    let mut report = DedupeReport {
        dry_run: options.mode == DedupeMode::DryRun,
        files: collectors.iter().map(|collector| collector.files).sum(),
        paths: paths.iter().map(|path| path.as_ref().to_path_buf()).collect(),
        ..DedupeReport::default()
    };
    report.left_alone.extend(left_elsewhere(&collectors, &roots));
    let mut catalog = Catalog::new(collectors);
    let all = volumes.all();
    let used: Vec<&Arc<Volume>> = all.iter().filter(|volume| can_share(volume)).collect();
    let caches = load_caches(&all, options, &mut report);
    let known = Finder::order(&mut catalog, |item| caches[usize::from(item.device)].find(cache::key(item)));
    if options.mode == DedupeMode::Share {
        // Unwritten data has no address yet, and would be written file by file.
        for volume in &used {
            let _ = sys::sync_file_system(volume.directory());
        }
    }
    let before = free(&used);
    let sharing = Sharing::new(catalog.items.len(), report);
    let mut finder = Finder { catalog: &catalog, roots: &roots, volumes: &all, options, threads, known, sharing };
    finder.find_and_share();
    save_caches(&caches, &finder);
    let shared_files = finder.sharing().count(Fate::Shared);
    if options.mode == DedupeMode::Share && shared_files > 0 {
        for volume in used.iter().filter(|volume| volume.rules == sys::SpaceRules::Btrfs) {
            // Freed space counts as free only after a sync.
            let _ = sys::sync_file_system(volume.directory());
        }
    }
    let mut report = finder.report();
    report.gained_bytes = (options.mode == DedupeMode::Share).then(|| Some(free(&used)? - before?)).flatten();
    options.cancel.check()?;
    (report.unreadable, report.skipped) = troubles.take();
    report.elapsed = begin.elapsed();
    Ok(report)
}

/// Returns the free bytes of all file systems, including those reserved for root.
fn free(used: &[&Arc<Volume>]) -> Option<i64> {
    let file_systems = used.iter().filter(|one| one.device == one.file_system);
    let each = file_systems.map(|one| {
        let status = rustix::fs::fstatvfs(one.directory()).ok()?;
        i64::try_from(status.f_bfree.saturating_mul(status.f_frsize)).ok()
    });
    each.sum()
}

fn refuse_where_impossible(root: &Source, volumes: &Volumes) -> Result<(), Error> {
    let stat = rustix::fs::fstat(root.directory()).io(Operation::Stat, root.path())?;
    let volume =
        volumes.find(root.directory(), &stat, || root.path().to_path_buf()).io(Operation::Stat, root.path())?;
    if can_share(&volume) {
        return Ok(());
    }
    let file_system = sys::file_system_name(root.directory());
    Err(Error::NoDedupe { path: root.path().to_path_buf(), file_system })
}

fn load_caches(volumes: &[Arc<Volume>], options: &DedupeOptions, report: &mut DedupeReport) -> Vec<Cache> {
    let mut load = |volume: &Arc<Volume>| {
        let path = cache::file_name(options.cache.as_ref()?, volume);
        match Cache::load(&path) {
            Ok(cache) => Some(cache),
            Err(why) => {
                let message = format!("cannot use the hashes that earlier runs kept: {why}; this run replaces them");
                report.warnings.push(Warning { code: WarningCode::CacheUnusable, path: Some(path), message });
                None
            }
        }
    };
    volumes.iter().map(|volume| load(volume).unwrap_or_default()).collect()
}

fn save_caches(caches: &[Cache], finder: &Finder<'_>) {
    let Some(directory) = &finder.options.cache else { return };
    for (volume, cache) in finder.volumes.iter().zip(caches).filter(|(volume, _)| can_share(volume)) {
        let (items, known) = (&finder.catalog.items, &finder.known);
        let record = |index: &u32| (cache::key(&items[*index as usize]), known[*index as usize]);
        let mine = |index: &u32| u32::from(items[*index as usize].device) == volume.device;
        let mut now: Vec<u32> =
            (0..items.len() as u32).filter(|index| mine(index) && record(index).1.is_known()).collect();
        if now.iter().map(record).all(|(key, known)| cache.find(key) == Some(known)) {
            continue;
        }
        now.sort_unstable_by_key(|index| record(index).0);
        let path = cache::file_name(directory, volume);
        if let Err(error) = cache.save(&path, now.iter().map(record)) {
            let message = format!("cannot keep hashes for the next run: {error}");
            let warning = Warning { code: WarningCode::CacheNotWritten, path: Some(path), message };
            finder.sharing().report.warnings.push(warning);
        }
    }
}
