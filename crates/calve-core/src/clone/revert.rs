//! Reverting a clone: changes since its state was recorded are removed, and cloned from the source again.
//!
//! An unchanged entry keeps its change time, as docs/atomicity.md explains for sources. Here the clone is checked, so
//! that a few changes do not require cloning all of the source again.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::AsFd as _;
use std::path::Path;

use super::update::{UpdateMethods, now};
use crate::claim::check::{DirectoryChanges, node};
use crate::claim::record::{RecordDraft, Writers, blocks, device};
use crate::error::{Error, IoContext};
use crate::options::CloneOptions;
use crate::progress::CancelToken;
use crate::sys::{self};
use crate::tree::location::DIRECTORY;
use crate::tree::source::Source;
use crate::tree::stable::Moment;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;

/// The recorded state of a clone, by which [`revert`] finds its changes.
#[derive(Debug)]
pub struct CloneState(RecordDraft);

impl CloneState {
    /// Records the state of the complete directory `clone`. Nothing may write to it or have a file of it mapped before
    /// this returns. After a revert, entries changed since its start count as changed, which finds writes during it.
    ///
    /// Returns `None` where the file system does not show every later change: on Linux, only btrfs, ext4 and XFS do.
    /// Fails if `clone` contains sockets, other file systems or subvolumes.
    pub fn record(clone: &Path, after: Option<&RevertReport>, cancel: &CancelToken) -> Result<Option<Self>, Error> {
        let made = Source::open(clone)?;
        made.expect_directory(Operation::OpenDirectory)?;
        if !sys::shows_stores(made.directory()).io(Operation::Open, clone)? {
            return Ok(None);
        }
        let moment = match after {
            Some(reverted) => reverted.began,
            None => now(&made)?,
        };
        Ok(Some(Self(RecordDraft::take(&made, moment, Writers::None, cancel)?)))
    }
}

#[derive(Debug)]
pub struct RevertReport {
    /// The number of entries that differed.
    pub entries: u64,
    began: Moment,
}

/// Makes `clone` again a complete clone of the directory `src`, which has not changed since the clone's state was
/// recorded. Removes every changed entry and clones it from `src`, by copying only if the options ask for
/// [`Strategy::Copy`] or there is no other way. Uses only the options `strategy`, `threads` and `cancel`, and otherwise
/// the defaults ([`CloneOptions::default`]). Nothing may write to `clone` meanwhile.
///
/// Returns `None` if `clone` must be made anew: more than a quarter of the entries differ, files have several names, or
/// directories were exchanged, mounted on, or given attributes of the file system.
///
/// # Errors
/// Leaves a part of the work done, as it may if it returns `None`.
pub fn revert(
    clone: &Path,
    src: &Path,
    state: &CloneState,
    options: &CloneOptions,
) -> Result<Option<RevertReport>, Error> {
    let CloneOptions { strategy, threads, cancel, .. } = options.clone();
    let options = &CloneOptions { strategy, threads, cancel, ..CloneOptions::default() };
    let (made, source) = (Source::open(clone)?, Source::open(src)?);
    let Some(blocks) = blocks(&state.0.body).filter(|_| state.0.is(&made)) else { return Ok(None) };
    let began = now(&made)?;
    let Some(mut differences) = state.0.differences(&made, options)? else { return Ok(None) };
    let Some(methods) = UpdateMethods::find(&source, clone, options.strategy)? else { return Ok(None) };
    let usual = OriginalDirectories {
        inodes: blocks.iter().map(|block| (block.path, block.identity.inode)).collect(),
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

struct OriginalDirectories<'a> {
    inodes: HashMap<&'a Path, u64>,
    /// The flags of a new directory there.
    flags: Option<u32>,
}

/// Returns the work that undoes one directory's changes. `None` if the directory is another one, or was given flags.
fn undoing(
    made: &Source,
    source: &Source,
    path: &Path,
    changes: DirectoryChanges,
    usual: &OriginalDirectories<'_>,
) -> Result<Option<DirectoryChanges>, Error> {
    let node = node(path);
    let (src_path, made_path) = (source.path().join(path), made.path().join(path));
    let src = node.open_source(source.directory()).io(Operation::OpenDirectory, &src_path)?;
    let mut names: HashSet<CString> = changes.made.into_iter().map(|(_, name)| name).chain(changes.gone).collect();
    let directory =
        sys::unless_gone(node.open(made.directory(), DIRECTORY)).io(Operation::OpenDirectory, &made_path)?;
    // If it is missing, the directory above lists it among the entries to make.
    if let Some(directory) = directory {
        let stat = rustix::fs::fstat(&directory).io(Operation::Stat, &made_path)?;
        let is_same = usual.inodes.get(path) == Some(&stat.st_ino) && device(&stat) == made.identity().0;
        if !is_same || usual.flags != Some(sys::chosen_flags(directory.as_fd())) {
            return Ok(None);
        }
        // No clone has Calve's own names, and the check passes over them.
        let listed = sys::list(directory.as_fd()).io(Operation::ReadDirectory, &made_path)?.into_iter();
        names.extend(listed.map(|(name, _)| name).filter(|name| is_calves_own(name.to_bytes())));
    }
    let mut undoing = DirectoryChanges::default();
    for name in names {
        let found = sys::find_at(&src, &*name);
        match found.map_err(|errno| Error::io(Operation::Stat, src_path.join(sys::path(&name)), errno))? {
            Some(stat) => undoing.made.push((sys::kind(stat), name)),
            None => undoing.gone.push(name),
        }
    }
    Ok(Some(undoing))
}
