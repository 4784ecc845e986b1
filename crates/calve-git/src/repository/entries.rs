//! git's own directories of linked worktrees (`worktrees/ID`).

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::{is_mounted, mount_point_of};

use crate::error::Result;
use crate::paths::{if_there, path_of, plain, real};

/// Names the worktree's `.git`. git lists the entries that have this file.
pub(crate) const GITDIR: &str = "gitdir";
/// Names the worktree that the files were cloned from.
pub(crate) const DONOR: &str = "calve-donor";

/// Has the id of the worktree whose data is cloned, or [`NO_SOURCE`]. Removed once the worktree has its ports and data.
pub(crate) const DATA_SOURCE: &str = "calve-data-from";
/// No worktree has this id.
pub(crate) const NO_SOURCE: &str = "none";
/// Names the place to which the worktree was moved, if Calve has run there and git does not know it.
pub(crate) const MOVED: &str = "calve-moved-to";
/// Names the mount point of the worktree's file system: it tells a deleted worktree from an unmounted one.
const MOUNT: &str = "calve-mount";

/// Lists the entries that git lists, each after the root of its worktree.
pub(crate) fn by_worktree(common: &Path) -> Result<Vec<(PathBuf, PathBuf)>> {
    let listed = all(common)?.into_iter().filter_map(|directory| Some((worktree_of(&directory)?, directory)));
    Ok(listed.collect())
}

pub(crate) fn worktree_of(entry: &Path) -> Option<PathBuf> {
    let text = fs_err::read(entry.join(GITDIR)).ok()?;
    let text = Some(text.trim_ascii_end()).filter(|text| !text.is_empty())?;
    // Relative to the entry, if git is configured so.
    let pointer = plain(&entry.join(path_of(text)));
    pointer.parent().map(Path::to_path_buf)
}

/// Returns the branch that an entry's HEAD names. git's list follows symbolic references instead.
pub(crate) fn branch_in(entry: &Path) -> Option<String> {
    let head = fs_err::read_to_string(entry.join("HEAD")).ok()?;
    // With another reference format, HEAD is a placeholder that only identifies the repository.
    let name = head.trim_end().strip_prefix("ref: refs/heads/").filter(|name| *name != ".invalid")?;
    Some(name.to_owned())
}

/// Lists every directory that is, or may be, an entry.
pub(crate) fn all(common: &Path) -> Result<Vec<PathBuf>> {
    let all = if_there(fs_err::read_dir(common.join("worktrees")))?.into_iter().flatten();
    Ok(all.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?)
}

pub(crate) fn note(entry: &Path, file: &str, path: &Path) -> Result<()> {
    Ok(fs_err::write(entry.join(file), path.as_os_str().as_bytes())?)
}

pub(crate) fn note_mount(entry: &Path, root: &Path) -> Result<()> {
    mount_point_of(root).map_or(Ok(()), |point| note(entry, MOUNT, &point))
}

/// Returns the noted mount point above the worktree, if that is missing or empty and nothing is mounted there, and the note.
pub(crate) fn unmounted(entry: &Path) -> Option<(PathBuf, PathBuf)> {
    let point = noted(entry, MOUNT)?;
    let mut places = [worktree_of(entry), noted(entry, MOVED)].into_iter().flatten();
    // A container may have mounted there what its host has there anyway. An error leaves that open.
    let is_full = || fs_err::read_dir(&point).is_ok_and(|mut inside| matches!(inside.next(), Some(Ok(_))));
    let is_away = places.any(|path| real(&path).starts_with(&point)) && !is_mounted(&point).unwrap_or(false);
    (is_away && !is_full()).then(|| (point.clone(), entry.join(MOUNT)))
}

/// Reads a path that was noted in a file of an entry. Something else may be there by now.
pub(crate) fn noted(entry: &Path, file: &str) -> Option<PathBuf> {
    fs_err::read(entry.join(file)).ok().map(|path| path_of(&path))
}
