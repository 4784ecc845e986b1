//! The watcher: a process that tracks changes in the sources of spares, so that a claim need not check every entry.
//!
//! It watches first, then compares each source with the record of each spare, and adds later events to the result. If
//! it is not sure, it answers "unknown", and the claim checks every entry.

mod serve;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use self::serve::QuestionSocket;
pub use self::tracker::UntrackedReason;
use self::tracker::{Tracker, WatchBudget};
use super::set::Spares;
use crate::claim::ask::KnownChanges;
use crate::claim::check::{CheckFailure, CheckRequest, check};
use crate::claim::hand_over::fitness;
use crate::claim::store::{Home, Set, SpareDirectory, SpareSource, spares_in};
use crate::error::{Error, IoContext};
use crate::progress::CancelToken;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;

/// The options of [`Spares::watch`].
pub struct WatchOptions<'a> {
    /// Receives notes for the user.
    pub notify: &'a mut dyn FnMut(WatchNote<'_>),
    /// When it ends by itself.
    pub end: WatchEnd,
    /// Ends the watch early.
    pub cancel: CancelToken,
}

/// When [`Spares::watch`] ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchEnd {
    /// It does not.
    #[default]
    Never,
    /// When no spares requested with [`SpareOptions::watched`](super::SpareOptions::watched) remain.
    Unwanted,
}

/// The messages of the watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchNote<'a> {
    /// It answers questions from now on.
    Listening,
    /// It knows what happens in this source.
    Watching {
        /// The source.
        source: &'a Path,
        /// How many directories it has.
        directories: usize,
    },
    /// It knows whether this spare still equals its source.
    Knows {
        /// Id of the spare.
        spare: &'a str,
    },
    /// It knows nothing about this source, and may try again.
    Lost {
        /// The source.
        source: &'a Path,
        /// The reason.
        why: UntrackedReason,
    },
}

/// The end of [`Spares::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchOutcome {
    /// It was cancelled, or not wanted any more.
    Ended,
    /// Another process watches for this user.
    Elsewhere,
}

impl Spares {
    /// Watches the sources of all spares and answers claims, until it is cancelled or no longer wanted.
    ///
    /// # Errors
    /// Fails where no watches report every change (all but Linux), or if the store is unusable.
    pub fn watch(&self, options: &mut WatchOptions<'_>) -> Result<WatchOutcome, Error> {
        possible(&self.home)?;
        let home = Home::create(&self.home)?;
        let Some(door) = QuestionSocket::open(&home)? else { return Ok(WatchOutcome::Elsewhere) };
        let mut watcher = Watcher {
            home,
            sources: HashMap::new(),
            budget: WatchBudget::new(sys::most_watches()),
            is_wanted: true,
            looked: Instant::now(),
        };
        match watcher.run(&door, options) {
            // Cancelled during a comparison.
            Ok(()) | Err(Error::Interrupted) => Ok(WatchOutcome::Ended),
            Err(error) => Err(error),
        }
    }
}

pub(super) fn possible(home: &Path) -> Result<(), Error> {
    sys::Watches::new().map(drop).io(Operation::Watch, home)
}

struct Watcher {
    home: Home,
    sources: HashMap<String, WatchedSource>,
    budget: Rc<WatchBudget>,
    /// Some set makes clones start the watcher.
    is_wanted: bool,
    looked: Instant,
}

struct WatchedSource {
    path: PathBuf,
    tracker: Result<Tracker, UntrackedReason>,
    /// The differences of each spare at one moment, by its id.
    bases: HashMap<String, Base>,
    again: Instant,
    pause: Duration,
}

struct Base {
    moment: u64,
    directories: Vec<PathBuf>,
}

