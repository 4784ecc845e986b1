//! A staged tree that takes the place of what it was cloned from, while programs may be at work there.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Stat};

use super::{Metadata, StageReport, Staged, sealed, start};
use crate::error::{Error, Shown};
use crate::finish::{refusal, require_quiet};
use crate::options::{CloneOptions, Existing, Requirement};
use crate::source::Source;
use crate::tree::exclude::Exclude;
use crate::tree::notes::Notes;
use crate::tree::place::identity;
use crate::tree::stable::{Moment, Quiet, changed};
use crate::tree::staging::{Oversight, Published, Verdict};

/// Gives `make` a hidden sibling of the directory `path` to fill by [`Staged::clone_root`] with [`Requirement::Stable`], and then
/// exchanges the two in one step. What was there goes to the trash.
///
/// Nothing that is written meanwhile is lost. The whole of `path` is looked at once more right before the exchange, and after it
/// `is_left` is asked whether anybody still is in the old tree (which is then at the path that it is given), and that is looked at
/// again. If something was written there, the two are exchanged back. If by then something was written in the new tree too, both are
/// kept: [`StageReport::kept`] says where the old one is.
///
/// # Errors
/// Those of `make` and `is_left`, and [`Error::RequirementRefused`] when something changed. `path` is as it was then.
pub fn supersede<E: From<Error>>(
    path: &Path,
    options: &CloneOptions,
    make: impl FnOnce(&mut Staged<'_>) -> Result<(), E>,
    is_left: impl Fn(&Path) -> Result<(), E>,
) -> Result<StageReport, E> {
    let mut options = options.clone();
    options.existing = Existing::Replace;
    let notes = Notes::default();
    let (place, trash_waits) = start(path, &notes, &options)?;
    let mut staged = Staged::reserve(&place, &options)?;
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
    refusal(Requirement::Stable, format!("`{}` changed while it was exchanged", Shown(path)))
}

fn changed_in_both(path: &Path, kept: &Path) -> Error {
    let detail = format!(
        "`{}` changed while it was exchanged; what was written in the new directory by then is in `{}`",
        Shown(path),
        Shown(kept)
    );
    refusal(Requirement::Stable, detail)
}

/// The directory that was there, which has another name by now.
struct Old<'a> {
    source: &'a Source,
    exclude: &'a Exclude,
    since: Moment,
    options: &'a CloneOptions,
}

impl Old<'_> {
    fn require_unchanged(&self) -> Result<(), Error> {
        let Old { source, exclude, since, options } = *self;
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

impl Staged<'_> {
    fn exchange(mut self, notes: &Notes, is_fine: &mut dyn FnMut(&Old<'_>) -> bool) -> Result<Published, Error> {
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
        let old = Old { source, exclude: &exclude, since, options: self.options };
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

/// A name beside the directory `path` for what is kept of it, the `number`th.
pub(crate) fn kept_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::from_bytes(b"directory")).to_owned();
    name.push(if number == 0 { ".kept".to_owned() } else { format!(".kept{number}") });
    path.with_file_name(name)
}
