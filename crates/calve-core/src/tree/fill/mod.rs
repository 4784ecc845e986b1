//! Filling an empty staged tree from a source: the per-file engine of `reflink`, `copy`, `hardlink` and `clonefile`.
//!
//! A task is a directory. A worker reads it once, makes every entry in it, gives the copy its final metadata, and only
//! then goes into the directories below: nothing is visited twice, and no directory stays open for its children. Tasks
//! hold names, not descriptors: a descriptor is private to its worker, and can be opened again from the root.

pub(crate) mod contents;
mod descend;
mod directory;
pub(crate) mod entry;
mod groups;
mod hard_links;
mod log;
pub(crate) mod metadata;
mod request;
pub(crate) mod room;
mod set_tries;
mod sets;
mod worker;

use std::ffi::CString;
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags};

use self::contents::Flush;
use self::groups::AllocationGroups;
use self::hard_links::Links;
pub(crate) use self::request::{Files, Fill, FillPart, FillTally};
use self::set_tries::SetTries;
use self::worker::{ClosedDirectory, FillState, FillWorker, LargeDirectory, Task};
use super::location::identity;
use super::node::{Names, Node};
use super::pool::Pool;
use crate::error::{Error, IoContext};
use crate::sys;
use crate::vocabulary::operation::Operation;

/// Fills the empty directory `dst_root`. Its own metadata is left to the caller, who publishes it. With `parts`, makes
/// only these entries of existing directories, and gives those directories their metadata.
pub(crate) fn fill(fill: &Fill<'_>, parts: Option<Vec<FillPart>>) -> Result<FillTally, Error> {
    let staged = rustix::fs::fstat(fill.dst_root).io(Operation::Stat, fill.dst_path)?;
    let shared = FillState {
        links: Links::default(),
        flush: Flush::default(),
        groups: AllocationGroups::new(fill.dst_root, fill.threads),
        staged: identity(&staged),
        closed: Mutex::default(),
        sets: SetTries::begin(),
    };
    let pool = Pool::new(fill.threads, fill.options.cancel.clone());
    let first = match (fill.single, parts) {
        (Some((name, kind)), _) => Task::Single { name: name.to_owned(), kind },
        (None, None) => {
            // The empty name stands for the root.
            let root = Names::from([(FileType::Directory, CString::default())]);
            Task::Directories { parent: Node::root(), names: root }
        }
        (None, Some(parts)) => {
            for FillPart { node, stat, names } in parts {
                pool.give(Task::Entries { large: LargeDirectory::new(node, stat), names });
            }
            Task::Directories { parent: Node::root(), names: Names::default() }
        }
    };
    let work = |pool: &Pool<Task>| {
        sys::private_descriptors(&[fill.src_root, fill.dst_root]);
        let mut worker = FillWorker::new(fill, &shared, pool);
        while let Some(task) = pool.next() {
            if let Err(error) = worker.run(task) {
                pool.fail(error);
            }
        }
        worker.tally
    };
    let tallies = log::forced_during(fill.dst_root, fill.options.internal.latency, || pool.run(first, work))?;
    let closed = shared.closed.into_inner().unwrap_or_else(PoisonError::into_inner);
    close_directories(fill, closed)?;
    Ok(tallies.into_iter().fold(FillTally::default(), FillTally::plus))
}

/// Sets the held-back modes and flags, deepest first.
fn close_directories(fill: &Fill<'_>, mut closed: Vec<ClosedDirectory>) -> Result<(), Error> {
    closed.sort_by_key(|one| std::cmp::Reverse(one.node.path().components().count()));
    let keeper = fill.keeper();
    for ClosedDirectory { node, stat, flags } in closed {
        if fill.options.internal.is_left_open(|| node.path()) {
            continue;
        }
        let failed = |errno| Error::io(Operation::SetMode, fill.dst_path.join(node.path()), errno);
        let directory = node.open(fill.dst_root, OFlags::RDONLY).map_err(failed)?;
        rustix::fs::fchmod(&directory, Mode::from_raw_mode(stat.st_mode & 0o7777)).map_err(failed)?;
        keeper.set_flags(directory.as_fd(), flags, &stat, &|| node.path());
    }
    Ok(())
}
