//! A tree that a caller puts together under a hidden name, from several clones and with programs of its own, before it is
//! published.

mod supersede;

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::facts::{Facts, created_in};
use crate::choice::Reason;
use crate::clone::check::sweep_leftovers;
use crate::clone::finish::{reopen, require_quiet, seal, verify};
use crate::clone::scrub::scrub;
use crate::clone::staging::{Publication, Staging};
use crate::error::Error;
use crate::options::{CloneOptions, Durability, Existing, Strategy, Verify};
use crate::remove::delete::{Deletion, delete};
use crate::remove::guard;
use crate::report::{CloneReport, Refusal, Trashed, Warning};
use crate::source::Source;
use crate::strategy::{self, Criteria, Failure, IN_ORDER, Job, Outcome};
use crate::sys;
use crate::tree::exclude::Exclude;
use crate::tree::fill::metadata::Created;
use crate::tree::location::Location;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::stable::Moment;

pub(crate) use supersede::kept_name;
pub use supersede::supersede;

/// What [`stage`] did beside what its caller did.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct StageReport {
    /// What [`Existing::Replace`] moved away.
    pub trashed: Option<Trashed>,
    /// The old tree that [`supersede`] kept, because something was written both in it and in the tree that replaced it.
    pub kept: Option<PathBuf>,
    /// Whether there is trash beside the destination: work for [`crate::reap`].
    pub trash_waits: bool,
    /// What else should be known.
    pub warnings: Vec<Warning>,
}

/// Gives `make` a hidden sibling of `dst` to fill, and then gives that the name `dst` in one step.
///
/// `dst` is absent (or as it was) or complete at any time, whatever happens to this process. Until it is published, nobody but
/// its owner can enter the staged tree. What killed runs have left beside `dst` is removed first. On btrfs the staged tree is a
/// subvolume.
///
/// # Errors
/// Those of `make`, and those of staging and publishing. Nothing is left behind.
pub fn stage<T, E: From<Error>>(
    dst: &Path,
    options: &CloneOptions,
    make: impl FnOnce(&mut StagedTree<'_>) -> Result<T, E>,
) -> Result<(T, StageReport), E> {
    let notes = Notes::default();
    let (place, trash_waits) = start(dst, &notes, options)?;
    let mut staged = StagedTree::reserve(&place, options)?;
    let made = make(&mut staged)?;
    let published = staged.publish(&notes)?;
    Ok((made, sealed(published, trash_waits, &notes)))
}

/// Opens the place of `dst` and checks that it may be used. Returns also whether there is trash.
fn start(dst: &Path, notes: &Notes, options: &CloneOptions) -> Result<(Location, bool), Error> {
    let place = Location::open(dst)?.ok_or_else(|| Error::DestinationExists(dst.to_path_buf()))?;
    match (place.stat()?, options.existing) {
        (None, _) => {}
        (Some(_), Existing::Refuse) => return Err(Error::DestinationExists(dst.to_path_buf())),
        (Some(_), Existing::Replace) => guard::check(&place, &options.protect)?,
    }
    let trash_waits = sweep_leftovers(&place, notes, options)?;
    Ok((place, trash_waits))
}

fn sealed(published: Publication, trash_waits: bool, notes: &Notes) -> StageReport {
    if let Some(error) = &published.left {
        notes.warn("old_not_removed", None, format!("what was replaced is still there under a hidden name: {error}"));
    }
    let Publication { trashed, kept, .. } = published;
    StageReport { trash_waits: trash_waits || trashed.is_some(), trashed, kept, warnings: notes.tell().warnings }
}

/// Where the root's own metadata comes from.
enum Metadata {
    /// It is as it was made, but open to those whom the umask permits.
    Plain,
    /// It has all of it, and was closed to others.
    Whole(Box<Stat>),
    Like(Box<Source>),
}

/// A tree that is being put together.
pub struct StagedTree<'p> {
    place: &'p Location,
    staging: Staging<'p>,
    options: &'p CloneOptions,
    metadata: Metadata,
    /// The moment since which the source of the root may not change, and the paths in it that do not matter.
    watched: Option<(Moment, Exclude)>,
}