/// The time without events before suspects are checked.
const QUIET: Duration = Duration::from_secs(1);
/// The interval at which a watcher checks whether it is still wanted. Removing spares notifies it, too.
const LOOK: Duration = Duration::from_secs(60);
/// The longest pause before a lost source is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl Watcher {
    fn run(&mut self, door: &QuestionSocket, options: &mut WatchOptions<'_>) -> Result<(), Error> {
        self.look_for_sources(options)?;
        (options.notify)(WatchNote::Listening);
        let ends = options.end == WatchEnd::Unwanted;
        while !options.cancel.is_cancelled() && (self.is_wanted || !ends) {
            self.wait(door, options)?;
            if ends && self.looked.elapsed() > LOOK {
                self.look_for_sources(options)?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, door: &QuestionSocket, options: &mut WatchOptions<'_>) -> Result<(), Error> {
        let trackers = self.sources.values().filter_map(|one| one.tracker.as_ref().ok());
        let longest = if trackers.clone().any(Tracker::is_settling) { Duration::ZERO } else { QUIET };
        let (asked, happened) = door.wait(trackers.map(Tracker::queue).collect(), longest)?;
        if let Some(question) = asked {
            let answer = self.answer(&question.spare);
            let is_new = answer.is_none();
            question.answer(&answer.flatten());
            if is_new {
                self.look_for_sources(options)?;
            }
        }
        let mut is_lost = false;
        for source in self.sources.values_mut() {
            source.go_on(happened, options);
            is_lost |= source.tracker.is_err() && Instant::now() >= source.again;
        }
        if is_lost {
            self.look_for_sources(options)?;
        }
        Ok(())
    }

    /// Returns the changes of a spare. The outer `None`: the spare is unknown.
    fn answer(&mut self, spare: &str) -> Option<KnownChanges> {
        let source = self.sources.get_mut(spare.split('/').next()?)?;
        let base = source.bases.get(spare)?;
        // The next round handles a lost tracker.
        let Ok(tracker) = &mut source.tracker else { return Some(None) };
        if tracker.catch_up().is_err() {
            return Some(None);
        }
        let mut changed: HashSet<&Path> = tracker.changed_since(base.moment).collect();
        changed.extend(base.directories.iter().map(PathBuf::as_path));
        // A check of everything is as fast.
        let are_most = changed.len() > (tracker.watched() / 2).max(64);
        Some((!are_most).then(|| changed.into_iter().map(Path::to_path_buf).collect()))
    }

    fn look_for_sources(&mut self, options: &mut WatchOptions<'_>) -> Result<(), Error> {
        let sets = self.home.sets(None)?;
        (self.is_wanted, self.looked) = (sets.iter().any(|set| set.watched), Instant::now());
        self.sources.retain(|id, _| sets.iter().any(|set| set.id == *id));
        for set in sets {
            // A template does not change.
            let SpareSource::Directory(path) = &set.definition.source else { continue };
            let watched = self.sources.entry(set.id.clone()).or_insert_with(|| WatchedSource::new(path.clone()));
            watched.take_in(&set, &self.budget, options)?;
        }
        Ok(())
    }
}

impl WatchedSource {
    fn new(path: PathBuf) -> Self {
        let now = Instant::now();
        Self { path, tracker: Err(UntrackedReason::Gone), bases: HashMap::new(), again: now, pause: QUIET }
    }

    /// Starts watching if necessary, and compares the source with the records of new spares.
    fn take_in(&mut self, set: &Set, budget: &Rc<WatchBudget>, options: &mut WatchOptions<'_>) -> Result<(), Error> {
        if self.tracker.is_err() && Instant::now() >= self.again {
            self.start(set, budget, options);
        }
        // The spares' file system may be mounted again.
        let Some(directory) = set.open_directory()? else { return Ok(()) };
        let found = spares_in(directory)?;
        self.bases.retain(|spare, _| found.iter().any(|one| one.id(set) == *spare));
        for one in found {
            let id = one.id(set);
            if self.bases.contains_key(&id) {
                continue;
            }
            match self.compare(set, &one, &options.cancel) {
                Ok(Some(base)) => {
                    (options.notify)(WatchNote::Knows { spare: &id });
                    self.bases.insert(id, base);
                }
                Err(CheckFailure::Error(Error::Interrupted)) => return Err(Error::Interrupted),
                // The claim finds out.
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn start(&mut self, set: &Set, budget: &Rc<WatchBudget>, options: &mut WatchOptions<'_>) {
        self.bases.clear();
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.again = Instant::now() + self.pause;
        let exclude = Exclusions::new(&set.definition.shape.exclude);
        self.tracker = match (Source::open(&self.path), exclude) {
            (Ok(source), Ok(exclude)) => Tracker::start(&source, exclude, budget),
            _ => Err(UntrackedReason::Gone),
        };
        (options.notify)(match &self.tracker {
            Ok(tracker) => WatchNote::Watching { source: &self.path, directories: tracker.watched() },
            Err(why) => WatchNote::Lost { source: &self.path, why: *why },
        });
    }

    /// Compares the source with a spare's record, after taking the moment: so no later change is missed.
    fn compare(
        &mut self,
        set: &Set,
        found: &SpareDirectory,
        cancel: &CancelToken,
    ) -> Result<Option<Base>, CheckFailure> {
        let Ok(tracker) = &mut self.tracker else { return Ok(None) };
        let Some(record) = found.record()? else { return Ok(None) };
        let source = Source::open(&self.path)?;
        let Ok(moment) = tracker.catch_up() else { return Ok(None) };
        // A watcher gets no events of mounts: an entry in a mount may equal its record, and differ after unmounting.
        let is_whole = || sys::mounts_below(source.directory()).is_ok_and(|mounts| mounts.is_empty());
        if fitness(found, &record.head, &source).is_err() || !is_whole() {
            return Ok(None);
        }
        let exclude = Exclusions::new(&set.definition.shape.exclude)?;
        let work = CheckRequest { source: &source, exclude: &exclude, only: None, threads: thread_count(None), cancel };
        let body = record.body(None).ok_or(CheckFailure::Damaged)?;
        let differences = check(&work, &body.bytes, record.head.entries)?;
        if !is_whole() {
            return Ok(None);
        }
        let mut directories: Vec<PathBuf> = differences.directories.into_keys().collect();
        // A file may change through a name that is not watched.
        directories.extend(differences.with_links);
        Ok(Some(Base { moment, directories }))
    }

    fn go_on(&mut self, happened: bool, options: &mut WatchOptions<'_>) {
        if let Ok(tracker) = &mut self.tracker {
            let mut known = tracker.catch_up();
            if known.is_ok() && (!happened || tracker.is_settling()) && tracker.is_unsettled() {
                tracker.check_writers();
                known = tracker.catch_up();
            }
            if let Err(why) = known {
                self.tracker = Err(why);
                if self.again.elapsed() > LONGEST_PAUSE {
                    self.pause = QUIET;
                }
                self.bases.clear();
                self.again = Instant::now() + self.pause;
                (options.notify)(WatchNote::Lost { source: &self.path, why });
            }
        }
    }
}
