//! What whole trees cost that are made by one call: a snapshot, an overlay mount.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::trial::{Trial, median, number_after};
use crate::error::Error;
use crate::options::Strategy;
use crate::report::Refusal;
use crate::strategy::Reason;
use crate::sys;

const MOST: usize = 5;

/// A subvolume with a file in it is made and snapshotted.
pub(super) fn snapshot(trial: &Trial<'_>) -> Result<Result<Duration, Refusal>, Error> {
    let refuse = |reason: Reason| Ok(Err(reason.by(Strategy::Snapshot)));
    if sys::magic(trial.root) != Ok(sys::BTRFS_MAGIC) {
        return refuse(Reason::new(format!("{} has no snapshots", sys::file_system_name(trial.root))));
    }
    if let Err(errno) = sys::create_subvolume(trial.root, c"subvolume") {
        return refuse(refused("make a subvolume", errno));
    }
    let subvolume = open(trial, c"subvolume")?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    sys::open_at(&subvolume, c"file", flags, Mode::RUSR | Mode::WUSR).map_err(trial.failed("create a file in"))?;
    let mut times = Vec::new();
    for index in 0..=MOST {
        trial.stop_if_cancelled()?;
        if !times.is_empty() && !trial.calls_may_go_on(times.iter().copied().max().unwrap_or_default()) {
            break;
        }
        let name = number_after("snapshot-", index);
        let started = Instant::now();
        if let Err(errno) = sys::snapshot(subvolume.as_fd(), trial.root, &name) {
            return refuse(refused("make a snapshot", errno));
        }
        // The first one commits a transaction with all that was made before.
        if index > 0 {
            times.push(started.elapsed());
        }
    }
    Ok(Ok(median(&mut times).unwrap_or_default()))
}

/// Directories for changes are made, and an overlay of a small tree is mounted where nobody sees it: the mount goes with its
/// descriptor, also when this process is killed.
pub(super) fn overlay(trial: &Trial<'_>) -> Result<Result<Duration, Refusal>, Error> {
    let lower = open(trial, c"tree")?;
    let mut times = Vec::new();
    for index in 0..MOST {
        trial.stop_if_cancelled()?;
        if !times.is_empty() && !trial.calls_may_go_on(times.iter().copied().max().unwrap_or_default()) {
            break;
        }
        let started = Instant::now();
        let [upper, work] = ["upper-", "work-"].map(|prefix| {
            let name = number_after(prefix, index);
            rustix::fs::mkdirat(trial.root, &*name, Mode::RWXU).map_err(trial.failed("create a directory in"))?;
            open(trial, &name)
        });
        match sys::detached_overlay(lower.as_fd(), upper?.as_fd(), work?.as_fd(), true) {
            Ok(mount) => {
                times.push(started.elapsed());
                drop(mount);
            }
            Err(errno @ (Errno::PERM | Errno::ACCESS)) => {
                let remedy = "run as root, or in a user namespace in which you are root";
                return Ok(Err(refused("mount an overlay", errno).with_remedy(remedy).by(Strategy::Overlay)));
            }
            Err(errno) => return Ok(Err(refused("mount an overlay", errno).by(Strategy::Overlay))),
        }
    }
    Ok(Ok(median(&mut times).unwrap_or_default()))
}

fn refused(what: &str, errno: Errno) -> Reason {
    Reason::new(format!("the kernel refused to {what}: {}", std::io::Error::from(errno)))
}

fn open(trial: &Trial<'_>, name: &std::ffi::CStr) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::open_at(trial.root, name, flags, Mode::empty()).map_err(trial.failed("open a directory in"))
}
