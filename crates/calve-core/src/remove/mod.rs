//! Removing: out of sight at once, deleted later.

pub(crate) mod delete;
pub(crate) mod foreign;
pub(crate) mod guard;
pub(crate) mod place;
pub(crate) mod sweep;
pub(crate) mod trash;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, FileType, OFlags};
use rustix::io::Errno;

use crate::error::{Error, IoContext, Protection};
use crate::options::{Background, RemovalWait, RemoveOptions};
use crate::progress::CancelToken;
use crate::remove::delete::{Deletion, delete, delete_directory};
use crate::remove::foreign::{is_mine, keeps_others};
use crate::remove::place::remove_place;
use crate::remove::sweep::delete_with_lock;
use crate::remove::trash::GITIGNORE;
use crate::report::{ReapReport, RemoveReport, Warning};
use crate::sys;
use crate::tree::location::{DIRECTORY, Location, identity};
use crate::tree::lock::{Lock, Purpose, Reach, recognise};
use crate::vocabulary::hidden_name::templates_directory;
use crate::vocabulary::operation::Operation;
use crate::vocabulary::reason::WarningCode;

/// Removes the entry at `path`.
///
/// Renames a directory to a hidden trash sibling, in constant time; [`reap`] deletes it later, or this call itself with
/// [`RemovalWait::Yes`]. Deletes it in place if the parent directory or the file system does not permit the rename.
/// Removes symlinks, and never follows them.
///
/// # Errors
/// [`Error::Protected`] for the root, a mount point, a tree with mounts below, an ancestor of the current directory and
/// anything in [`RemoveOptions::protect`]. [`Error::Io`] with [`Operation::DeleteContents`] if another user's entries
/// near the root cannot be deleted by this one; such entries further down stay in the trash.
pub fn remove_tree(path: &Path, options: &RemoveOptions) -> Result<RemoveReport, Error> {
    remove(path, None, options)
}

/// Removes the open `directory` as [`remove_tree`] does. Fails with [`Error::Protected`], and removes nothing, if
/// something else is at `path`.
pub fn remove_opened(path: &Path, directory: BorrowedFd<'_>, options: &RemoveOptions) -> Result<RemoveReport, Error> {
    let stat = rustix::fs::fstat(directory).io(Operation::Stat, path)?;
    remove(path, Some(identity(&stat)), options)
}

/// Moves the directory at `path` to the trash, for [`reap`]. Fails like [`remove_tree`], and, with nothing done, if the
/// parent directory does not permit the rename.
pub fn move_to_trash(path: &Path, options: &RemoveOptions) -> Result<(), Error> {
    let location = open(path)?;
    guard::check(&location, &options.protect)?;
    let (_, lock) = trash::move_in(location.parent(), location.name(), location.parent_path(), None)?;
    lock.leave();
    Ok(())
}

