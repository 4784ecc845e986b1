//! Replaces a tree with a staged clone of it, while programs may be at work there.

use std::ffi::CStr;
use std::path::Path;

use rustix::fs::Stat;

use super::{Origin, StageReport, StagedTree, conclude, report, start};
use crate::clone::finish::require_stable;
use crate::error::{Error, ShownPath};
use crate::options::{CloneOptions, ExistingDestination};
use crate::staging::{Oversight, Publication, RootKind, Verdict};
use crate::tree::exclude::Exclusions;
use crate::tree::location::{Location, identity};
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::tree::stable::{Since, StabilityCheck, changed};
use crate::vocabulary::strategy::Requirement;

/// Replaces the directory `path` with a clone of itself. `make` fills a hidden sibling by [`StagedTree::clone_root`] with
/// [`Requirement::Stable`]; then one step exchanges the two, and the old tree goes to the trash. The clone is verified as its own options
/// demand; `options` are about the tree as a whole.
///
/// Nothing that is written meanwhile is lost. Checks the whole of `path` again right before the exchange. After it, calls `is_left` with
/// the new path of the old tree, which fails if anybody is still in there, and checks the old tree again. If something was written there,
/// exchanges the two back. If something was written in the new tree too by then, keeps both: [`StageReport::kept`] says where the old one
/// is.
///
/// # Errors
/// Fails when `make` or `is_left` fails, and with [`Error::RequirementRefused`] when something changed. `path` is then as it was.
pub fn supersede<E: From<Error>>(
    path: &Path,
    options: &CloneOptions,
    make: impl FnOnce(&mut StagedTree<'_>) -> Result<(), E>,
    is_left: impl Fn(&Path) -> Result<(), E>,
) -> Result<StageReport, E> {
    let mut options = options.clone();
    options.existing = ExistingDestination::Replace;
    let notes = Notes::default();
    let destination = Location::of_destination(path)?;
    let trash_waits = start(&destination, &notes, &options)?;
    let mut staged = StagedTree::reserve(&destination, RootKind::Subvolume, &options)?;
    make(&mut staged)?;
    let hidden = staged.path();
    let mut trouble: Option<E> = None;
    let published = staged.exchange(&notes, &mut |old| {
        let judged = is_left(&hidden)
            .and_then(|()| require_stable(old, "changed while the clone took its place").map_err(E::from));
        trouble = judged.err();
        trouble.is_none()
    });
    let published = match (published, trouble) {
        (Ok(published), trouble) if published.is_undone => {
            return Err(match published.kept {
                Some(kept) => changed_in_both(path, &kept).into(),
                None => trouble.unwrap_or_else(|| changed_meanwhile(path).into()),
            });
        }
        (published, _) => published?,
    };
    let Publication { trashed, kept, .. } = conclude(&destination, published, &notes, &options)?;
    Ok(report(trashed, kept, trash_waits, &notes))
}

fn changed_meanwhile(path: &Path) -> Error {
    Error::unmet(Requirement::Stable, format!("`{}` changed during the exchange", ShownPath(path)))
}

fn changed_in_both(path: &Path, kept: &Path) -> Error {
    let detail = format!(
        "`{}` changed during the exchange; `{}` has what was written in the new directory by then",
        ShownPath(path),
        ShownPath(kept)
    );
    Error::unmet(Requirement::Stable, detail)
}

fn stability_check<'a>(
    origin: &'a Origin,
    since: Since,
    options: &'a CloneOptions,
    renamed: Option<&'a Stat>,
) -> StabilityCheck<'a> {
    StabilityCheck { source: &origin.source, since, exclude: &origin.exclude, options, renamed }
}

impl StagedTree<'_> {
    /// Exchanges the two trees. `is_fine` looks at the old one after that; `StabilityCheck` of it has its new name.
    fn exchange(
        mut self,
        notes: &Notes,
        is_fine: &mut dyn FnMut(&StabilityCheck<'_>) -> bool,
    ) -> Result<Publication, Error> {
        let (path, options) = (self.destination.path(), self.options);
        let unwatched = || Error::unmet(Requirement::Stable, "it was not cloned as a whole".into());
        self.seal(notes)?;
        let origin = self.origin.take().ok_or_else(unwatched)?;
        let since = origin.started.ok_or_else(unwatched)?;
        let new =
            Origin { source: Source::open(&self.path())?, exclude: Exclusions::default(), whole: None, started: None };
        let published_at = Since::now();
        require_stable(&stability_check(&origin, since, options, None), "changed while the clone was made")?;
        let is_quiet = || {
            let quiet = stability_check(&new, published_at, options, Some(new.source.stat()));
            matches!(changed(&quiet), Ok(None))
        };
        let old = stability_check(&origin, since, options, Some(origin.source.stat()));
        let parent = self.destination.parent();
        let is_old = |name: &CStr| {
            crate::sys::stat_at(parent, name).is_ok_and(|stat| identity(&stat) == origin.source.identity())
        };
        let oversight = Oversight {
            judge: &mut |hidden| match is_old(hidden) && is_fine(&old) {
                true => Verdict::Settle,
                false if is_quiet() => Verdict::Undo,
                false => Verdict::Keep,
            },
            may_drop: &is_quiet,
        };
        let published = self.staging.publish(ExistingDestination::Replace, &options.protect, Some(oversight));
        published.map_err(|error| match error {
            Error::DestinationExists(_) => changed_meanwhile(path),
            other => other,
        })
    }
}