/// One clone into the staged tree.
struct Part<'a> {
    source: &'a Source,
    /// The directory to fill, when it is not the root.
    below: Option<BorrowedFd<'a>>,
    exclude: &'a Exclude,
    facts: Facts,
    notes: &'a Notes,
    options: &'a CloneOptions,
}

type Ran = (Strategy, Vec<Refusal>, Outcome);

impl<'p> StagedTree<'p> {
    fn reserve(place: &'p Location, options: &'p CloneOptions) -> Result<Self, Error> {
        let staging = Staging::reserve(place)?;
        Ok(StagedTree { place, staging, options, metadata: Metadata::Plain, watched: None })
    }

    /// Where it is for now, for programs to work in.
    pub fn path(&self) -> PathBuf {
        self.place.parent_path().join(OsStr::from_bytes(self.staging.name().to_bytes()))
    }

    /// Makes the root: on btrfs a subvolume, elsewhere a directory. Says whether it is a subvolume.
    pub fn make_root(&mut self) -> Result<bool, Error> {
        let parent = self.staging.parent();
        if sys::magic(parent) == Ok(sys::BTRFS_MAGIC) {
            let failed = |errno| Error::io("create a subvolume in", self.place.parent_path(), errno);
            self.staging.expect_subvolume().map_err(failed)?;
            match sys::create_subvolume(parent, self.staging.name()) {
                Ok(()) => {
                    self.staging.adopt_directory()?;
                    let root = self.root()?;
                    sys::drop_inherited_acls(root);
                    let _ = sys::clear_nocow(root);
                    rustix::fs::fchmod(root, Mode::RWXU).map_err(failed)?;
                    return Ok(true);
                }
                Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOTTY) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        self.staging.make_directory()?;
        Ok(false)
    }

    /// Makes the root a clone of `src`, as far as it is selected. A btrfs subvolume is snapshotted, and what is not selected is
    /// removed from the snapshot. With [`Verify::Contents`] it is then compared with `src`.
    pub fn clone_root(&mut self, src: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
        let started = Instant::now();
        let notes = Notes::default();
        let source = Source::open(src)?;
        if source.single().is_some() {
            return Err(Error::io("open directory", src, Errno::NOTDIR));
        }
        let exclude = Exclude::new(&options.exclude)?.and_select(options.select.clone());
        let facts = Facts::from_places(&source, self.place.parent());
        let part = Part { source: &source, below: None, exclude: &exclude, facts, notes: &notes, options };
        let (strategy, refused, outcome) = match self.snapshot(&part)? {
            Ok(outcome) => (Strategy::Snapshot, Vec::new(), outcome),
            Err(refused) => {
                if self.staging.root().is_none() {
                    self.make_root()?;
                }
                self.fill(part, refused)?
            }
        };
        let told = notes.tell();
        if options.verify == Verify::Contents {
            verify(&source, &exclude, self.root()?, &told, options)?;
        }
        if let Some(since) = outcome.started {
            require_quiet(&source, &exclude, since, options)?;
        }
        let report = report(&source, self.place.path(), (strategy, refused, &outcome), &notes, started);
        self.watched = outcome.started.map(|since| (since, exclude));
        self.metadata = match outcome.whole {
            Some(whole) => Metadata::Whole(Box::new(whole)),
            None => Metadata::Like(Box::new(source)),
        };
        Ok(report)
    }

    /// Makes `at`, a path below the root at which nothing is yet, a clone of the directory `src`.
    pub fn clone_below(&mut self, src: &Path, at: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
        let started = Instant::now();
        let notes = Notes::default();
        let dst = self.place.path().join(at);
        let source = Source::open(src)?;
        let exclude = Exclude::new(&options.exclude)?.and_select(options.select.clone());
        let target = make_directories(self.root()?, at).map_err(|errno| Error::io("create directory", &dst, errno))?;
        let facts = Facts::from_places(&source, self.place.parent());
        let below = Some(target.as_fd());
        let part = Part { source: &source, below, exclude: &exclude, facts, notes: &notes, options };
        let reason = "it goes into a tree that is there already".to_owned();
        let (strategy, refused, outcome) =
            self.fill(part, vec![Refusal { strategy: Strategy::Snapshot, reason, remedy: None }])?;
        seal(&source, target.as_fd(), &notes, &dst)?;
        Ok(report(&source, &dst, (strategy, refused, &outcome), &notes, started))
    }

    /// Deletes what is at `at`, a path below the root, through no link. Says how many entries that were.
    pub fn remove(&self, at: &Path) -> Result<u64, Error> {
        let path = self.place.path().join(at);
        let failed = |errno| Error::io("remove", &path, errno);
        let (above, name) = components(at).ok_or_else(|| failed(Errno::INVAL))?;
        let mut directory = rustix::io::dup(self.root()?).map_err(failed)?;
        for component in above {
            directory = match sys::open_at(&directory, component.as_c_str(), BELOW, Mode::empty()) {
                Ok(below) => below,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(0),
                Err(errno) => return Err(failed(errno)),
            };
        }
        delete(directory.as_fd(), &name, &path, &deletion(self.options))
    }

    fn root(&self) -> Result<BorrowedFd<'_>, Error> {
        self.staging.root().ok_or_else(|| Error::StagingLost(self.place.parent_path().to_path_buf()))
    }

