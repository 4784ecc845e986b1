//! `clonefile`: macOS, one call for the whole tree. With excluded entries: one call for each of the largest subtrees that have none,
//! and the per-file engine for the directories above them.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{Failure, Job, Method, Outcome, Reason, Wish};
use crate::error::Error;
use crate::options::Strategy;
use crate::probe::Facts;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclude;
use crate::tree::fill::Files;
use crate::tree::node::Node;

pub(super) struct Clonefile;

impl Method for Clonefile {
    fn strategy(&self) -> Strategy {
        Strategy::Clonefile
    }

    fn accepts(&self, facts: &Facts, _: &Wish) -> Result<(), Reason> {
        facts.clonefile.clone()
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        if !job.exclude.is_empty() {
            return in_parts(job);
        }
        match sys::clone_directory(job.source.directory(), job.staging.parent(), job.staging.name()) {
            Ok(()) => job.staging.adopt_directory()?,
            Err(errno) => {
                let failed = || Failure::Error(Error::io("clone directory", job.source.path(), errno));
                return Err(refusal(errno).map_or_else(failed, Failure::Refused));
            }
        }
        let Some(root) = job.staging.root() else { return Err(Failure::Refused(Reason::new("no staged directory"))) };
        let whole = super::close_to_others(root)
            .map_err(|errno| Error::io("set the mode of the staged tree of", job.dst_path, errno))?;
        job.notes.warn("clonefile_drops", None, DROPPED.into());
        Ok(Outcome { entries: None, bytes: None, whole: Some(whole), started: None })
    }
}

/// What the call does not keep (clonefile(2), and what others measured).
const DROPPED: &str = "clonefile drops set-user-ID bits, makes hard links separate files, and copies sockets";

/// The reasons for which the call declines; anything else is a failure.
fn refusal(errno: Errno) -> Option<Reason> {
    Some(match errno {
        Errno::XDEV => {
            Reason::new("source and destination, or a mount below the source, are on different file systems")
        }
        Errno::NOTSUP | Errno::NOSYS => Reason::new("the file system has no clonefile"),
        _ => return None,
    })
}

fn in_parts(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    if job.staging.root().is_none() {
        job.staging.make_directory()?;
    }
    let partial = partial_directories(job.source.directory(), job.exclude)
        .map_err(|(path, errno)| Error::io("read directory", job.source.path().join(path), errno))?;
    job.notes.warn("clonefile_drops", None, DROPPED.into());
    let outcome = super::copy::per_file(job, Files::Clonefile { partial: &partial }, false)?;
    // The calls for whole subtrees do not count what is in them.
    Ok(Outcome { entries: None, bytes: None, ..outcome })
}

/// The directories, relative to the root, that have an excluded entry somewhere below: those that cannot be cloned in one call.
fn partial_directories(root: BorrowedFd<'_>, exclude: &Exclude) -> Result<HashSet<PathBuf>, (PathBuf, Errno)> {
    let mut partial = HashSet::new();
    let mut buffer = ListingBuffer::new();
    let mut pending = vec![Node::root()];
    while let Some(node) = pending.pop() {
        let failed = |errno| (node.path(), errno);
        let directory = node.open(root, OFlags::RDONLY).map_err(failed)?;
        let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
        while let Some(entry) = listing.next() {
            let entry = entry.map_err(failed)?;
            let path = node.path_of(entry.name);
            let is_directory = entry.kind == FileType::Directory;
            if exclude.matches(&path, is_directory) {
                partial.extend(path.ancestors().skip(1).map(PathBuf::from));
            } else if is_directory {
                pending.push(Node::child(&node, entry.name));
            }
        }
    }
    Ok(partial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_subtrees_without_an_excluded_entry_stay_whole() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["whole/deep/deeper", "mixed/clean", "mixed/dirty", "build"] {
            fs_err::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in ["whole/deep/deeper/a.js", "mixed/clean/a.js", "mixed/dirty/a.log", "build/a.js"] {
            fs_err::write(folder.path().join(path), path).unwrap();
        }
        let exclude = Exclude::new(&["*.log".into(), "/build/".into()]).unwrap();
        let root = rustix::fs::open(folder.path(), OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        let partial = partial_directories(root.as_fd(), &exclude).unwrap();
        let expected = ["", "mixed", "mixed/dirty"].map(PathBuf::from);
        assert_eq!(partial, HashSet::from(expected));
    }
}
