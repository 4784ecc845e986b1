//! When the next spare is built: by one process of a user at a time, and in the background only while the machine has time for it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::build::{build, sweep};
use super::store::{Home, Set, SpareSource, spares};
use super::{RefillOptions, RefillReport, Spares};
use crate::error::Error;
use crate::options::Background;
use crate::remove::delete::Deletion;
use crate::source::Source;
use crate::sys;

impl Spares {
    /// Builds the spares that are missing, in all sets that are not paused, after deleting those that are of no use any more. Only one
    /// process of a user does so at a time. In the background another one waits for it, and any further one leaves the work to that.
    ///
    /// # Errors
    /// Fails when the store cannot be used, or the caller cancels. What stands in the way of a single spare is in the report.
    pub fn refill(&self, options: &RefillOptions) -> Result<RefillReport, Error> {
        let mut report = RefillReport::default();
        let Some(home) = Home::open(&self.home)? else { return Ok(report) };
        if options.background == Background::Yes {
            sys::lower_priority();
        }
        let Some(_lock) = turn(&home, options)? else { return Ok(report) };
        for set in home.sets(None)? {
            if let Err(error) = one(&set, options, &mut report) {
                if matches!(error, Error::Interrupted) {
                    return Err(error);
                }
                report.failures.push((set.definition.source.clone(), error));
            }
        }
        Ok(report)
    }
}

/// Waits for this process's turn. `None` if another one waits already, which will do the work.
fn turn(home: &Home, options: &RefillOptions) -> Result<Option<OwnedFd>, Error> {
    if options.background == Background::No {
        return home.lock(true);
    }
    let Some(waiting) = home.wait_in_line()? else { return Ok(None) };
    let lock = home.lock(true)?;
    // What is claimed from now on is seen by whoever comes next.
    drop(waiting);
    Ok(lock)
}

fn one(set: &Set, options: &RefillOptions, report: &mut RefillReport) -> Result<(), Error> {
    if options.only.as_ref().is_some_and(|only| *only != set.definition.source) {
        return Ok(());
    }
    let path = (options.resolve)(&set.definition.source);
    let source = path.as_deref().and_then(|path| Source::open(path).ok());
    let deletion = Deletion::new(None, &options.progress, &options.cancel);
    report.removed += sweep(set, source.as_ref(), &deletion)?;
    let path = path.ok_or_else(|| Error::Missing(named(&set.definition.source)))?;
    while !set.paused && set.is_defined() && ready(set)? < set.definition.count {
        if options.background == Background::Yes && !calm(&options.cancel) {
            return Ok(());
        }
        build(set, &path, &options.cancel, &options.progress)?;
        report.built += 1;
    }
    Ok(())
}

fn named(source: &SpareSource) -> PathBuf {
    match source {
        SpareSource::Directory(path) => path.clone(),
        SpareSource::Template(name) => format!("@{name}").into(),
    }
}

/// How many spares of a set are ready.
fn ready(set: &Set) -> Result<usize, Error> {
    use std::os::fd::AsFd;
    let Some(place) = set.place()? else { return Ok(0) };
    let mut count = 0;
    for found in spares(place.as_fd(), &set.place_path())? {
        count += usize::from(found.head()?.is_some());
    }
    Ok(count)
}

/// Waits until the machine has time, for some minutes at most. Returns false if it never has.
fn calm(cancel: &crate::Cancel) -> bool {
    const LONGEST: Duration = Duration::from_secs(300);
    let end = Instant::now() + LONGEST;
    while sys::is_busy() {
        if Instant::now() > end || cancel.is_cancelled() {
            return false;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    true
}
