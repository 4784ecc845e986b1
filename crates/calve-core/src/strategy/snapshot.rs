//! `snapshot`: the source is a btrfs subvolume. One call for it, and one for each subvolume nested in it.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::criteria::{Criteria, RefusalReason};
use super::facts::Facts;
use super::method::{Failure, Job, Method, Outcome, close_to_others};
use crate::error::{Error, IoContext};
use crate::options::Mounts;
use crate::sys;
use crate::tree::exclude::Exclusions;
use crate::tree::held_times::times;
use crate::tree::location::{DIRECTORY, Location};
use crate::tree::node::{node_of, open_above};
use crate::tree::notes::Notes;
use crate::vocabulary::hidden_name::is_calves_own;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::{SkipReason, WarningCode};
use crate::vocabulary::remedy::Remedy;
use crate::vocabulary::strategy::{Requirement, Strategy};

pub(super) const METHOD: Method = Method {
    strategy: Strategy::Snapshot,
    accepts,
    meets: &[Requirement::Instant, Requirement::Cow, Requirement::Stable],
    is_used_only_when_named: false,
    makes_each_file: false,
    is_one_call: |_| true,
    run,
};

fn accepts(facts: &Facts, criteria: &Criteria<'_>) -> Result<(), RefusalReason> {
    let has_nested = facts.snapshot.clone()? > 0;
    if criteria.excludes {
        return Err(RefusalReason::new("entries are excluded, and a snapshot has everything"));
    }
    if has_nested && criteria.options.requires(Requirement::Stable) {
        return Err(RefusalReason::new("nested subvolumes are snapshotted one after the other"));
    }
    if has_nested && criteria.options.mounts == Mounts::Stay {
        return Err(RefusalReason::new("a nested subvolume is another file system"));
    }
    Ok(())
}

fn run(job: &mut Job<'_, '_>) -> Result<Outcome, Failure> {
    let staging = &mut *job.staging;
    let name = staging.name().to_owned();
    let noted = staging.expect_subvolume();
    noted.io(Operation::CreateStagingFor, job.part.dst)?;
    if let Err(errno) = sys::snapshot(job.part.source.directory(), staging.parent(), &name) {
        return Err(refusal(errno).map_or_else(|| failed(job, errno).into(), Failure::Refused));
    }
    staging.adopt_directory(Operation::OpenStagedTree)?;
    let Some(root) = staging.root() else { return Err(failed(job, Errno::NOENT).into()) };
    let whole = close_to_others(root).io(Operation::SetStagedMode, job.part.dst)?;
    let nested = nested(job.part.source.directory(), root, Path::new(""), (job.part.exclude, job.part.notes))
        .map_err(|(path, errno)| Error::io(Operation::SnapshotNested, job.part.source.path().join(path), errno))?;
    if nested > 0 {
        job.part.notes.warn(
            WarningCode::NestedSubvolumes,
            None,
            format!("nested subvolumes ({nested}) were snapshotted one after the other, not at one moment"),
        );
    }
    Ok(Outcome { whole: Some(whole), ..Outcome::default() })
}

/// Makes the empty directory `path`, on btrfs a subvolume, whose clones can be snapshots. Returns whether it is one.
pub fn make_snapshotable_directory(path: &Path) -> Result<bool, Error> {
    let Some(location) = Location::open(path)? else { return Err(Error::DestinationExists(path.to_path_buf())) };
    let is_subvolume = match sys::create_subvolume(location.parent(), location.name()) {
        Ok(()) => true,
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
            rustix::fs::mkdirat(location.parent(), location.name(), Mode::RWXU).io(Operation::CreateDirectory, path)?;
            false
        }
        Err(errno) => return Err(Error::io(Operation::CreateDirectory, path, errno)),
    };
    rustix::fs::chmodat(location.parent(), location.name(), Mode::RWXU, AtFlags::empty())
        .io(Operation::CreateDirectory, path)?;
    Ok(is_subvolume)
}

