//! The plot of a clone: check, probe, choose, stage, run, verify, publish, report.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod facts;
pub(crate) mod finish;
mod sample;
pub(crate) mod scrub;
pub(crate) mod stage;
pub(crate) mod staging;

use std::path::Path;
use std::time::Instant;

use crate::clone::check::{Checked, check};
use crate::clone::finish::{Made, finish};
use crate::clone::staging::Staging;
use crate::error::Error;
use crate::options::{CloneOptions, Requirement, Strategy};
use crate::report::{CloneReport, Plan, Refusal};
use crate::strategy::{self, Criteria, Failure, Job, Method, Outcome};
use crate::tree::fill::metadata::Created;
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::stable::watchable;
use facts::Facts;

/// Makes `dst` an independent, writable copy of `src` by the fastest strategy that these two places offer.
///
/// `dst` is exactly what will be there, never a directory to copy into; its parent must exist. It is absent (or as it was)
/// or complete at any time, whatever happens to this process. The source is never written.
///
/// # Errors
/// Nothing is left behind, whatever the error. [`Error::RequirementRefused`] when a requirement cannot be met.
pub fn clone_tree(src: &Path, dst: &Path, options: &CloneOptions) -> Result<CloneReport, Error> {
    let started = Instant::now();
    let checked = check(src, dst, options)?;
    let notes = Notes::default();
    let trash_waits = crate::clone::check::sweep_leftovers(&checked.place, &notes, options)?;
    let facts = Facts::from_places(&checked.source, checked.place.parent());
    let mut staging = Staging::reserve(&checked.place)?;
    let (method, refused, outcome) = run(&checked, facts, &mut staging, &notes, options)?;
    let made = Made { strategy: method.strategy(), refused, outcome, notes };
    let report = finish(&checked, staging, made, options)?;
    let trash_waits = trash_waits || report.trashed.is_some();
    Ok(CloneReport { trash_waits, elapsed: started.elapsed(), ..report })
}

type Ran = (&'static dyn Method, Vec<Refusal>, Outcome);

/// Runs the fastest method that accepts; should it decline after all, the next.
fn run(
    checked: &Checked,
    mut facts: Facts,
    staging: &mut Staging<'_>,
    notes: &Notes,
    options: &CloneOptions,
) -> Result<Ran, Error> {
    let criteria = Criteria::of(options);
    let mut created = Created { uid: 0, gid: 0, mask: 0 };
    let mut refused = Vec::new();
    loop {
        let (method, declined) = match in_one_call(&facts, &criteria, &refused) {
            Some(choice) => choice,
            None => {
                if staging.root().is_none() {
                    staging.make_directory()?;
                    created = facts.try_in(&checked.source, staging)?;
                }
                strategy::choose(&facts, &criteria, &refused)?
            }
        };
        refused = declined;
        let mut job = Job {
            source: &checked.source,
            dst_path: checked.place.path(),
            staging: &mut *staging,
            below: None,
            options,
            exclude: &checked.exclude,
            facts: &facts,
            notes,
            created,
            threads: thread_count(options.threads),
        };
        match method.run(&mut job) {
            Ok(outcome) => return Ok((method, refused, outcome)),
            Err(Failure::Error(error)) => return Err(error),
            Err(Failure::Refused(reason)) => refused.push(reason.by(method.strategy())),
        }
    }
}

/// The choice, where it is a method that makes the whole tree by itself: then nothing has to be tried with files first.
fn in_one_call(facts: &Facts, criteria: &Criteria, refused: &[Refusal]) -> Option<(&'static dyn Method, Vec<Refusal>)> {
    let (method, declined) = strategy::choose(facts, criteria, refused).ok()?;
    let whole = match method.strategy() {
        Strategy::Snapshot => true,
        Strategy::Clonefile => !criteria.excludes,
        _ => false,
    };
    whole.then_some((method, declined))
}

/// What [`clone_tree`] would use, and why nothing better. Tries as much, and makes nothing that stays.
pub fn plan(src: &Path, dst: &Path, options: &CloneOptions) -> Result<Plan, Error> {
    let Checked { source, place, .. } = check(src, dst, options)?;
    let mut facts = Facts::from_places(&source, place.parent());
    let mut staging = Staging::reserve(&place)?;
    staging.make_directory()?;
    facts.try_in(&source, &staging)?;
    let (method, refused) = strategy::choose(&facts, &Criteria::of(options), &[])?;
    if options.requires(Requirement::Stable) && method.strategy() != Strategy::Snapshot {
        watchable(&source, options.mounts)?;
    }
    Ok(Plan { strategy: method.strategy(), refused })
}
