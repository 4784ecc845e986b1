//! Ignored files of removed worktrees, which stay for a while in git's own directory. They get a second name there (or a clone, where a link
//! is not possible) before the worktree goes: whatever fails in between, the worktree is whole.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use calve_core::internal::json::{As, ReceiptPath};
use calve_core::internal::make_below;
use calve_core::options::Decision;
use calve_core::report::Warning;
use calve_core::{CloneOptions, Selection, clone_tree};
use rustix::fs::{AtFlags, CWD, Mode};
use rustix::io::Errno;
use serde::Serialize;

use crate::directory::{open_below, open_directory};
use crate::error::{Result, failed};
use crate::paths::{check_writable, numbered};
use crate::repository::state::LinkedWorktree;
use crate::unsaved_item::IgnoredFile;

const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const PRIVATE: Mode = Mode::RWXU;

/// Ignored files that only a removed worktree had, and that were moved aside for seven days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "KeptFilesReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptFiles {
    /// The directory that they are in, below git's own directory.
    #[serde(with = "As::<ReceiptPath>")]
    pub directory: PathBuf,
    /// Their paths in the worktree and in the directory.
    #[serde(with = "As::<Vec<ReceiptPath>>")]
    pub files: Vec<PathBuf>,
    /// The size of all of them.
    pub bytes: u64,
    /// Metadata that the clones of them do not have.
    #[serde(skip)]
    pub losses: Vec<Warning>,
}

/// Keeps all files, or those that can be kept if `is_forced`: the others stay in `files`.
pub(crate) fn keep(
    common: &Path,
    linked: &LinkedWorktree,
    files: &mut Vec<IgnoredFile>,
    is_forced: bool,
) -> Result<Option<KeptFiles>> {
    if files.is_empty() {
        return Ok(None);
    }
    let directory = match new_directory(&place(common), &linked.path) {
        Err(_) if is_forced => return Ok(None),
        made => made?,
    };
    let mut kept = KeptFiles { directory, files: Vec::new(), bytes: 0, losses: Vec::new() };
    let is_kept = match kept.link_all(linked.root(), files, is_forced) {
        Ok(false) => kept.clone_all(linked, files, is_forced),
        linked => linked.map(drop),
    };
    if !is_forced && let Err(error) = is_kept {
        kept.undo(linked.root());
        return Err(error);
    }
    let names: HashSet<&PathBuf> = kept.files.iter().collect();
    kept.bytes = files.extract_if(.., |file| names.contains(&file.path)).map(|file| file.bytes).sum();
    // A program may have removed some of the others since.
    files.retain(|file| fs_err::symlink_metadata(linked.path.join(&file.path)).is_ok());
    if kept.files.is_empty() {
        kept.undo(linked.root());
        return Ok(None);
    }
    Ok(Some(kept))
}