/// Returns the reason for declining, or `None` for an error that is a failure.
fn refusal(errno: Errno) -> Option<RefusalReason> {
    Some(match errno {
        Errno::PERM | Errno::ACCESS => RefusalReason::new("only the owner of a subvolume (or root) may snapshot it")
            .with_remedy(Remedy::RunAsOwner),
        Errno::XDEV => RefusalReason::new("source and destination are on different file systems"),
        Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => {
            RefusalReason::new("the kernel refused it: the source is not a subvolume after all")
        }
        Errno::TXTBSY => RefusalReason::new("a swap file is active in the subvolume"),
        _ => return None,
    })
}

fn failed(job: &Job<'_, '_>, errno: Errno) -> Error {
    Error::io(Operation::Snapshot, job.part.source.path(), errno)
}

/// Replaces a snapshot's empty directories by snapshots of the nested subvolumes. `at`: the place of `src` in the
/// source. An excluded one stays an empty directory, unless it is Calve's own.
fn nested(
    src: BorrowedFd<'_>,
    dst: BorrowedFd<'_>,
    at: &Path,
    (exclude, notes): (&Exclusions, &Notes),
) -> Result<usize, (PathBuf, Errno)> {
    let mut count = 0;
    let listed = sys::nested_subvolumes(src).map_err(|errno| (PathBuf::new(), errno))?;
    for path in listed {
        let shown = || PathBuf::from(sys::path(&path));
        let whole = at.join(shown());
        if is_left(&whole, at, exclude) {
            if is_own(&whole) {
                match remove_empty(dst, &path) {
                    // It stays an empty directory.
                    Ok(()) | Err(Errno::ACCESS | Errno::PERM) => notes.skipped(whole, SkipReason::CalvesOwn),
                    // Another calve made it after the snapshot.
                    Err(Errno::NOENT) => {}
                    Err(errno) => return Err((shown(), errno)),
                }
            }
            continue;
        }
        let [from, to] = snapshot_nested(src, dst, &path).map_err(|errno| (shown(), errno))?;
        count += 1;
        count += nested(from.as_fd(), to.as_fd(), &whole, (exclude, notes))
            .map_err(|(inner, errno)| (shown().join(inner), errno))?;
    }
    Ok(count)
}

/// Returns whether the directory `path`, or one above it that is below `at`, is left out.
fn is_left(path: &Path, at: &Path, exclude: &Exclusions) -> bool {
    path.ancestors().take_while(|above| *above != at).any(|above| is_own(above) || exclude.matches(above, true))
}

fn is_own(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_calves_own(name.as_bytes()))
}

fn remove_empty(dst: BorrowedFd<'_>, path: &CStr) -> sys::Result<()> {
    let (parent, name) = open_above(dst, sys::path(path), OFlags::RDONLY)?;
    let before = rustix::fs::fstat(&parent)?;
    rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR)?;
    rustix::fs::futimens(&parent, &times(&before))
}

fn snapshot_nested(src: BorrowedFd<'_>, dst: BorrowedFd<'_>, path: &CStr) -> sys::Result<[OwnedFd; 2]> {
    let from = node_of(sys::path(path)).open(src, OFlags::RDONLY)?;
    let (parent, name) = open_above(dst, sys::path(path), OFlags::RDONLY)?;
    let before = rustix::fs::fstat(&parent)?;
    let mode = Mode::from_raw_mode(before.st_mode & 0o7777);
    let remove = || rustix::fs::unlinkat(&parent, &*name, AtFlags::REMOVEDIR);
    let removed = remove();
    // Its owner may have closed it.
    let is_closed = removed == Err(Errno::ACCESS);
    if is_closed {
        rustix::fs::fchmod(&parent, mode | Mode::WUSR)?;
        remove()?;
    } else {
        removed?;
    }
    sys::snapshot(from.as_fd(), parent.as_fd(), &name)?;
    if is_closed {
        rustix::fs::fchmod(&parent, mode)?;
    }
    rustix::fs::futimens(&parent, &times(&before))?;
    Ok([from, sys::open_at(&parent, &*name, DIRECTORY)?])
}
