use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::paths::{is_missing, real};
use crate::repository::entries;
use crate::trust;

/// A worktree that leases ports, identified by git's own directory of it, which stays when the worktree moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasingWorktree {
    pub(crate) entry: PathBuf,
    pub(crate) identity: Identity,
    pub(crate) is_linked: bool,
}

impl LeasingWorktree {
    pub fn find(root: &Path) -> Result<LeasingWorktree> {
        let entry = own_directory(root)?;
        let identity = Identity::read(&entry)?;
        let is_linked = entry.join("commondir").exists();
        Ok(LeasingWorktree { entry, identity, is_linked })
    }
}

pub(crate) fn own_directory(root: &Path) -> Result<PathBuf> {
    Ok(trust::entry_of(root)?.unwrap_or_else(|| real(&root.join(".git"))))
}

/// Distinguishes a worktree's git directory from a former or a later one at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) inode: u64,
    /// Nanoseconds at which git made a linked worktree, or 0: ext4 reuses the inode number of a removed directory.
    pub(crate) made: u64,
}

impl Identity {
    fn read(entry: &Path) -> std::io::Result<Identity> {
        // Git writes it once.
        let made = fs_err::metadata(entry.join("commondir"));
        let nanoseconds =
            |file: std::fs::Metadata| file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
        let made = made.map_or(0, nanoseconds).unsigned_abs();
        Ok(Identity { inode: fs_err::metadata(entry)?.ino(), made })
    }

    pub(crate) fn is(&self, other: &Identity) -> bool {
        // A restored backup has other inode numbers.
        if self.made == 0 || other.made == 0 { self.inode == other.inode } else { self.made == other.made }
    }

    pub(crate) fn is_at(&self, entry: &Path) -> bool {
        Identity::read(entry).is_ok_and(|found| found.is(self))
    }

    pub(crate) fn is_replaced_at(&self, entry: &Path) -> bool {
        Identity::read(entry).is_ok_and(|found| !found.is(self))
    }

    pub(crate) fn presence_at(&self, entry: &Path) -> Presence {
        if !is_missing(entry) {
            if self.is_replaced_at(entry) {
                return Presence::Gone;
            }
            let is_away = entries::worktree_of(entry).is_some_and(|root| is_missing(&root.join(".git")));
            return if is_away { Presence::Away } else { Presence::Here };
        }
        match entry.parent().filter(|all| all.ends_with("worktrees")).and_then(Path::parent) {
            Some(repository) if !is_missing(&repository.join("HEAD")) => Presence::Gone,
            _ => Presence::Away,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Present, or unknown.
    Here,
    /// Its files or its repository are not in place: moved, deleted, or on a disk that is not mounted.
    Away,
    /// The repository has forgotten it, or another worktree is in its place.
    Gone,
}
