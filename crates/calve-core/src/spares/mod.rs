//! Keeping spares: clones that are made ahead of time. `spare` hands them over.
//!
//! | File | Step |
//! |---|---|
//! | `build` | making a spare, and removing those that are of no use |
//! | `refill` | when the next one is built |
//! | `watch` | the watcher, which knows what has changed in a source |
//! | `known` | what is in a source, by the record of a spare and the watcher |

mod build;
mod known;
mod refill;
mod watch;

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::known::{KnownEntry, KnownSource};
pub use self::watch::{UntrackedReason, WatchEnd, WatchNote, WatchOptions, WatchOutcome};
use crate::choice::Strategy;
use crate::choose::RefusalReason;
use crate::error::Error;
use crate::operation::Operation;
use crate::options::{Background, CloneOptions, SpareUse};
use crate::progress::{CancelToken, Progress};
use crate::remedy::Remedy;
use crate::remove::delete::Deletion;
use crate::report::Offer;
use crate::spare::ask::{Answer, ask};
use crate::spare::store::{Definition, Home, Set, Shape, SpareSource, spares};
use crate::spare::{claim, record};
use crate::template::HeldTemplate;
use crate::tree::location::Location;
use crate::tree::source::Source;

/// The spares of one user.
#[derive(Debug, Clone)]
pub struct Spares {
    home: PathBuf,
}

/// A request for spares: see [`Spares::add`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SpareOptions {
    /// How many to keep ready; by default one.
    pub count: Option<usize>,
    /// The directory in which they are to be kept, in a hidden one. By default the store itself, where it is on the source's file system,
    /// and else the source's parent. They serve destinations on the same file system.
    pub at: Option<PathBuf>,
    /// The starter of the watcher. By default it stays as it was, or else only the user starts it.
    pub watcher: Option<WatcherStart>,
    /// They are for roots of trees that [`crate::stage`] assembles ([`SpareUse::made_without`]), which on btrfs are subvolumes. Required if the
    /// source is a subvolume, of which any other clone is a snapshot.
    pub staged: bool,
    /// The options of the clones that they are for: `exclude`, `mounts` and `unreadable`.
    pub like: CloneOptions,
}

/// The starter of the watcher ([`Spares::watch`]) of the source of spares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatcherStart {
    #[default]
    ByHand,
    /// The process that refills the spares after a clone, if none runs: see [`Spares::want_watcher`].
    AfterClones,
}

/// The spares of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpareSet {
    /// The source of the spares.
    pub source: SpareSource,
    /// How many are to be kept ready.
    pub count: usize,
    /// No more are built.
    pub is_paused: bool,
    /// The watcher is started after clones.
    pub is_watched: bool,
    /// The directory that has them: in the store, beside the source, or in the directory that was named.
    pub directory: PathBuf,
    /// The patterns of what they leave out.
    pub exclude: Vec<String>,
    /// How much space the next one takes, if one is missing: 0 where it shares the source's data. Only [`Spares::list`] finds that out.
    pub next_bytes: Option<u64>,
    /// Those that there are, the newest first.
    pub spares: Vec<SpareState>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpareState {
    /// Its name, for the watcher.
    pub id: String,
    /// The use that it is fit for.
    pub standing: Readiness,
    /// When it was built, if it is.
    pub built: Option<SystemTime>,
    /// How many entries it has.
    pub entries: u64,
    /// How long its files are together.
    pub apparent_bytes: u64,
    /// How much of that was written for it, and not shared.
    pub written_bytes: u64,
}

/// The use that a spare is fit for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It is being built, or being handed over.
    Building,
    /// It can be handed over, after a check.
    Ready,
    /// It cannot be used any more, for this reason.
    Stale(&'static str),
}

/// The directory of a source.
#[derive(Debug)]
pub enum SpareOrigin {
    /// A directory that may change.
    Directory(PathBuf),
    /// The tree of a template.
    Template(Box<HeldTemplate>),
}

impl SpareOrigin {
    fn path(&self) -> &Path {
        match self {
            Self::Directory(path) => path,
            Self::Template(template) => &template.tree,
        }
    }
}

pub struct RefillOptions {
    /// Finds the directory of a source. `None` if there is none any more.
    pub resolve: fn(&SpareSource) -> Option<SpareOrigin>,
    pub only: Option<SpareSource>,
    /// With [`Background::Yes`] this process gets the lowest priority, and waits while the machine is busy. Only for a process that does
    /// nothing else.
    pub background: Background,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    /// Ends the work early.
    pub cancel: CancelToken,
}

