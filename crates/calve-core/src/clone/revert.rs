//! Reverting a clone: what has changed in it since its state was recorded is removed, and cloned from the source again.
//!
//! An entry that has not changed keeps its change time, as docs/spares-exact.md explains for sources. Here it is the clone that is
//! compared, so that after a few changes the source need not be cloned as a whole again.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::finish::seal;
use crate::choice::{Choice, Strategy};
use crate::error::Error;
use crate::hidden::is_calves_own;
use crate::operation::Operation;
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::spare::check::{CheckFailure, CheckRequest, DirectoryChanges, SpareDifferences, check, node};
use crate::spare::record::{self, RecordDraft, RecordedIdentity, Writers, blocks, device};
use crate::spare::update::{UpdateRequest, update};
use crate::staging::{RootKind, Staging};
use crate::strategy::facts::Facts;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclusions;
use crate::tree::fill::contents::Contents;
use crate::tree::fill::metadata::NewFileDefaults;
use crate::tree::location::{DIRECTORY, Location};
use crate::tree::notes::Notes;
use crate::tree::pool::thread_count;
use crate::tree::source::Source;
use crate::tree::stable::Moment;

/// The state of a clone, by which [`revert`] finds the entries that have changed in it.
pub struct CloneState {
    device: u64,
    record: RecordDraft,
}

impl std::fmt::Debug for CloneState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CloneState").field("entries", &self.record.entries).finish_non_exhaustive()
    }
}

impl CloneState {
    /// Records the state of the directory `clone`, which is complete. Nothing may write to it, or have a file of it mapped, before this
    /// returns. After a revert, everything that changed since that began counts as changed, so that a write during it is found later.
    ///
    /// Returns `None` where the file system does not show every later change: on Linux, only btrfs, ext4 and XFS do.
    ///
    /// # Errors
    /// Fails if `clone` cannot be read, or has sockets, other file systems or subvolumes in it.
    pub fn record(clone: &Path, after: Option<&RevertReport>, cancel: &CancelToken) -> Result<Option<Self>, Error> {
        let made = Source::open(clone)?;
        let failed = |operation| move |errno| Error::io(operation, clone, errno);
        if made.single().is_some() {
            return Err(failed(Operation::OpenDirectory)(Errno::NOTDIR));
        }
        if !sys::shows_stores(made.directory()).map_err(failed(Operation::Open))? {
            return Ok(None);
        }
        let moment = match after {
            Some(reverted) => reverted.began,
            None => now(&made)?,
        };
        let options = CloneOptions { cancel: cancel.clone(), ..CloneOptions::default() };
        let record = record::take(&made, &Exclusions::new(&[])?, moment, Writers::None, &options)?;
        Ok(Some(Self { device: made.identity().0, record }))
    }
}

/// Returns the present time of the clone's file system: a change of an inode tells it, also one that changes nothing.
pub(super) fn now(made: &Source) -> Result<Moment, Error> {
    rustix::fs::fchmod(made.directory(), Mode::from_raw_mode(made.stat().st_mode & 0o7777))
        .and_then(|()| rustix::fs::fstat(made.directory()))
        .map(|stat| Moment::of(&stat))
        .map_err(|errno| Error::io(Operation::TellTime, made.path(), errno))
}

/// The options of a [`revert`]. The clone is otherwise as [`CloneOptions::default`] makes it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RevertOptions {
    /// The strategy of the clone: only [`Strategy::Copy`] permits copies where blocks could be shared.
    pub strategy: Choice,
    /// Worker threads, as in [`CloneOptions::threads`].
    pub threads: Option<NonZeroUsize>,
    /// Ends the work early, which leaves a part of it done.
    pub cancel: CancelToken,
}

/// The result of a [`revert`].
#[derive(Debug)]
#[non_exhaustive]
pub struct RevertReport {
    /// The number of entries that differed.
    pub entries: u64,
    began: Moment,
}

/// Makes `clone` again what it was when its state was recorded: a complete clone of the directory `src`, which has not changed since.
/// Removes every entry that has changed, and clones it from `src`, by copies only if `options` ask for these or there is no other way.
/// Nothing may write to `clone` meanwhile.
///
/// Returns `None` if `clone` has to be made anew: because more than a quarter of the entries differ, because files have several names, or
/// because directories were exchanged, mounted on or given attributes of the file system.
///
/// # Errors
/// Leaves a part of the work done, as it may if it returns `None`.
pub fn revert(
    clone: &Path,
    src: &Path,
    state: &CloneState,
    options: &RevertOptions,
) -> Result<Option<RevertReport>, Error> {
    let RevertOptions { strategy, threads, cancel } = options.clone();
    let options = &CloneOptions { strategy, threads, cancel, ..CloneOptions::default() };
    let (made, source) = (Source::open(clone)?, Source::open(src)?);
    if made.single().is_some() || made.identity() != (state.device, state.record.root.inode()) {
        return Ok(None);
    }
    let is_whole = sys::mounts_below(made.directory()).is_ok_and(|mounts| mounts.is_empty());
    let Some(blocks) = blocks(state.record.body()).filter(|_| is_whole) else { return Ok(None) };
    let began = now(&made)?;
    let exclude = Exclusions::new(&[])?;
    let threads = thread_count(options.threads);
    let work = CheckRequest { source: &made, exclude: &exclude, only: None, threads, cancel: &options.cancel };
    let mut differences = match check(&work, state.record.body(), state.record.entries) {
        Ok(differences) if differences.with_links.is_empty() => differences,
        Ok(_) | Err(CheckFailure::TooMuch | CheckFailure::Damaged | CheckFailure::Slow) => return Ok(None),
        Err(CheckFailure::Error(error)) => return Err(error),
    };
    let Some(methods) = UpdateMethods::find(&source, clone, options.strategy)? else { return Ok(None) };
    let usual = OriginalDirectories {
        inodes: blocks.iter().map(|block| (block.path, block.identity.inode())).collect(),
        flags: methods.directory_flags,
    };
    for (path, changes) in &mut differences.directories {
        match undoing(&made, &source, path, std::mem::take(changes), &usual)? {
            Some(undoing) => *changes = undoing,
            None => return Ok(None),
        }
    }
    let entries = differences.count;
    let is_complete = methods.update(&source, &made, differences, options)?;
    Ok(is_complete.then_some(RevertReport { entries, began }))
}

