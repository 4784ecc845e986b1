//! Adding, listing, pausing and removing sets of spares.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustix::io::Errno;

use super::build;
use super::set::{Readiness, SpareOptions, SpareOrigin, SpareSet, SpareState, Spares};
use super::watch;
use crate::claim::ask::ask;
use crate::claim::store::{Definition, Home, Set, Shape, SpareSource, WATCHED};
use crate::claim::{hand_over, record};
use crate::error::{Error, IoContext};
use crate::options::{CloneOptions, SpareUse};
use crate::progress::CancelToken;
use crate::remove::delete::Deletion;
use crate::report::Offer;
use crate::strategy::criteria::RefusalReason;
use crate::tree::location::{Location, canonical};
use crate::tree::source::Source;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::remedy::Remedy;
use crate::vocabulary::strategy::Strategy;

impl Spares {
    /// Requests spares of a directory or template, which [`Self::refill`] builds. Fails with [`Error::NoSpare`] if they
    /// would be useless.
    pub fn add(&self, origin: &SpareOrigin, options: &SpareOptions) -> Result<SpareSet, Error> {
        let src = origin.path();
        let no = |reason| Error::NoSpare { path: src.to_path_buf(), reason };
        let source = Source::open(src)?;
        let shape = Shape::from_options(&options.like, options.staged)
            .ok_or_else(|| no("what it leaves out is decided by a function"))?;
        let home = Home::create(&self.home)?;
        let real = canonical(src)?;
        let parent = match &options.at {
            Some(at) => Some(canonical(at)?),
            None => {
                let stat = rustix::fs::fstat(&home.directory).io(Operation::Stat, &self.home)?;
                let beside = origin.place(&real).ok_or_else(|| no("it is the root of the file system"))?;
                (record::device(&stat) != source.identity().0).then(|| beside.to_path_buf())
            }
        };
        let of = match origin {
            SpareOrigin::Template(template) => SpareSource::Template(template.name.clone()),
            SpareOrigin::Directory(_) => SpareSource::Directory(real),
        };
        if options.watched {
            watch::possible(&self.home)?;
        }
        let definition = Definition { source: of, parent, count: options.count.unwrap_or(1).max(1), shape };
        let parent = definition.parent.as_ref();
        let inside = parent.map_or_else(|| self.home.join("set"), |parent| parent.join(".calve-spares"));
        build::refuse(&source, &Location::of_destination(&inside)?, options.staged)?;
        let is_new = home.find(&definition)?.is_none();
        let mut set = home.define(&definition)?;
        if let Err(error) = set.create_directory() {
            if is_new {
                home.undefine(&set)?;
            }
            return Err(error);
        }
        set.pause(false)?;
        if options.watched {
            set.records.write(WATCHED, b"")?;
            set.watched = true;
        }
        set.paused = false;
        // Notifies a running watcher.
        ask(home.path(), &set.id);
        Ok(SpareSet { is_new, ..self.describe(&set, Some(&source))? })
    }

    /// Forgets a set just made by [`Self::add`] if it has no spare and, by the `failures` of [`Self::refill`], will get
    /// none until its source or place changes.
    pub fn forget_unbuilt(&self, set: &SpareSet, failures: &[(SpareSource, Error)]) -> Result<(), Error> {
        let Some(home) = Home::open(&self.home)?.filter(|_| set.is_new) else { return Ok(()) };
        if failures.is_empty() || failures.iter().any(|(_, error)| passes(error)) {
            return Ok(());
        }
        for found in home.sets(Some(&set.source))?.iter().filter(|found| found.directory_path() == set.directory) {
            if self.describe(found, None)?.spares.is_empty() {
                home.undefine(found)?;
            }
        }
        Ok(())
    }

