//! Replaces a tree with a staged clone of it, while programs may be at work there.

use std::path::Path;

use super::{Origin, StageReport, StagedTree, conclude, report, start};
use crate::clone::finish::require_stable;
use crate::error::{Error, ShownPath};
use crate::options::{CloneOptions, ExistingDestination};
use crate::staging::RootKind;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::location::{Location, identity};
use crate::tree::notes::Notes;
use crate::tree::source::Source;
use crate::tree::stable::{Since, StabilityCheck, changed};
use crate::vocabulary::strategy::Requirement;

/// Replaces the directory `path` with a clone of itself. `make` fills a hidden sibling by [`StagedTree::clone_root`]
/// with [`Requirement::Stable`]; one step exchanges the two, and the old tree goes to the trash. The clone is verified
/// as its own options demand; `options` are about the whole tree.
///
/// Loses nothing that is written meanwhile. Checks all of `path` again right before the exchange. Afterwards calls
/// `is_left` with the old tree's new path, which fails if any process is still in it, and checks the old tree again. If
/// that was written to, exchanges the two back; if the new tree was too, keeps both ([`StageReport::kept`]).
///
/// # Errors
/// Fails when `make` or `is_left` fails, or with [`Error::RequirementRefused`] on a change. `path` is then as it was.
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
    staged.seal(&notes)?;
    let hidden = staged.path();
    let StagedTree { staging, origin, .. } = staged;
    let unwatched = || Error::unmet(Requirement::Stable, "it was not cloned as a whole".into());
    let Origin { source, exclude, started, .. } = &origin.ok_or_else(unwatched)?;
    let since = started.ok_or_else(unwatched)?;
    let (new, everything) = (Source::open(&hidden)?, Exclusions::default());
    let published_at = Since::now(new.stat());
    let before = StabilityCheck { source, since, exclude, options: &options, renamed: None };
    require_stable(&before, "changed while the clone was made")?;
    let old = StabilityCheck { renamed: Some(source.stat()), ..before };
    let is_quiet = || {
        let (source, renamed) = (&new, Some(new.stat()));
        let quiet = StabilityCheck { source, since: published_at, exclude: &everything, options: &options, renamed };
        matches!(changed(&quiet), Ok(None))
    };
    let exchanged = staging.exchange(&options.protect).map_err(|error| match error {
        Error::DestinationExists(_) => changed_meanwhile(path),
        other => other,
    })?;
    // Until both trees have their places, no error ends this.
    let found = sys::stat_at(destination.parent(), staging.name());
    let is_old = found.is_ok_and(|stat| identity(&stat) == source.identity());
    let judged = match exchanged {
        true if !is_old => Err(changed_meanwhile(path).into()),
        true => is_left(&hidden)
            .and_then(|()| require_stable(&old, "changed while the clone took its place").map_err(E::from)),
        false => Ok(()),
    };
    let Err(trouble) = judged else {
        let trashed = conclude(&destination, staging.finish(exchanged), &notes, &options)?;
        return Ok(report(trashed, None, trash_waits, &notes));
    };
    let is_undone = is_quiet() && staging.exchange_back();
    if is_undone && is_quiet() {
        // The new tree has the hidden name again; dropping the staging deletes it.
        return Err(trouble);
    }
    let kept = staging.keep()?;
    if is_undone {
        return Err(changed_in_both(path, &kept).into());
    }
    conclude(&destination, Ok(None), &notes, &options)?;
    Ok(report(None, Some(kept), trash_waits, &notes))
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