/// The result of [`Spares::refill`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RefillReport {
    /// How many spares were built.
    pub built: u64,
    /// How many were deleted because they were of no use any more, or had not been finished.
    pub removed: u64,
    /// Sources of which no spare could be built, and why.
    pub failures: Vec<(SpareSource, Error)>,
}

impl Spares {
    /// Returns the spares that are kept in the directory `home`, which need not exist.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    /// Asks for spares of a directory or template. Builds none: see [`Self::refill`].
    ///
    /// # Errors
    /// Fails with [`Error::NoSpare`] where a spare would be of no use.
    pub fn add(&self, origin: &SpareOrigin, options: &SpareOptions) -> Result<SpareSet, Error> {
        let src = origin.path();
        let no = |reason| Error::NoSpare { path: src.to_path_buf(), reason };
        let source = Source::open(src)?;
        let shape = Shape::of(&options.like, options.staged)
            .ok_or_else(|| no("what it leaves out is decided by a function"))?;
        let home = Home::create(&self.home)?;
        let real = src.canonicalize().map_err(|error| Error::Io {
            operation: Operation::Open,
            path: src.into(),
            source: error,
        })?;
        let parent = match &options.at {
            Some(at) => Some(at.canonicalize().map_err(|error| Error::Io {
                operation: Operation::Open,
                path: at.clone(),
                source: error,
            })?),
            None => {
                let stat = rustix::fs::fstat(home.directory())
                    .map_err(|errno| Error::io(Operation::Stat, &self.home, errno))?;
                let beside = real.parent().ok_or_else(|| no("it is the root of the file system"))?;
                (record::device(&stat) != source.identity().0).then(|| beside.to_path_buf())
            }
        };
        let of = match origin {
            SpareOrigin::Template(template) => SpareSource::Template(template.name.clone()),
            SpareOrigin::Directory(_) => SpareSource::Directory(real),
        };
        if options.watcher == Some(WatcherStart::AfterClones) {
            watch::possible(&self.home)?;
        }
        let definition = Definition { source: of, parent, count: options.count.unwrap_or(1).max(1), shape };
        let inside = match &definition.parent {
            Some(parent) => Location::of_destination(&parent.join(".calve-spares"))?,
            None => Location::of_destination(&self.home.join("set"))?,
        };
        build::refuse(&source, &inside, options.staged)?;
        let mut set = home.define(&definition)?;
        set.pause(false)?;
        if let Some(watcher) = options.watcher {
            set.keep_watched(watcher == WatcherStart::AfterClones)?;
            set.watched = watcher == WatcherStart::AfterClones;
        }
        set.create_directory()?;
        set.paused = false;
        // A watcher that runs learns of it.
        ask(home.path(), &set.id);
        self.describe(&set, Some(&source))
    }

    /// Returns whether [`crate::clone_tree`] would use a spare of `src` for a destination in the directory `parent`, as far as that shows
    /// without a check of its entries, and what would make it possible.
    pub fn offer(&self, src: &Path, parent: &Path) -> Result<Offer, Error> {
        let source = Source::open(src)?;
        let inside = Location::of_destination(&parent.join("spare"))?;
        let options = CloneOptions { spares: Some(SpareUse::of(&self.home)), ..CloneOptions::default() };
        let refused = match claim::available(&source, inside.parent(), &options) {
            Ok(()) => None,
            Err(Some(reason)) => Some(reason),
            Err(None) => Some(match build::unfit(&source, false) {
                Err(Error::NoSpare { reason, .. }) => RefusalReason::new(reason),
                _ => RefusalReason::new("there is none of this source")
                    .with_remedy(Remedy::KeepSpares(src.to_path_buf())),
            }),
        };
        let refused = refused.map(|reason| reason.by(Strategy::Spare));
        Ok(Offer { strategy: Strategy::Spare, refused })
    }