impl KeptFiles {
    /// Returns false where files cannot have a second name.
    fn link_all(&mut self, root: BorrowedFd<'_>, files: &[IgnoredFile], is_forced: bool) -> Result<bool> {
        for IgnoredFile { path, .. } in files {
            match link(root, &self.directory, path) {
                Ok(()) => self.files.push(path.clone()),
                // A program has removed it since: a journal, a lock.
                Err(Errno::NOENT) => {}
                // Another file system or subvolume, one without hard links, or another user's file.
                Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::OPNOTSUPP | Errno::ACCESS) => return Ok(false),
                Err(_) if is_forced => {}
                Err(errno) => return Err(failed("cannot keep", &self.directory.join(path), errno).into()),
            }
        }
        Ok(true)
    }

    /// Replaces the second names by clones of the files, with their metadata.
    fn clone_all(&mut self, linked: &LinkedWorktree, files: &[IgnoredFile], is_forced: bool) -> Result<()> {
        let directory = &self.directory;
        self.files.clear();
        fs_err::remove_dir_all(directory)?;
        rustix::fs::mkdir(directory, PRIVATE).map_err(|errno| failed("cannot make", directory, errno))?;
        // Each entry of the root on its own: the directory stays closed to others.
        let mut entries: BTreeMap<&Path, HashSet<PathBuf>> = BTreeMap::new();
        for IgnoredFile { path, .. } in files {
            let mut above: Vec<&Path> = path.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
            let Some(entry) = above.pop() else { continue };
            let below = above.into_iter().filter_map(|path| path.strip_prefix(entry).ok()).map(Path::to_path_buf);
            entries.entry(entry).or_default().extend(below);
        }
        for (entry, below) in entries {
            let mut options = CloneOptions::default();
            if !below.is_empty() {
                let takes = move |path: &Path, _| if below.contains(path) { Decision::Take } else { Decision::Leave };
                options.select = Some(Selection::new(takes));
            }
            match clone_tree(&linked.path.join(entry), &directory.join(entry), &options) {
                Ok(report) => self.losses.extend(report.warnings.into_iter().filter(|warning| warning.code.is_loss())),
                Err(calve_core::Error::Missing(_)) => {}
                // Of an entry that has no room as a whole, some files may have.
                Err(_) if is_forced => {
                    for file in files.iter().map(|file| &file.path).filter(|path| path.starts_with(entry)) {
                        let target = directory.join(file);
                        let _ = target.parent().map(fs_err::create_dir_all);
                        let _ = clone_tree(&linked.path.join(file), &target, &CloneOptions::default());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        for IgnoredFile { path, .. } in files {
            let is_in = |root: &Path| fs_err::symlink_metadata(root.join(path)).is_ok();
            if is_in(directory) {
                self.files.push(path.clone());
            } else if !is_forced && is_in(&linked.path) {
                return Err(failed("cannot keep", &directory.join(path), Errno::NOENT).into());
            }
        }
        Ok(())
    }

    /// Removes the second names, if all files still have their first.
    pub(crate) fn undo(self, root: BorrowedFd<'_>) {
        let has_first = |file: &PathBuf| rustix::fs::statat(root, file, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if self.files.iter().all(has_first) {
            let _ = fs_err::remove_dir_all(&self.directory);
        }
    }
}

/// Removes files that were kept for long enough. After a failure, the next command tries again.
pub(crate) fn sweep_kept(common: &Path) {
    let Ok(all) = fs_err::read_dir(place(common)) else { return };
    let is_old = |found: &std::fs::Metadata| {
        found.is_dir() && found.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > KEPT))
    };
    for directory in all.flatten().map(|entry| entry.path()) {
        if fs_err::symlink_metadata(&directory).is_ok_and(|found| is_old(&found)) {
            let _ = fs_err::remove_dir_all(&directory);
        }
    }
}

fn place(common: &Path) -> PathBuf {
    common.join("calve/kept")
}

/// Fails if [`keep`] could not make its directory.
pub(crate) fn check_place(common: &Path) -> Result<()> {
    let place = place(common);
    let there = place.ancestors().find(|above| fs_err::symlink_metadata(above).is_ok()).unwrap_or(common);
    Ok(check_writable(&there.join(".")).map_err(|error| failed("cannot make", &place, error))?)
}

fn new_directory(place: &Path, name: &Path) -> Result<PathBuf> {
    fs_err::create_dir_all(place)?;
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(numbered(|number| {
        let mut own = name.file_name().unwrap_or_default().to_os_string();
        own.push(format!("-{}", seconds + number));
        let directory = place.join(own);
        rustix::fs::mkdir(&directory, PRIVATE).map_err(|errno| failed("cannot make", &directory, errno))?;
        Ok(directory)
    })?)
}

/// Gives one file a second name. Follows no link, neither in the worktree, which others may be changing, nor here.
fn link(root: BorrowedFd<'_>, directory: &Path, path: &Path) -> std::result::Result<(), Errno> {
    let above = path.parent().unwrap_or(Path::new(""));
    let from = open_below(open_directory(root, c".")?, above)?;
    let to = make_below(open_directory(CWD, directory)?.as_fd(), above, PRIVATE)?;
    let name = Path::new(path.file_name().unwrap_or_default());
    rustix::fs::linkat(&from, name, &to, name, AtFlags::empty())
}