    /// The inner `Err`: why there is no snapshot.
    fn snapshot(&mut self, part: &Part<'_>) -> Result<Result<Outcome, Vec<Refusal>>, Error> {
        let refuse = |reason: Reason| Ok(Err(vec![reason.by(Strategy::Snapshot)]));
        if self.staging.root().is_some() {
            return refuse(Reason::new("it goes into a tree that is there already"));
        }
        let criteria = Criteria { excludes: false, ..Criteria::of(part.options) };
        let Some(method) = IN_ORDER.into_iter().find(|method| method.strategy() == Strategy::Snapshot) else {
            return refuse(Reason::new("not built in"));
        };
        if let Err(reason) = method.accepts(&part.facts, &criteria) {
            return refuse(reason);
        }
        match method.run(&mut self.job(part, Created { uid: 0, gid: 0, mask: 0 })) {
            Ok(outcome) => {
                if !part.exclude.is_empty() {
                    let deletion = deletion(part.options);
                    scrub(self.root()?, self.place.path(), part.exclude, part.notes, &deletion)?;
                }
                Ok(Ok(outcome))
            }
            Err(Failure::Refused(reason)) => refuse(reason),
            Err(Failure::Error(error)) => Err(error),
        }
    }

    /// By the best of the strategies that work file by file.
    fn fill(&mut self, mut part: Part<'_>, mut refused: Vec<Refusal>) -> Result<Ran, Error> {
        let created = part.facts.try_in(part.source, &self.staging)?;
        let criteria = Criteria::of(part.options);
        loop {
            let (method, declined) = strategy::choose(&part.facts, &criteria, &refused)?;
            refused = declined;
            match method.run(&mut self.job(&part, created)) {
                Ok(outcome) => return Ok((method.strategy(), refused, outcome)),
                Err(Failure::Error(error)) => return Err(error),
                Err(Failure::Refused(reason)) => refused.push(reason.by(method.strategy())),
            }
        }
    }