    /// Predicts, without checking entries, whether a clone of `src` in `parent` uses a spare, and what prevents it.
    pub fn offer(&self, src: &Path, parent: &Path) -> Result<Offer, Error> {
        let source = Source::open(src)?;
        let inside = Location::of_destination(&parent.join("spare"))?;
        let options = CloneOptions { spares: Some(SpareUse::kept_in(&self.home)), ..CloneOptions::default() };
        let is_read_only = rustix::fs::fstatvfs(inside.parent())
            .is_ok_and(|status| status.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY));
        let refused = match hand_over::available(&source, inside.parent(), &options) {
            Ok(()) if is_read_only => Some(RefusalReason::new("the destination's file system is mounted read-only")),
            Ok(()) => None,
            Err(Some(reason)) => Some(reason),
            Err(None) => Some(match build::unfit(&source, false) {
                Err(Error::NoSpare { reason, .. }) => RefusalReason::new(reason),
                _ => hand_over::none_of_source().with_remedy(Remedy::KeepSpares(src.to_path_buf())),
            }),
        };
        let refused = refused.map(|reason| reason.by(Strategy::Spare));
        Ok(Offer { strategy: Strategy::Spare, refused })
    }

    /// Returns whether spares of the directory `src` are requested: of all of it or, if `made_without` is not empty,
    /// for assembled trees ([`SpareOptions::staged`]) without the entries that match it.
    pub fn are_wanted(&self, src: &Path, made_without: &[String]) -> Result<bool, Error> {
        let Ok(real) = src.canonicalize() else { return Ok(false) };
        let whole = Shape::of_root(made_without);
        let sets = Home::sets_at(&self.home, Some(&SpareSource::Directory(real)))?;
        Ok(sets.iter().any(|set| set.definition.shape == whole))
    }

    /// Returns whether a watcher knows the changes since a spare was built: not right after all of `source` was read.
    pub fn are_known(&self, source: &SpareSource) -> Result<bool, Error> {
        for set in Home::sets_at(&self.home, Some(source))? {
            for found in set.spares()? {
                if ask(&self.home, &found.id(&set)).is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the unreadable records of sets: damaged, or of another version.
    pub fn unreadable(&self) -> Result<Vec<PathBuf>, Error> {
        Home::open(&self.home)?.map_or_else(|| Ok(Vec::new()), |home| home.unreadable_sets())
    }

    /// Returns all sets. `resolve` finds the directory of a source.
    pub fn list(&self, resolve: impl Fn(&SpareSource) -> Option<SpareOrigin>) -> Result<Vec<SpareSet>, Error> {
        let mut sets = Vec::new();
        for set in Home::sets_at(&self.home, None)? {
            let origin = resolve(&set.definition.source);
            let source = origin.as_ref().and_then(|origin| Source::open(origin.path()).ok());
            let mut described = self.describe(&set, source.as_ref())?;
            let usable = described.spares.iter().filter(|spare| spare.state != Readiness::Stale).count();
            if let Some(origin) = origin.filter(|_| (usable as u64) < described.count) {
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
            count: set.definition.count as u64,
            is_paused: set.paused,
            is_watched: set.watched,
            directory: set.directory_path(),
            is_away: matches!(set.check_mounted(), Err(Error::SparesNotMounted { .. })),
            is_new: false,
            exclude: set.definition.shape.exclude.clone(),
            next_bytes: None,
            spares: Vec::new(),
        };
        for found in set.spares()? {
            let id = found.id(set);
            let busy = found.lock()?.is_none();
            let head = found.head()?;
            let head = head.as_ref();
            let reason = match (head, source) {
                _ if busy => None,
                (None, _) if found.has_tree() => Some("a clone could not use it"),
                (None, _) => Some("it was not finished"),
                (Some(_), None) => Some("the source is missing"),
                (Some(head), Some(source)) => hand_over::fitness(&found, head, source).err(),
            };
            let fit = if busy { Readiness::Building } else { Readiness::Ready };
            described.spares.push(SpareState {
                id,
                state: if reason.is_some() { Readiness::Stale } else { fit },
                reason,
                built: head.map(|head| UNIX_EPOCH + Duration::from_nanos(head.built_ns)),
                entries: head.map(|head| head.entries),
                apparent_bytes: head.map(|head| head.apparent_bytes),
                written_bytes: head.map(|head| head.written_bytes),
            });
        }
        Ok(described)
    }

    /// Pauses or resumes building spares of a source. Returns the number of its sets.
    pub fn pause(&self, source: &SpareSource, paused: bool) -> Result<usize, Error> {
        let sets = Home::sets_at(&self.home, Some(source))?;
        sets.iter().try_for_each(|set| set.pause(paused))?;
        Ok(sets.len())
    }

    /// Forgets a source and deletes its spares. Waits for a running builder, which would leave its spare behind if
    /// killed; one in the background gives up. Returns the number of sets.
    pub fn remove(&self, source: &SpareSource, cancel: &CancelToken) -> Result<usize, Error> {
        let Some(home) = Home::open(&self.home)? else { return Ok(0) };
        let sets = home.sets(Some(source))?;
        sets.iter().try_for_each(Set::check_mounted)?;
        sets.iter().try_for_each(|set| set.pause(true))?;
        let _lock = home.lock_soon()?;
        let deletion = Deletion::new(None, &Arc::default(), cancel);
        for set in &sets {
            build::sweep(set, None, &deletion)?;
            home.undefine(set)?;
            // Notifies a running watcher.
            ask(home.path(), &set.id);
        }
        Ok(sets.len())
    }

    /// Returns whether clones should start a watcher.
    pub fn want_watcher(&self) -> Result<bool, Error> {
        Ok(Home::sets_at(&self.home, None)?.iter().any(|set| set.watched))
    }
}

/// Returns whether the error may pass by itself.
fn passes(error: &Error) -> bool {
    let is_full = [Errno::NOSPC, Errno::DQUOT].iter().any(|errno| error.is_errno(*errno));
    is_full
        || match error {
            Error::NoRoom { .. } | Error::Interrupted => true,
            Error::NoSpare { reason, .. } => *reason == build::NO_ROOM,
            _ => false,
        }
}
