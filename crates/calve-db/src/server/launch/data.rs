//! A server's data directory: how it comes to be, by the best strategy that there is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::internal::{FollowedSource, InlinedBytes, OverlayMount, OverlayOptions};
use calve_core::{CancelToken, Choice, CloneOptions, Refusal, Requirement, Strategy};

use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct DataClone {
    pub(crate) strategy: Strategy,
    /// Better ones, and why not.
    pub(crate) refused: Vec<Refusal>,
    pub(crate) took: Duration,
    /// Whether files are copied as a whole when they are opened for writing.
    pub(crate) copies_up: bool,
    /// Where the changes are, on an overlay of this machine. Unmounted when dropped.
    pub(crate) overlay: Option<OverlayMount>,
}

impl DataClone {
    /// Returns why better strategies were not used, in words.
    pub(crate) fn reasons(&self) -> Vec<String> {
        self.refused.iter().map(|refusal| format!("{}: {}", refusal.strategy, refusal.reason)).collect()
    }

    /// Returns the same description, of data that are on no overlay.
    pub(crate) fn again(&self) -> Self {
        Self {
            strategy: self.strategy,
            refused: self.refused.clone(),
            took: self.took,
            copies_up: false,
            overlay: None,
        }
    }
}

/// Says whether an overlay can be mounted for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mounts {
    /// This process may mount, in a namespace of its own.
    Here,
    /// It may not, or it would be invisible.
    None,
    /// The engine that runs the server in a container would not see it.
    Unseen,
}

pub(crate) fn clone_data(
    src: &Path,
    dst: &Path,
    strategy: Option<Strategy>,
    mounts: Mounts,
    cancel: &CancelToken,
) -> Result<DataClone> {
    let started = Instant::now();
    match strategy {
        Some(Strategy::Overlay) => overlay(src, dst, mounts, Vec::new(), started),
        Some(strategy) => match cloned(src, dst, &only(strategy, cancel), started) {
            Err(calve_core::Error::RequirementRefused { refused, .. }) => {
                let of_it = refused.iter().find(|refusal| refusal.strategy == strategy);
                let reason = of_it.map_or_else(|| "it is not available here".into(), |refusal| refusal.reason.clone());
                Err(Error::Strategy { strategy, reason })
            }
            other => Ok(other?),
        },
        None => {
            let refused = match cloned(src, dst, &sharing(cancel), started) {
                Err(calve_core::Error::RequirementRefused { refused, .. }) => better(refused),
                other => return Ok(other?),
            };
            match overlay(src, dst, mounts, refused.clone(), started) {
                Err(Error::Strategy { reason, .. }) => {
                    let mut placed = cloned(src, dst, &only(Strategy::Copy, cancel), started)?;
                    placed.refused = refused;
                    placed.refused.push(Refusal { strategy: Strategy::Overlay, reason, remedy: None });
                    Ok(placed)
                }
                other => other,
            }
        }
    }
}

/// A clone of data that a server goes on to write. It is brought up to date when the server is held.
pub(crate) struct FollowingClone<'a> {
    source: FollowedSource,
    strategy: Strategy,
    dst: &'a Path,
    cancel: &'a CancelToken,
}

impl<'a> FollowingClone<'a> {
    /// Clones the data directory `src` to `dst`. Returns `None` where that would not shorten the hold, or failed.
    pub(crate) fn begin(src: &Path, dst: &'a Path, cancel: &'a CancelToken) -> Option<Self> {
        let slot = dst.parent()?;
        let strategy = if can_reflink(src, slot) { Strategy::Reflink } else { Strategy::Copy };
        let record = || FollowedSource::record(src, slot, Choice::Only(strategy), cancel).ok().flatten();
        // A server removes files at any time, also one that is just being looked at.
        let source = record().or_else(record)?;
        cloned(src, dst, &only(strategy, cancel), Instant::now()).ok()?;
        Some(Self { source, strategy, dst, cancel })
    }

    /// Brings the clone nearly up to date, so that little is left to do when the server is held.
    pub(crate) fn catch_up(&mut self) {
        // A failure shows again.
        let _ = self.source.catch_up(self.dst, self.cancel);
    }

    /// Brings the clone up to date with a server that is held. Returns its strategy, or `None` if it has to be made anew.
    pub(crate) fn finish(self) -> Option<Strategy> {
        self.source.finish(self.dst, self.cancel).unwrap_or(false).then_some(self.strategy)
    }
}

fn options(cancel: &CancelToken) -> CloneOptions {
    let mut options = CloneOptions::default();
    // Inlined bytes would take a call for each file, and are not reported.
    options.internal.inlined = InlinedBytes::WithShared;
    options.cancel = cancel.clone();
    options
}

fn sharing(cancel: &CancelToken) -> CloneOptions {
    let mut options = options(cancel);
    options.require = vec![Requirement::Cow];
    options
}

fn only(strategy: Strategy, cancel: &CancelToken) -> CloneOptions {
    let mut options = options(cancel);
    options.strategy = Choice::Only(strategy);
    options
}

fn cloned(
    src: &Path,
    dst: &Path,
    options: &CloneOptions,
    started: Instant,
) -> std::result::Result<DataClone, calve_core::Error> {
    let report = calve_core::clone_tree(src, dst, options)?;
    let refused = better(report.refused);
    Ok(DataClone { strategy: report.strategy, refused, took: started.elapsed(), copies_up: false, overlay: None })
}

/// Returns the refusals of strategies that would have been tried before an overlay.
fn better(mut refused: Vec<Refusal>) -> Vec<Refusal> {
    refused.retain(|refusal| !matches!(refusal.strategy, Strategy::Overlay | Strategy::Copy | Strategy::Hardlink));
    refused
}

fn overlay(src: &Path, dst: &Path, mounts: Mounts, refused: Vec<Refusal>, started: Instant) -> Result<DataClone> {
    let no = |reason: String| Error::Strategy { strategy: Strategy::Overlay, reason };
    match mounts {
        Mounts::Here => {}
        Mounts::None => return Err(no("this process may not mount, and may not make a user namespace".into())),
        Mounts::Unseen => return Err(no("Docker's engine does not see what this process mounts".into())),
    }
    let mut options = OverlayOptions::default();
    options.state = dst.parent().map(PathBuf::from);
    let mount = calve_core::internal::mount_overlay(src, dst, &options).map_err(|error| no(error.to_string()))?;
    let took = started.elapsed();
    // A reflink was not tried where an overlay was asked for.
    let copies_up = match refused.is_empty() {
        false => refused.iter().any(|refusal| refusal.strategy == Strategy::Reflink),
        true => !can_reflink(src, dst.parent().unwrap_or(dst)),
    };
    Ok(DataClone { strategy: Strategy::Overlay, refused, took, copies_up, overlay: Some(mount) })
}

/// Reports whether the kernel can share the blocks of a file with its copy.
fn can_reflink(src: &Path, dst: &Path) -> bool {
    let offers = |offer: &calve_core::report::Offer| offer.strategy == Strategy::Reflink && offer.refused.is_none();
    calve_core::probe(src, dst).is_ok_and(|report| report.offers.iter().any(offers))
}
