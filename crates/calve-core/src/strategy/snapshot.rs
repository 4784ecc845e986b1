//! `snapshot`: the source is a btrfs subvolume. One call for it, and one for each subvolume nested in it.

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::facts::Facts;
use super::{Criteria, Failure, Job, Method, Outcome, RefusalReason};
use crate::choice::{Requirement, Strategy};
use crate::error::Error;
use crate::hidden::is_calves_own;
use crate::operation::Operation;
use crate::reason::WarningCode;
use crate::remedy::Remedy;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::fill::metadata::times;
use crate::tree::location::{Location, open_below, split};

pub(super) struct Snapshot;

impl Method for Snapshot {
    fn strategy(&self) -> Strategy {
        Strategy::Snapshot
    }

    fn accepts(&self, facts: &Facts, criteria: &Criteria) -> Result<(), RefusalReason> {
        facts.snapshot.clone()?;
        if criteria.excludes {
            return Err(RefusalReason::new("entries are excluded, and a snapshot has everything"));
        }
        if facts.nested_subvolumes > 0 && criteria.requires(Requirement::Stable) {
            return Err(RefusalReason::new("nested subvolumes are snapshotted one after the other"));
        }
        if facts.nested_subvolumes > 0 && criteria.mounts == crate::options::Mounts::Stay {
            return Err(RefusalReason::new("a nested subvolume is another file system"));
        }
        Ok(())
    }

    fn run(&self, job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
        let staging = &mut *job.staging;
        let name = staging.name().to_owned();
        let noted = staging.expect_subvolume();
        noted.map_err(|errno| Error::io(Operation::CreateStagingFor, job.dst_path, errno))?;
        match sys::snapshot(job.source.directory(), staging.parent(), &name) {
            Ok(()) => {}
            Err(errno) => return Err(refusal(errno).map_or_else(|| failed(job, errno).into(), Failure::Refused)),
        }
        staging.adopt_directory()?;
        let Some(root) = staging.root() else { return Err(failed(job, Errno::NOENT).into()) };
        let whole =
            super::close_to_others(root).map_err(|errno| Error::io(Operation::SetStagedMode, job.dst_path, errno))?;
        let nested = nested(job.source.directory(), root, Path::new(""), job.exclude)
            .map_err(|(path, errno)| Error::io(Operation::SnapshotNested, job.source.path().join(path), errno))?;
        if nested > 0 {
            job.notes.warn(
                WarningCode::NestedSubvolumes,
                None,
                format!("{nested} nested subvolumes were snapshotted one after the other, not at one moment"),
            );
        }
        Ok(Outcome { entries: None, bytes: None, whole: Some(whole), started: None })
    }
}

/// Makes the empty directory `path`, in such a way that clones of it can be snapshots where the file system has them: on btrfs
/// as a subvolume. Says whether it is one.
pub fn make_snapshotable_directory(path: &Path) -> Result<bool, Error> {
    let Some(location) = Location::open(path)? else { return Err(Error::DestinationExists(path.to_path_buf())) };
    let failed = |errno| Error::io(Operation::CreateDirectory, path, errno);
    let is_subvolume = match sys::create_subvolume(location.parent(), location.name()) {
        Ok(()) => true,
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
            rustix::fs::mkdirat(location.parent(), location.name(), Mode::RWXU).map_err(failed)?;
            false
        }
        Err(errno) => return Err(failed(errno)),
    };
    rustix::fs::chmodat(location.parent(), location.name(), Mode::RWXU, AtFlags::empty()).map_err(failed)?;
    Ok(is_subvolume)
}

/// Returns the reason for which a snapshot declines, or `None` for an error that is a failure.
fn refusal(errno: Errno) -> Option<RefusalReason> {
    Some(match errno {
        Errno::PERM | Errno::ACCESS => RefusalReason::new("only the owner of a subvolume (or root) may snapshot it")
            .with_remedy(Remedy::RunAsOwner),
        Errno::XDEV => RefusalReason::new("source and destination are on different file systems"),
        Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => {
            RefusalReason::new("the kernel refused it: the source is no subvolume after all")
        }
        // A swap file is active in the subvolume.
        Errno::TXTBSY => RefusalReason::new("a swap file is active in the subvolume"),
        _ => return None,
    })
}

fn failed(job: &Job<'_, '_>, errno: Errno) -> Error {
    Error::io(Operation::Snapshot, job.source.path(), errno)
}

/// Replaces each empty directory that a snapshot has where a subvolume was nested by a snapshot of that subvolume. `at` is the place of
/// `src` in the source. A nested subvolume that is left out stays an empty directory.
fn nested(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    at: &Path,
    exclude: &Exclusions,
) -> Result<usize, (PathBuf, Errno)> {
    let mut count = 0;
    let listed = sys::nested_subvolumes(src).map_err(|errno| (PathBuf::new(), errno))?;
    for path in listed {
        let shown = || PathBuf::from(OsStr::from_bytes(path.to_bytes()));
        let whole = at.join(shown());
        if !exclude.is_empty() && is_left(&whole, at, exclude) {
            continue;
        }
        count += one(src, dst, &path).map_err(|errno| (shown(), errno))?;
        let below = below(src, dst, &path).map_err(|errno| (shown(), errno))?;
        count += nested(below.0.as_fd(), below.1.as_fd(), &whole, exclude)
            .map_err(|(inner, errno)| (shown().join(inner), errno))?;
    }
    Ok(count)
}

/// Returns whether the directory `path`, or one above it that is below `at`, is left out.
fn is_left(path: &Path, at: &Path, exclude: &Exclusions) -> bool {
    path.ancestors().take_while(|above| *above != at).any(|above| {
        let own = above.file_name().is_some_and(|name| is_calves_own(name.as_bytes()));
        own || exclude.matches(above, true)
    })
}

fn one(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, path: &CStr) -> sys::Result<usize> {
    let (above, name) = split(path);
    let from = open_below(src, above.iter().chain([&name]))?;
    let parent = open_below(dst, above.iter())?;
    let before = rustix::fs::fstat(&parent)?;
    rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR)?;
    sys::snapshot(from.as_fd(), parent.as_fd(), &name)?;
    rustix::fs::futimens(&parent, &times(&before))?;
    Ok(1)
}

fn below(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, path: &CStr) -> sys::Result<(OwnedFd, OwnedFd)> {
    let (above, name) = split(path);
    let all = || above.iter().chain([&name]);
    Ok((open_below(src, all())?, open_below(dst, all())?))
}
