//! Builds missing spares: one process per user at a time, in the background only while the machine has time for it.

mod pace;

use std::sync::Arc;

use rustix::fs::FlockOperation;

use self::pace::RefillPace;
use super::build::{build, sweep};
use super::set::{SpareOrigin, Spares};
use crate::claim::ask::ask;
use crate::claim::store::{Home, Set, SpareSource};
use crate::error::Error;
use crate::options::Background;
use crate::progress::{CancelToken, Progress};
use crate::remove::delete::Deletion;
use crate::sys;
use crate::tree::held_lock::HeldLock;
use crate::tree::source::Source;

/// The options of [`Spares::refill`].
pub struct RefillOptions {
    /// Finds the directory of a source, if it still exists.
    pub resolve: fn(&SpareSource) -> Option<SpareOrigin>,
    /// Builds the spares of this source only.
    pub only: Option<SpareSource>,
    /// [`Background::Yes`]: lowest priority, and waits while the machine is busy. For a process that does nothing else.
    pub background: Background,
    /// Counters that another thread may read.
    pub progress: Arc<Progress>,
    /// Ends the work early.
    pub cancel: CancelToken,
}

/// The result of [`Spares::refill`].
#[derive(Debug, Default)]
pub struct RefillReport {
    /// The number of spares built.
    pub built: u64,
    /// The number of unfinished or useless spares deleted.
    pub removed: u64,
    /// Sources whose spares could not be built, and why.
    pub failures: Vec<(SpareSource, Error)>,
}

impl Spares {
    /// Deletes useless spares, and builds the missing ones of all sets that are not paused. One process of a user works
    /// at a time. In the background, a second one waits for it, and any further one leaves the work to that.
    ///
    /// # Errors
    /// Fails if the store is unusable or the caller cancels. Failures of single spares are in the report.
    pub fn refill(&self, options: &RefillOptions) -> Result<RefillReport, Error> {
        let mut report = RefillReport::default();
        let Some(home) = Home::open(&self.home)? else { return Ok(report) };
        if options.background == Background::Yes {
            sys::lower_priority();
        }
        // In the background, others get their turn after each spare, and the load is checked again.
        while let Some(lock) = turn(&home, options)? {
            let built = all(&home, options, &mut report)?;
            drop(lock);
            if !built || options.background == Background::No {
                break;
            }
        }
        Ok(report)
    }
}

/// Waits for this process's turn. `None` if another one already waits to do the work, or the machine stays busy.
fn turn(home: &Home, options: &RefillOptions) -> Result<Option<HeldLock>, Error> {
    if options.background == Background::No {
        return home.lock_soon();
    }
    // The next process in line sees all claims after its release.
    let Some(_waiting) = home.take(".waiting", FlockOperation::NonBlockingLockExclusive)? else { return Ok(None) };
    // By path: an open directory stays usable after it is moved or its file system is unmounted.
    let is_wanted = || Home::sets_at(home.path(), None).is_ok_and(|sets| sets.iter().any(|set| !set.paused));
    let may_go_on = || !options.cancel.is_cancelled() && is_wanted();
    if pace::stand_still(&mut pace::LoadSample::now(), pace::LONGEST_BEFORE, may_go_on) {
        home.lock()
    } else {
        Ok(None)
    }
}

/// Refills every set, in the background until one spare is built. Returns whether one was.
fn all(home: &Home, options: &RefillOptions, report: &mut RefillReport) -> Result<bool, Error> {
    let before = report.built;
    for set in home.sets(None)? {
        match refill_set(home, &set, options, report) {
            Ok(()) => {}
            Err(error @ Error::Interrupted) => return Err(error),
            Err(error) => report.failures.push((set.definition.source.clone(), error)),
        }
        if options.background == Background::Yes && report.built > before {
            break;
        }
    }
    Ok(report.built > before)
}

fn refill_set(home: &Home, set: &Set, options: &RefillOptions, report: &mut RefillReport) -> Result<(), Error> {
    if options.only.as_ref().is_some_and(|only| *only != set.definition.source) {
        return Ok(());
    }
    let origin = (options.resolve)(&set.definition.source);
    let source = origin.as_ref().and_then(|origin| Source::open(origin.path()).ok());
    let deletion = Deletion::new(None, &options.progress, &options.cancel);
    report.removed += sweep(set, source.as_ref(), &deletion)?;
    set.check_mounted()?;
    // Nothing is made without the source: the spares' directory may be the mount point of its file system.
    let (Some(origin), Some(_)) = (origin, source) else {
        return Err(Error::Missing(set.definition.source.name()));
    };
    while !set.paused && ready(set)? < set.definition.count {
        let cancel = match options.background {
            Background::No => options.cancel.clone(),
            Background::Yes => options.cancel.with_pace(Arc::new(RefillPace::new(home, set, &options.cancel)?)),
        };
        match build(set, &origin, &cancel, &options.progress) {
            // The machine stays busy, or the spare is no longer wanted.
            Err(Error::Interrupted) if !options.cancel.is_cancelled() => break,
            built => built?,
        }
        report.built += 1;
        // Notifies a running watcher, whose answer does not matter.
        ask(home.path(), &set.id);
        if options.background == Background::Yes {
            break;
        }
    }
    Ok(())
}

fn ready(set: &Set) -> Result<usize, Error> {
    let mut count = 0;
    for found in set.spares()? {
        count += usize::from(found.head()?.is_some());
    }
    Ok(count)
}
