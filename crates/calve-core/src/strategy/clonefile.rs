//! `clonefile`: macOS, one call for the whole tree. If the tree is large or has excluded entries or access control
//! lists: one call for each largest possible subtree, and the per-file engine for the directories above.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::criteria::RefusalReason;
use super::facts::created_in;
use super::method::{Failure, Job, Method, Outcome, close_to_others};
use crate::error::{Error, IoContext};
use crate::progress::CancelToken;
use crate::staging::RootKind;
use crate::sys::{self, Listing, ListingBuffer};
use crate::tree::exclude::Exclusions;
use crate::tree::fill::Files;
use crate::tree::node::Node;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Clonefile,
    accepts: |facts, _| facts.clonefile.clone(),
    meets: &[Requirement::Cow],
    is_used_only_when_named: false,
    makes_each_file: false,
    is_one_call: Exclusions::is_empty,
    run,
};

fn run(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    if job.part.source.single().is_some() {
        return in_parts(job, &HashMap::new());
    }
    let parts =
        Parts::find(job.part.source.directory(), job.part.exclude, MOST_ENTRIES_IN_ONE_CALL, &job.part.options.cancel)
            .map_err(|(path, errno)| Error::io(Operation::ReadDirectory, job.part.source.path().join(path), errno))?;
    // One call cannot make entries that exist already.
    if !parts.is_all || job.staging.root().is_some() {
        return in_parts(job, &parts.largest);
    }
    match sys::clone_directory(job.part.source.directory(), job.staging.parent(), job.staging.name()) {
        Ok(()) => job.staging.adopt_directory(Operation::OpenStagedTree)?,
        // A mount below, a source that is its volume's root, or an unreadable entry, which cloning in parts names.
        Err(Errno::XDEV | Errno::INVAL | Errno::ACCESS) => return in_parts(job, &parts.largest),
        Err(Errno::NOTSUP | Errno::NOSYS) => {
            return Err(Failure::Refused(RefusalReason::new("the file system has no clonefile")));
        }
        Err(errno) => return Err(Error::io(Operation::CloneDirectory, job.part.source.path(), errno).into()),
    }
    let Some(root) = job.staging.root() else {
        return Err(Failure::Refused(RefusalReason::new("no staged directory")));
    };
    let whole = close_to_others(root).io(Operation::SetStagedMode, job.part.dst)?;
    sys::keep_acl(job.part.source.directory(), root).io(Operation::SetXattrs, job.part.dst)?;
    job.part.notes.warn(WarningCode::ClonefileDrops, None, DROPPED.into());
    Ok(Outcome { whole: Some(whole), ..Outcome::default() })
}

/// Losses of the call (clonefile(2), and measurements of others).
const DROPPED: &str = "clonefile drops set-user-ID bits, makes hard links separate files, copies sockets, and gives everything to you unless you are root";

/// Most entries for one call, which is silent and cannot be interrupted. Large ones were seen to keep other programs
/// from the disk for seconds (no shell starts). At about 57 us an entry, measured by others, these take half a second.
const MOST_ENTRIES_IN_ONE_CALL: u64 = 10_000;