/// The ways of bringing a clone up to date.
pub(super) struct UpdateMethods {
    contents: Contents,
    created: NewFileDefaults,
    keeps_nocow: bool,
    /// The flags of a new directory there.
    directory_flags: Option<u32>,
}

impl UpdateMethods {
    /// Tries what can be done beside `clone`. Returns `None` where the strategy cannot.
    pub(super) fn find(source: &Source, clone: &Path, strategy: Choice) -> Result<Option<Self>, Error> {
        let destination = Location::of_destination(clone)?;
        let mut staging = Staging::reserve(&destination)?;
        staging.make_root(RootKind::Closed)?;
        let mut facts = Facts::between(source, destination.parent());
        let created = facts.try_in(source, &staging)?;
        let contents = match strategy {
            Choice::Only(Strategy::Copy) => Contents::Copy,
            Choice::Only(_) if facts.reflink.is_err() => return Ok(None),
            _ => facts.contents(),
        };
        let directory_flags = staging.root().map(sys::chosen_flags);
        Ok(Some(Self { contents, created, keeps_nocow: facts.may_inline, directory_flags }))
    }

    /// Makes the clone what the source is, where they differ. Returns false if something was left out or has changed meanwhile.
    pub(super) fn update(
        &self,
        source: &Source,
        clone: &Source,
        differences: SpareDifferences,
        options: &CloneOptions,
    ) -> Result<bool, Error> {
        let notes = Notes::default();
        let work = UpdateRequest {
            source,
            exclude: &Exclusions::new(&[])?,
            tree: clone.directory(),
            dst: clone.path(),
            contents: self.contents,
            strict: matches!(self.contents, Contents::Reflink { .. }),
            created: self.created,
            keeps_nocow: self.keeps_nocow,
            notes: &notes,
            options,
        };
        update(&work, differences)?;
        // Telling the time has changed the root, so that its metadata were taken from it.
        seal(source, clone.directory(), &options.keep, &notes, clone.path())?;
        let told = notes.tell();
        Ok(told.skipped.is_empty() && told.changed.is_empty() && told.warnings.is_empty())
    }
}

/// The directories of a clone as they were made.
struct OriginalDirectories<'a> {
    /// The inode of each.
    inodes: HashMap<&'a Path, u64>,
    /// The flags of a new directory there.
    flags: Option<u32>,
}

/// Returns the work in one directory of a clone that undoes these changes. `None` if it is another directory than the one that was made, or
/// was given flags.
fn undoing(
    made: &Source,
    source: &Source,
    path: &Path,
    changes: DirectoryChanges,
    usual: &OriginalDirectories<'_>,
) -> Result<Option<DirectoryChanges>, Error> {
    let node = node(path);
    let failed = |tree: &Source, operation| {
        let path = tree.path().join(path);
        move |errno| Error::io(operation, path, errno)
    };
    let src = node.open_source(source.directory()).map_err(failed(source, Operation::OpenDirectory))?;
    let mut names: HashSet<CString> = changes.made.into_iter().map(|(_, name)| name).chain(changes.gone).collect();
    match node.open(made.directory(), DIRECTORY) {
        Ok(directory) => {
            let stat = rustix::fs::fstat(&directory).map_err(failed(made, Operation::Stat))?;
            let is_same = usual.inodes.get(path) == Some(&RecordedIdentity::of(&stat).inode());
            if !is_same
                || device(&stat) != made.identity().0
                || usual.flags != Some(sys::chosen_flags(directory.as_fd()))
            {
                return Ok(None);
            }
            let hidden = calves_own(directory.as_fd()).map_err(failed(made, Operation::ReadDirectory))?;
            names.extend(hidden);
        }
        // The directory above has it among what is to be made.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
        Err(errno) => return Err(failed(made, Operation::OpenDirectory)(errno)),
    }
    let mut undoing = DirectoryChanges::default();
    for name in names {
        match rustix::fs::statat(&src, &*name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => undoing.made.push((FileType::from_raw_mode(stat.st_mode), name)),
            Err(Errno::NOENT) => undoing.gone.push(name),
            Err(errno) => {
                let path = source.path().join(path).join(OsStr::from_bytes(name.to_bytes()));
                return Err(Error::io(Operation::Stat, path, errno));
            }
        }
    }
    Ok(Some(undoing))
}

/// Returns the names in a directory that only Calve gives: no clone has them, and the check passes them over.
fn calves_own(directory: BorrowedFd<'_>) -> sys::Result<Vec<CString>> {
    let mut buffer = ListingBuffer::new();
    let mut listing = Listing::new(directory, &mut buffer)?;
    let mut found = Vec::new();
    while let Some(entry) = listing.next() {
        let name = entry?.name;
        if is_calves_own(name.to_bytes()) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}
