//! Following a source that is being written to: a clone made meanwhile is later brought up to date where it differs.
//!
//! So a source must be held only for that, not for all of the cloning. docs/atomicity.md says why nothing is missed.

use std::ffi::CString;
use std::io::ErrorKind;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::update::{UpdateMethods, now};
use crate::claim::check::{SpareDifferences, node};
use crate::claim::record::{RecordDraft, Writers};
use crate::error::{Error, IoContext};
use crate::options::{CloneOptions, Mounts};
use crate::progress::CancelToken;
use crate::sys;
use crate::tree::compare::names;
use crate::tree::location::DIRECTORY;
use crate::tree::source::Source;
use crate::tree::stable;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::strategy::{Choice, Requirement};

/// The state of a directory when it was cloned, which later tells the changes.
#[derive(Debug)]
pub struct FollowedSource {
    path: PathBuf,
    beside: PathBuf,
    strategy: Choice,
    record: RecordDraft,
    /// Found at the first need, rather than while the source is held.
    methods: Option<UpdateMethods>,
}

impl FollowedSource {
    /// Records the state of the directory `src` before it is cloned by this strategy. `beside` is a directory of the
    /// caller's on the same file system; its change time tells the time there.
    ///
    /// Returns `None` for a subvolume, whose snapshot needs no following, and where the file system does not show every
    /// later change of everything in the directory.
    pub fn record(src: &Path, beside: &Path, strategy: Choice, cancel: &CancelToken) -> Result<Option<Self>, Error> {
        let (source, clock) = (Source::open(src)?, Source::open(beside)?);
        let shows = sys::shows_stores(source.directory()).io(Operation::Open, src)?;
        if source.single().is_some() || !shows {
            return Ok(None);
        }
        if sys::is_subvolume(source.directory(), source.stat()).io(Operation::Stat, src)? {
            return Ok(None);
        }
        let record = taken(&source, &clock, strategy, cancel)?;
        let (path, beside) = (src.to_path_buf(), beside.to_path_buf());
        Ok(record.map(|record| Self { path, beside, strategy, record, methods: None }))
    }

    /// Makes `clone`, begun after the state was recorded, what the source was at some moment since, for entries that do
    /// not change during this. May be called again. No other process may write to the clone. An error leaves a part done.
    pub fn catch_up(&mut self, clone: &Path, cancel: &CancelToken) -> Result<(), Error> {
        let (source, made, clock) = (Source::open(&self.path)?, Source::open(clone)?, Source::open(&self.beside)?);
        self.find_methods(&source, &made)?;
        // The next time finds later changes.
        if let Some(next) = taken(&source, &clock, self.strategy, cancel)?
            && self.update(&source, &made, cancel)?.is_some()
        {
            self.record = next;
        }
        Ok(())
    }

    /// Does the same as [`FollowedSource::catch_up`], while nothing writes to the source. Returns whether `clone`
    /// equals it now. If not, make it anew: more than a quarter of the entries changed, or files have several names.
    /// An error leaves a part of the work done, and so may a return of false.
    pub fn finish(mut self, clone: &Path, cancel: &CancelToken) -> Result<bool, Error> {
        let (source, made) = (Source::open(&self.path)?, Source::open(clone)?);
        self.find_methods(&source, &made)?;
        Ok(self.update(&source, &made, cancel)? == Some(true))
    }

    fn find_methods(&mut self, source: &Source, made: &Source) -> Result<(), Error> {
        if self.methods.is_none() {
            self.methods = UpdateMethods::find(source, made.path(), self.strategy)?;
        }
        Ok(())
    }

    /// Returns whether the update was complete; `None` if nothing was done.
    fn update(&self, source: &Source, made: &Source, cancel: &CancelToken) -> Result<Option<bool>, Error> {
        let Some(methods) = self.methods.as_ref().filter(|_| self.record.is(source)) else { return Ok(None) };
        let options = &CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
        let Some(mut differences) = self.record.differences(source, options)? else { return Ok(None) };
        if differences.directories.is_empty() {
            return Ok(Some(true));
        }
        if !find_gone(source, made, &mut differences)? {
            return Ok(None);
        }
        methods.update(source, made, differences, options).map(Some)
    }
}

/// Returns `None` if something in the source cannot be followed.
fn taken(
    source: &Source,
    clock: &Source,
    strategy: Choice,
    cancel: &CancelToken,
) -> Result<Option<RecordDraft>, Error> {
    // A store through a mapping shows only on a clean page. Sharing extents writes pages back; reading does not.
    let moment = match strategy {
        Choice::Only(strategy) if strategy.meets(Requirement::Cow) => now(clock)?,
        _ => stable::begin(source, Mounts::Stay)?.moment,
    };
    match RecordDraft::take(source, moment, Writers::Possible, cancel) {
        Ok(record) => Ok(Some(record)),
        Err(Error::NoSpare { .. }) => Ok(None),
        // It went while it was looked at.
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the names that only the clone has, in changed directories: of entries made after the record, cloned, and
/// removed. Returns false if something was away while its directory was cloned, and is back.
fn find_gone(source: &Source, made: &Source, differences: &mut SpareDifferences) -> Result<bool, Error> {
    let paths: Vec<PathBuf> = differences.directories.keys().cloned().collect();
    for path in paths {
        let node = node(&path);
        let (src, copy) = match (node.open_source(source.directory()), node.open(made.directory(), DIRECTORY)) {
            (Ok(src), Ok(copy)) => (src, copy),
            (Ok(_), Err(_)) if !will_be_made(differences, &path) => return Ok(false),
            // The directory above lists it among its new or missing entries.
            _ => continue,
        };
        let names = |directory| names(directory).io(Operation::ReadDirectory, made.path().join(&path));
        let (there, here) = (names(src.as_fd())?, names(copy.as_fd())?);
        let Some(changes) = differences.directories.get_mut(&path) else { continue };
        let is_to_be_made = |name: &CString| changes.made.iter().any(|(_, made)| made == name);
        if there.keys().any(|name| !here.contains_key(name) && !is_to_be_made(name)) {
            return Ok(false);
        }
        changes.gone = here.into_keys().filter(|name| !there.contains_key(name)).collect();
    }
    Ok(true)
}

/// Returns whether the directory, or one above it, will be made.
fn will_be_made(differences: &SpareDifferences, path: &Path) -> bool {
    path.ancestors().any(|path| {
        let changes = path.parent().and_then(|parent| differences.directories.get(parent));
        let name = path.file_name().unwrap_or_default().as_bytes();
        changes.is_some_and(|changes| changes.made.iter().any(|(_, made)| made.to_bytes() == name))
    })
}