    fn job<'a>(&'a mut self, part: &'a Part<'_>, created: Created) -> Job<'a, 'p> {
        Job {
            source: part.source,
            dst_path: self.place.path(),
            staging: &mut self.staging,
            below: part.below,
            options: part.options,
            exclude: part.exclude,
            facts: &part.facts,
            notes: part.notes,
            created,
            threads: thread_count(part.options.threads),
        }
    }

    /// Gives the root its metadata.
    fn seal(&self, notes: &Notes) -> Result<(), Error> {
        let path = self.place.path();
        let failed = |errno| Error::io("set the mode of the staged tree of", path, errno);
        let root = self.root()?;
        match &self.metadata {
            Metadata::Plain => {
                let mask = created_in(&self.staging)?.mask;
                rustix::fs::fchmod(root, Mode::from_raw_mode(mask | Mode::RWXU.bits())).map_err(failed)?;
            }
            Metadata::Whole(whole) => reopen(root, whole, notes).map_err(failed)?,
            Metadata::Like(source) => seal(source, root, notes, path)?,
        }
        if self.options.durability == Durability::Synced {
            sys::sync_file_system(root).map_err(|errno| Error::io("sync", path, errno))?;
        }
        self.options.still_wanted()
    }

    /// Gives the root its metadata, and the tree its name.
    fn publish(self, notes: &Notes) -> Result<Publication, Error> {
        self.seal(notes)?;
        let path = self.place.path();
        let published = self.staging.publish(self.options.existing, &self.options.protect)?;
        if self.options.durability == Durability::Synced {
            let synced = sys::sync_file(self.place.parent());
            synced.map_err(|errno| Error::io(crate::error::SYNC_NAME, path, errno))?;
        }
        Ok(published)
    }
}

/// Whether a directory is a btrfs subvolume.
pub fn is_subvolume(path: &Path) -> Result<bool, Error> {
    let failed = |errno| Error::io("open directory", path, errno);
    let directory = sys::open_at(rustix::fs::CWD, path, BELOW, Mode::empty()).map_err(failed)?;
    let stat = rustix::fs::fstat(&directory).map_err(failed)?;
    sys::is_subvolume(directory.as_fd(), &stat).map_err(failed)
}

const BELOW: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The names of a relative path: those of the directories, and the last. `None` unless all of them are plain names.
fn components(path: &Path) -> Option<(Vec<CString>, CString)> {
    let mut names = Vec::new();
    for component in path.components() {
        let Component::Normal(name) = component else { return None };
        names.push(CString::new(name.as_bytes()).ok()?);
    }
    let last = names.pop()?;
    Some((names, last))
}

/// Makes the directory `at`, which must be new, and those above it that are missing. Through no link.
fn make_directories(root: BorrowedFd<'_>, at: &Path) -> sys::Result<OwnedFd> {
    let (above, last) = components(at).ok_or(Errno::INVAL)?;
    let mut current = rustix::io::dup(root)?;
    for name in above {
        match rustix::fs::mkdirat(&current, name.as_c_str(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        current = sys::open_at(&current, name.as_c_str(), BELOW, Mode::empty())?;
    }
    rustix::fs::mkdirat(&current, last.as_c_str(), Mode::RWXU)?;
    sys::open_at(&current, last.as_c_str(), BELOW, Mode::empty())
}

fn deletion(options: &CloneOptions) -> Deletion<'_> {
    let threads = thread_count(options.threads);
    Deletion { threads, progress: &options.progress, cancel: &options.cancel, last: None }
}

fn report(
    source: &Source,
    dst: &Path,
    (strategy, refused, outcome): (Strategy, Vec<Refusal>, &Outcome),
    notes: &Notes,
    started: Instant,
) -> CloneReport {
    let told = notes.tell();
    CloneReport {
        src: source.path().to_path_buf(),
        dst: dst.to_path_buf(),
        strategy,
        refused,
        entries: outcome.entries,
        bytes: outcome.bytes,
        fell_back: told.fell_back,
        skipped: told.skipped,
        changed: told.changed,
        warnings: told.warnings,
        trashed: None,
        trash_waits: false,
        elapsed: started.elapsed(),
    }
}