fn remove(path: &Path, expected: Option<(u64, u64)>, options: &RemoveOptions) -> Result<RemoveReport, Error> {
    let started = Instant::now();
    let location = open(path)?;
    guard::check(&location, &options.protect)?;
    let mut report = RemoveReport {
        path: path.to_path_buf(),
        trashed: None,
        deleted: 0,
        warnings: Vec::new(),
        elapsed: started.elapsed(),
    };
    let stat = location.stat()?;
    if expected.is_some_and(|expected| stat.is_none_or(|stat| identity(&stat) != expected)) {
        return Err(Error::Protected { path: path.to_path_buf(), reason: Protection::Exchanged(None) });
    }
    if stat.is_some_and(sys::is_directory) {
        let removed = remove_directory(&location, expected, options, &mut report);
        remove_lock(&location);
        removed?;
    } else {
        rustix::fs::unlinkat(location.parent(), location.name(), AtFlags::empty()).io(Operation::Remove, path)?;
        report.deleted = 1;
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

/// Deletes the directory at `path` in place and in the foreground, without the trash and the checks of [`remove_tree`].
/// Does not cross a mount, follow a link, or change a mode. Fails if `path` is no directory, or something could not be
/// deleted: that stays, with the directories above it.
pub fn delete_in_place(path: &Path, options: &RemoveOptions) -> Result<(), Error> {
    let location = open(path)?;
    let stat = location.stat()?.ok_or_else(|| Error::io(Operation::OpenDirectory, path, Errno::NOENT))?;
    if !sys::is_directory(stat) {
        return Err(Error::io(Operation::OpenDirectory, path, Errno::NOTDIR));
    }
    let deletion = Deletion { opens_up: false, ..Deletion::new(options.threads, &options.progress, &options.cancel) };
    delete_directory(location.parent(), location.name(), path, identity(&stat), &deletion).map(|_| ())
}

/// Fails where [`remove_tree`] would fail, or leave an emptied directory, if that shows without removing anything.
pub fn check_removable(path: &Path, options: &RemoveOptions) -> Result<(), Error> {
    let location = open(path)?;
    guard::check(&location, &options.protect)?;
    check_own_name(&location)
}

/// Fails if this user may not rename the entry at `path` in its directory, where [`remove_tree`] would delete in place.
pub fn check_renamable(path: &Path) -> Result<(), Error> {
    check_own_name(&open(path)?)
}

fn check_own_name(location: &Location) -> Result<(), Error> {
    let failed = |errno| Err(Error::io(Operation::MoveToTrash, location.path(), errno));
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    if let Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) =
        rustix::fs::accessat(location.parent(), c".", wanted, AtFlags::EACCESS)
    {
        return failed(errno);
    }
    let Some(stat) = location.stat()? else { return Ok(()) };
    let kind = sys::kind(stat);
    let is_unchangeable =
        |opened: sys::Result<OwnedFd>| opened.is_ok_and(|opened| sys::is_unchangeable(opened.as_fd()));
    let is_kept = rustix::fs::fstat(location.parent()).is_ok_and(|parent| keeps_others(&parent)) && !is_mine(&stat);
    if is_kept
        || is_unchangeable(sys::open_at(location.parent(), c".", DIRECTORY))
        || matches!(kind, FileType::Directory | FileType::RegularFile) && is_unchangeable(location.open_at(sys::FILE))
    {
        return failed(Errno::PERM);
    }
    Ok(())
}

fn open(path: &Path) -> Result<Location, Error> {
    let location = Location::of_existing(path)?
        .ok_or_else(|| Error::Protected { path: path.to_path_buf(), reason: Protection::NoName })?;
    if path.as_os_str().as_bytes().ends_with(b"/") {
        match location.stat()?.map(sys::kind) {
            None | Some(FileType::Directory) => {}
            Some(FileType::Symlink) => return Err(Error::LinkWithSlash(path.to_path_buf())),
            Some(_) => return Err(Error::io(Operation::OpenDirectory, path, Errno::NOTDIR)),
        }
    }
    Ok(location)
}

/// Removes the lock of a hidden name, which protects nothing once the entry is gone.
fn remove_lock(location: &Location) {
    if recognise(location.name(), Reach::Machine).is_some()
        && let Ok(Some(lock)) = Lock::take(location.parent(), location.name())
    {
        lock.remove_if_unused(location.parent());
    }
}

fn remove_directory(
    location: &Location,
    expected: Option<(u64, u64)>,
    options: &RemoveOptions,
    report: &mut RemoveReport,
) -> Result<(), Error> {
    let deletion = Deletion::new(options.threads, &options.progress, &options.cancel);
    match trash::move_in(location.parent(), location.name(), location.parent_path(), expected) {
        Ok((trashed, lock)) if options.wait == RemovalWait::No => {
            lock.leave();
            report.trashed = Some(trashed);
        }
        Ok((trashed, lock)) => {
            let path = location.parent_path().join(&trashed.name);
            let deletion = Deletion { last: Some(GITIGNORE), ..deletion };
            report.deleted = delete_with_lock(location.parent(), lock, &path, &deletion)?;
        }
        Err(Error::Io { source, .. }) if refused_rename(&source) => {
            report.warnings.push(Warning {
                code: WarningCode::DeletedInPlace,
                path: Some(location.path().to_path_buf()),
                message: format!(
                    "it was deleted in the foreground, since it could not be moved to the trash: {source}"
                ),
            });
            report.deleted = match expected {
                Some(expected) => {
                    delete_directory(location.parent(), location.name(), location.path(), expected, &deletion)?
                }
                None => delete(location.parent(), location.name(), location.path(), &deletion)?,
            };
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns whether deleting in place may still work: overlays rename no lower directories (overlayfs.rst, "renaming").
fn refused_rename(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOSPC | Errno::DQUOT | Errno::XDEV))
}

/// Deletes and returns leftovers of this user's killed clones in the directory `parent`. Trash stays, for [`reap`].
pub fn sweep(parent: &Path) -> Result<Vec<PathBuf>, Error> {
    let Some(directory) =
        sys::unless_missing(sys::open_at(rustix::fs::CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY))
            .io(Operation::OpenDirectory, parent)?
    else {
        return Ok(Vec::new());
    };
    let swept = sweep::sweep(directory.as_fd(), parent, Purpose::Staging, &Deletion::uncancelled())?;
    swept.failure.map_or(Ok(swept.removed), Err)
}

/// A removed tree that has not been deleted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingTrash {
    pub path: PathBuf,
    /// An earlier attempt to delete it failed.
    pub is_stuck: bool,
    /// A living process is deleting it.
    pub is_busy: bool,
}

/// Returns this user's trash in the directory `parent`, which [`reap`] deletes if nothing prevents it.
pub fn pending_trash(parent: &Path) -> Result<Vec<PendingTrash>, Error> {
    let directory = sys::open_at(rustix::fs::CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY);
    let directory = directory.io(Operation::OpenDirectory, parent)?;
    let mut found = sweep::find(directory.as_fd()).io(Operation::ReadDirectory, parent)?;
    found.retain(|found| {
        let stat = sys::stat_at(&directory, &*found.name);
        found.purpose == Purpose::Trash && stat.is_ok()
    });
    let pending = found.into_iter().map(|found| {
        let lock = Lock::take(directory.as_fd(), &found.name);
        PendingTrash {
            path: parent.join(sys::path(&found.name)),
            is_stuck: matches!(&lock, Ok(Some(lock)) if lock.has_failed()),
            is_busy: matches!(lock, Ok(None)),
        }
    });
    Ok(pending.collect())
}

/// Deletes this user's trash in the directory `parent`, except trash that a living process is busy with.
///
/// `background` also gives this **process**, which must do nothing else, the lowest priority, and retries busy trash.
pub fn reap(parent: OwnedFd, path: &Path, background: Background, cancel: &CancelToken) -> Result<ReapReport, Error> {
    let waits: &[u64] = if background == Background::Yes { &[50, 100, 200, 400, 800, 1600, 3200] } else { &[] };
    if background == Background::Yes {
        sys::lower_priority();
    }
    let deletion = Deletion::new(None, &Arc::default(), cancel);
    let mut report = ReapReport::default();
    for wait_ms in waits.iter().map(Some).chain([None]) {
        let swept = sweep::sweep(parent.as_fd(), path, Purpose::Trash, &deletion)?;
        report.deleted += swept.deleted_entries;
        report.failure = swept.failure;
        match wait_ms {
            // A process that was just killed may leave its trash a moment later.
            Some(wait_ms) if swept.saw_trash => std::thread::sleep(Duration::from_millis(*wait_ms)),
            _ => break,
        }
    }
    remove_place(parent.as_fd(), &templates_directory());
    Ok(report)
}
