//! Makes a server's data directory by the best available strategy.

use std::path::Path;
use std::time::Instant;

use calve_core::internal::{FollowedSource, InlinedBytes, OverlayMount};
use calve_core::{CancelToken, Choice, CloneOptions, Refusal, Requirement, Strategy};
use rustix::fs::FileType;

use crate::error::{Error, Result};
use crate::files::confined;
use crate::files::directory::Directory;
use crate::registry::{LargeFile, LaunchReport};

#[derive(Debug, Default)]
pub(crate) struct DataClone {
    /// The part of the report that is known before the server runs.
    pub(crate) report: LaunchReport,
    /// Files are copied whole when they are first opened for writing.
    pub(crate) copies_up: bool,
    /// The mounted overlay, unmounted when dropped.
    pub(crate) overlay: Option<OverlayMount>,
}

impl DataClone {
    pub(super) fn new(strategy: Strategy, refused: &[Refusal], started: Instant) -> Self {
        let clone_ms = Some(milliseconds_since(started));
        let refused = reasons(refused);
        let report = LaunchReport { strategy: Some(strategy), refused, clone_ms, ..LaunchReport::default() };
        Self { report, ..Self::default() }
    }
}

fn reasons(refused: &[Refusal]) -> Vec<String> {
    refused.iter().map(|refusal| format!("{}: {}", refusal.strategy, refusal.reason)).collect()
}

pub(crate) fn milliseconds_since(started: Instant) -> f64 {
    (started.elapsed().as_secs_f64() * 1e5).round() / 100.0
}

pub(super) const MAY_NOT_MOUNT: &str = "this process may not mount, and may not make a user namespace";

/// Clones a data directory by the best strategy other than an overlay.
pub(crate) fn clone_data(src: &Path, dst: &Path, cancel: &CancelToken) -> Result<DataClone> {
    clone_by(src, dst, None, Some(MAY_NOT_MOUNT), cancel)
}

/// Clones by this strategy, or by the best. `no_overlay`: the reason against an overlay, if any.
pub(super) fn clone_by(
    src: &Path,
    dst: &Path,
    strategy: Option<Strategy>,
    no_overlay: Option<&str>,
    cancel: &CancelToken,
) -> Result<DataClone> {
    let started = Instant::now();
    match strategy {
        Some(Strategy::Overlay) => overlay(src, dst, no_overlay, &[], started),
        Some(strategy) => match cloned(src, dst, &only(strategy, cancel), started) {
            Err(calve_core::Error::RequirementRefused { refused, .. }) => {
                let of_it = refused.iter().find(|refusal| refusal.strategy == strategy);
                let reason = of_it.map_or_else(|| "it is not available here".into(), |refusal| refusal.reason.clone());
                Err(Error::Strategy { strategy, reason })
            }
            other => Ok(other?),
        },
        None => {
            let mut sharing = options(cancel);
            sharing.require = vec![Requirement::Cow];
            let mut refused = match cloned(src, dst, &sharing, started) {
                Err(calve_core::Error::RequirementRefused { refused, .. }) => better(refused),
                other => return Ok(other?),
            };
            match overlay(src, dst, no_overlay, &refused, started) {
                Err(Error::Strategy { reason, .. }) => {
                    refused.push(Refusal { strategy: Strategy::Overlay, reason, remedy: None });
                    let mut copied = cloned(src, dst, &only(Strategy::Copy, cancel), started)?;
                    copied.report.refused = reasons(&refused);
                    Ok(copied)
                }
                other => other,
            }
        }
    }
}

/// Clones the data directory of a server that goes on to write. Returns the strategy, and the means to catch up while
/// the server is held. `None`: that would not shorten the hold, or failed.
pub(crate) fn clone_followed(src: &Path, dst: &Path, cancel: &CancelToken) -> Option<(FollowedSource, Strategy)> {
    let slot = dst.parent()?;
    let strategy = if can_reflink(src, slot) { Strategy::Reflink } else { Strategy::Copy };
    let record = || FollowedSource::record(src, slot, Choice::Only(strategy), cancel).ok().flatten();
    // Tried twice, because a server removes files at any time.
    let source = record().or_else(record)?;
    cloned(src, dst, &only(strategy, cancel), Instant::now()).ok()?;
    Some((source, strategy))
}

fn options(cancel: &CancelToken) -> CloneOptions {
    let mut options = CloneOptions::default();
    // Counting inlined bytes takes a call for each file, and they are not reported.
    options.internal.inlined = InlinedBytes::WithShared;
    options.cancel = cancel.clone();
    options
}

fn only(strategy: Strategy, cancel: &CancelToken) -> CloneOptions {
    CloneOptions { strategy: Choice::Only(strategy), ..options(cancel) }
}

fn cloned(
    src: &Path,
    dst: &Path,
    options: &CloneOptions,
    started: Instant,
) -> std::result::Result<DataClone, calve_core::Error> {
    let report = calve_core::clone_tree(src, dst, options)?;
    Ok(DataClone::new(report.strategy, &better(report.refused), started))
}

/// Keeps the refusals of strategies that are preferred to an overlay.
fn better(mut refused: Vec<Refusal>) -> Vec<Refusal> {
    refused.retain(|refusal| refusal.strategy.meets(Requirement::Cow));
    refused
}

fn overlay(
    src: &Path,
    dst: &Path,
    no_overlay: Option<&str>,
    refused: &[Refusal],
    started: Instant,
) -> Result<DataClone> {
    let no = |reason: String| Error::Strategy { strategy: Strategy::Overlay, reason };
    if let Some(reason) = no_overlay {
        return Err(no(reason.into()));
    }
    let mount = calve_core::internal::mount_overlay(src, dst).map_err(|error| no(error.to_string()))?;
    let mounted = DataClone::new(Strategy::Overlay, refused, started);
    // No reflink was tried if an overlay was requested.
    let copies_up = match refused.is_empty() {
        false => refused.iter().any(|refusal| refusal.strategy == Strategy::Reflink),
        true => !can_reflink(src, dst.parent().unwrap_or(dst)),
    };
    Ok(DataClone { copies_up, overlay: Some(mount), ..mounted })
}

fn can_reflink(src: &Path, dst: &Path) -> bool {
    let offers = |offer: &calve_core::report::Offer| offer.strategy == Strategy::Reflink && offer.refused.is_none();
    calve_core::probe(src, dst).is_ok_and(|report| report.offers.iter().any(offers))
}

/// Larger files are listed. PostgreSQL's WAL files have exactly this size, and each start opens one.
const LARGE_BYTES: u64 = 16 << 20;

/// Lists the files above [`LARGE_BYTES`], the largest first. It only feeds a report, so unreadable parts are left out.
pub(super) fn large_files(data: &Path) -> Vec<LargeFile> {
    let mut found = Vec::new();
    let _ = Directory::open(data).and_then(|data| {
        confined::walk(&data, &mut |directory, entry, path| {
            let is_file = entry.kind == FileType::RegularFile;
            let bytes =
                if is_file { directory.stat(&entry.name)?.map_or(0, |found| found.st_size.unsigned_abs()) } else { 0 };
            found.extend((bytes > LARGE_BYTES).then(|| LargeFile { path: path.to_path_buf(), bytes }));
            Ok(())
        })
    });
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.path.cmp(&b.path)));
    found
}
