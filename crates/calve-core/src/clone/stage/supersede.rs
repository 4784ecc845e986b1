//! Replaces a tree with a staged clone of it, while programs may be at work there.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat};

use super::{Metadata, StageReport, StagedTree, sealed, start};
use crate::clone::finish::{refusal, require_quiet};
use crate::clone::staging::{Oversight, Publication, Verdict};
use crate::error::{Error, Shown};
use crate::options::{CloneOptions, Existing, Requirement};
use crate::source::Source;
use crate::tree::exclude::Exclude;
use crate::tree::location::identity;
use crate::tree::notes::Notes;
use crate::tree::stable::{Moment, Quiet, changed};

/// Replaces the directory `path` with a clone of itself. `make` fills a hidden sibling by [`StagedTree::clone_root`] with
/// [`Requirement::Stable`]; then one step exchanges the two, and the old tree goes to the trash.
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
    options.existing = Existing::Replace;
    let notes = Notes::default();
    let (place, trash_waits) = start(path, &notes, &options)?;
    let mut staged = StagedTree::reserve(&place, &options)?;
    make(&mut staged)?;
    let hidden = staged.path();
    let mut trouble: Option<E> = None;
    let published = staged.exchange(&notes, &mut |old| {
        let judged = is_left(&hidden).and_then(|()| old.require_unchanged().map_err(E::from));
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
    Ok(sealed(published, trash_waits, &notes))
}

fn changed_meanwhile(path: &Path) -> Error {
    refusal(Requirement::Stable, format!("`{}` changed during the exchange", Shown(path)))
}

fn changed_in_both(path: &Path, kept: &Path) -> Error {
    let detail = format!(
        "`{}` changed during the exchange; `{}` has what was written in the new directory by then",
        Shown(path),
        Shown(kept)
    );
    refusal(Requirement::Stable, detail)
}

/// The old directory, which has another name by now.
struct OldTree<'a> {
    source: &'a Source,
    exclude: &'a Exclude,
    since: Moment,
    options: &'a CloneOptions,
}

impl OldTree<'_> {
    fn require_unchanged(&self) -> Result<(), Error> {
        let OldTree { source, exclude, since, options } = *self;
        let quiet = quiet(source, exclude, since, options, Some(source.stat()));
        match changed(&quiet)? {
            None => Ok(()),
            Some(below) => {
                let path =
                    if below.as_os_str().is_empty() { source.path().to_path_buf() } else { source.path().join(below) };
                Err(refusal(Requirement::Stable, format!("`{}` changed while the clone took its place", Shown(&path))))
            }
        }
    }
}

fn quiet<'a>(
    source: &'a Source,
    exclude: &'a Exclude,
    since: Moment,
    options: &'a CloneOptions,
    renamed: Option<&'a Stat>,
) -> Quiet<'a> {
    let threads = crate::tree::pool::thread_count(options.threads);
    Quiet { source, since, exclude, mounts: options.mounts, threads, cancel: &options.cancel, renamed }
}

impl StagedTree<'_> {
    fn exchange(mut self, notes: &Notes, is_fine: &mut dyn FnMut(&OldTree<'_>) -> bool) -> Result<Publication, Error> {
        let path = self.place.path();
        let unwatched = || refusal(Requirement::Stable, "it was not cloned as a whole".into());
        let (since, exclude) = self.watched.take().ok_or_else(unwatched)?;
        self.seal(notes)?;
        let Metadata::Like(source) = &self.metadata else { return Err(unwatched()) };
        let new = Source::open(&self.path())?;
        let (everything, published_at) = (Exclude::new(&[])?, Moment::of_clock());
        require_quiet(source, &exclude, since, self.options)?;
        let is_quiet = || {
            let quiet = quiet(&new, &everything, published_at, self.options, Some(new.stat()));
            matches!(changed(&quiet), Ok(None))
        };
        let old = OldTree { source, exclude: &exclude, since, options: self.options };
        let parent = self.place.parent();
        let is_old = |name: &CStr| {
            rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| identity(&stat) == source.identity())
        };
        let oversight = Oversight {
            judge: &mut |hidden| match is_old(hidden) && is_fine(&old) {
                true => Verdict::Settle,
                false if is_quiet() => Verdict::Undo,
                false => Verdict::Keep,
            },
            may_drop: &is_quiet,
        };
        self.staging.publish_overseen(Existing::Replace, &self.options.protect, Some(oversight)).map_err(|error| {
            match error {
                Error::DestinationExists(_) => changed_meanwhile(path),
                other => other,
            }
        })
    }
}

/// Returns the `number`th name beside the directory `path` under which the old directory can be kept.
pub(crate) fn kept_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::from_bytes(b"directory")).to_owned();
    name.push(if number == 0 { ".kept".to_owned() } else { format!(".kept{number}") });
    path.with_file_name(name)
}