    /// Returns whether there are to be spares of the directory `src` as it is; if `made_without` is not empty, spares for trees that are assembled
    /// ([`SpareOptions::staged`]), without what matches it.
    pub fn are_wanted(&self, src: &Path, made_without: &[String]) -> Result<bool, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(false) };
        let Ok(real) = src.canonicalize() else { return Ok(false) };
        let whole = Shape::of_root(made_without);
        let sets = home.sets(Some(&SpareSource::Directory(real)))?;
        Ok(sets.iter().any(|set| set.definition.shape == whole))
    }

    /// Returns whether a watcher knows what has changed in `source` since a spare was built. Just after all of a source was read, it does not
    /// know yet.
    pub fn are_known(&self, source: &SpareSource) -> Result<bool, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(false) };
        for set in home.sets(Some(source))? {
            let Some(directory) = set.open_directory()? else { continue };
            for found in spares(directory.as_fd(), &set.directory_path())? {
                if ask(home.path(), &found.id(&set)) != Answer::Unknown {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns all sets. `resolve` finds the directory of a source.
    pub fn list(&self, resolve: impl Fn(&SpareSource) -> Option<SpareOrigin>) -> Result<Vec<SpareSet>, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(Vec::new()) };
        let mut sets = Vec::new();
        for set in home.sets(None)? {
            let origin = resolve(&set.definition.source);
            let source = origin.as_ref().and_then(|origin| Source::open(origin.path()).ok());
            let mut described = self.describe(&set, source.as_ref())?;
            let usable = described.spares.iter().filter(|spare| !matches!(spare.standing, Readiness::Stale(_))).count();
            if let Some(origin) = origin.filter(|_| usable < described.count) {
                described.next_bytes = build::cost(&set, &origin).ok();
            }
            sets.push(described);
        }
        sets.sort_by(|a, b| (&a.directory, &a.exclude).cmp(&(&b.directory, &b.exclude)));
        Ok(sets)
    }

    fn describe(&self, set: &Set, source: Option<&Source>) -> Result<SpareSet, Error> {
        let mut described = SpareSet {
            source: set.definition.source.clone(),
            count: set.definition.count,
            is_paused: set.paused,
            is_watched: set.watched,
            directory: set.directory_path(),
            exclude: set.definition.shape.exclude.clone(),
            next_bytes: None,
            spares: Vec::new(),
        };
        let Some(directory) = set.open_directory()? else { return Ok(described) };
        for found in spares(directory.as_fd(), &described.directory)? {
            let id = found.id(set);
            let busy = found.lock(directory.as_fd())?.is_none();
            let (standing, head) = match (found.head()?, source) {
                (head, _) if busy => (Readiness::Building, head),
                (None, _) => (Readiness::Stale("it was not finished"), None),
                (Some(head), None) => (Readiness::Stale("the source is missing"), Some(head)),
                (Some(head), Some(source)) => {
                    let standing = claim::fitness(&head, source).map_or_else(Readiness::Stale, |()| Readiness::Ready);
                    (standing, Some(head))
                }
            };
            let head = head.as_ref();
            described.spares.push(SpareState {
                id,
                standing,
                built: head.map(|head| UNIX_EPOCH + Duration::from_nanos(head.built_ns)),
                entries: head.map_or(0, |head| head.entries),
                apparent_bytes: head.map_or(0, |head| head.apparent_bytes),
                written_bytes: head.map_or(0, |head| head.written_bytes),
            });
        }
        Ok(described)
    }

    /// Says whether more spares of a source are to be built. Returns how many sets that concerns.
    pub fn pause(&self, source: &SpareSource, paused: bool) -> Result<usize, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(0) };
        let sets = home.sets(Some(source))?;
        sets.iter().try_for_each(|set| set.pause(paused))?;
        Ok(sets.len())
    }

    /// Forgets about a source, and deletes its spares. Waits for a process that builds one, which would leave it if it were killed: in the
    /// background it gives up. Returns how many sets there were.
    pub fn remove(&self, source: &SpareSource, cancel: &CancelToken) -> Result<usize, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(0) };
        let sets = home.sets(Some(source))?;
        sets.iter().try_for_each(|set| set.pause(true))?;
        let _lock = home.lock_soon()?;
        let progress = Progress::default();
        for set in &sets {
            build::sweep(set, None, &Deletion::new(None, &progress, cancel))?;
            set.undefine()?;
            home.forget(set);
            // A watcher that runs learns of it.
            ask(home.path(), &set.id);
        }
        Ok(sets.len())
    }

    /// Returns whether a watcher is to be started after clones.
    pub fn want_watcher(&self) -> Result<bool, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(false) };
        Ok(home.sets(None)?.iter().any(|set| set.watched))
    }
}