fn in_parts(job: &mut Job<'_, '_>, whole: &HashMap<PathBuf, u64>) -> Result<Outcome, Failure> {
    if job.staging.root().is_none() {
        job.staging.make_root(RootKind::Closed)?;
        job.created = created_in(job.staging)?;
    }
    // Several at a time take as long as one after the other, and leave less of the disk to others.
    job.threads = 1;
    if !whole.is_empty() {
        job.part.notes.warn(WarningCode::ClonefileDrops, None, DROPPED.into());
    }
    let outcome = super::copy::per_file(job, Files::Clonefile { whole }, job.part.options.requires(Requirement::Cow))?;
    match whole.is_empty() {
        true => Ok(outcome),
        // The calls for whole subtrees do not count entries.
        false => Ok(Outcome { entries: None, bytes: None, ..outcome }),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    is_all: bool,
    /// Directories, relative to the root, and their numbers of entries. Entries above them are made one by one.
    largest: HashMap<PathBuf, u64>,
}

struct VisitedDirectory {
    node: Arc<Node>,
    parent: Option<usize>,
    /// In it and below.
    entries: u64,
    /// Something below is left out, or there is too much.
    is_partial: bool,
}

impl Parts {
    fn find(
        root: BorrowedFd<'_>,
        exclude: &Exclusions,
        most_entries: u64,
        cancel: &CancelToken,
    ) -> Result<Self, (PathBuf, Errno)> {
        let mut seen = vec![VisitedDirectory { node: Node::root(), parent: None, entries: 0, is_partial: false }];
        let mut buffer = ListingBuffer::new();
        let mut pending = vec![0];
        while let Some(index) = pending.pop() {
            let node = Arc::clone(&seen[index].node);
            let failed = |errno| (node.path(), errno);
            let opened = node.open(root, OFlags::RDONLY);
            let directory = match opened.and_then(|opened| Ok((sys::has_acls_inside(opened.as_fd())?, opened))) {
                Ok((has_acls, directory)) => {
                    seen[index].is_partial |= has_acls;
                    directory
                }
                // The code that makes its entries reports it.
                Err(Errno::ACCESS) => {
                    seen[index].is_partial = true;
                    continue;
                }
                Err(errno) => return Err(failed(errno)),
            };
            let mut listing = Listing::new(directory.as_fd(), &mut buffer).map_err(failed)?;
            while let Some(entry) = listing.next() {
                let entry = entry.map_err(failed)?;
                let is_directory = entry.kind == FileType::Directory;
                let left_out = is_calves_own(entry.name.to_bytes())
                    || !exclude.is_empty() && exclude.matches(&node.path_of(entry.name), is_directory);
                seen[index].entries += 1;
                seen[index].is_partial |= left_out;
                if is_directory && !left_out {
                    pending.push(seen.len());
                    let node = Node::child(&node, entry.name);
                    seen.push(VisitedDirectory { node, parent: Some(index), entries: 0, is_partial: false });
                }
            }
            if cancel.is_cancelled() {
                // The strategy that runs next notices too.
                break;
            }
        }
        Ok(Self::among(seen, most_entries))
    }

    fn among(mut seen: Vec<VisitedDirectory>, most_entries: u64) -> Self {
        // Each comes after its parent.
        for index in (0..seen.len()).rev() {
            seen[index].is_partial |= seen[index].entries > most_entries;
            if let Some(parent) = seen[index].parent {
                seen[parent].entries += seen[index].entries;
                seen[parent].is_partial |= seen[index].is_partial;
            }
        }
        let is_all = !seen[0].is_partial;
        seen[0].is_partial = true;
        let is_largest =
            |one: &&VisitedDirectory| !one.is_partial && one.parent.is_some_and(|parent| seen[parent].is_partial);
        let largest = seen.iter().filter(is_largest).map(|one| (one.node.path(), one.entries)).collect();
        Self { is_all, largest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::Mode;

    fn parts(exclude: &[&str], most_entries: u64) -> Parts {
        let folder = tempfile::tempdir().unwrap();
        for path in ["whole/deep/deeper", "mixed/clean", "mixed/dirty", "build"] {
            fs_err::create_dir_all(folder.path().join(path)).unwrap();
        }
        for path in ["whole/deep/deeper/a.js", "mixed/clean/a.js", "mixed/dirty/a.log", "build/a.js"] {
            fs_err::write(folder.path().join(path), path).unwrap();
        }
        let exclude = Exclusions::new(&exclude.iter().map(|&glob| glob.into()).collect::<Vec<_>>()).unwrap();
        let root = rustix::fs::open(folder.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        Parts::find(root.as_fd(), &exclude, most_entries, &CancelToken::default()).unwrap()
    }

    fn parts_of<const N: usize>(is_all: bool, largest: [(&str, u64); N]) -> Parts {
        Parts { is_all, largest: largest.map(|(path, entries)| (PathBuf::from(path), entries)).into() }
    }

    #[test]
    fn the_largest_subtrees_without_an_excluded_entry_stay_whole() {
        assert_eq!(parts(&["*.log", "/build/"], 100), parts_of(false, [("whole", 3), ("mixed/clean", 1)]));
        assert_eq!(parts(&["*.none"], 100), parts_of(true, [("whole", 3), ("mixed", 4), ("build", 1)]));
    }

    #[test]
    fn no_call_clones_more_than_it_may() {
        assert_eq!(parts(&[], 11), parts_of(true, [("whole", 3), ("mixed", 4), ("build", 1)]));
        assert_eq!(parts(&[], 10), parts_of(false, [("whole", 3), ("mixed", 4), ("build", 1)]));
        assert_eq!(
            parts(&[], 2),
            parts_of(false, [("whole/deep", 2), ("mixed/clean", 1), ("mixed/dirty", 1), ("build", 1)])
        );
    }
}
