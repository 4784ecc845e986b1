//! A worktree's environment: the ports that `[ports]` of `.calve.toml` asks for, leased so that no two worktrees have the same one; and whose
//! the data of `[services.NAME]` is.

mod carried;
mod file;
mod keeper;
mod leases;

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub use carried::{OtherValues, other_values};
pub(crate) use file::is_ignored;
pub use file::{
    EnvFile, env_file_inside, env_file_text, follow_env_file, is_own_env_file, remove_own_env_files, untracked_files,
    write_env_file,
};
pub(crate) use keeper::SOURCE;
pub use keeper::{Keeper, data_source, forget_data_source};
pub use leases::Leases;

use crate::error::Result;
use crate::paths::{path_of, real};
use crate::{repository, trust};

/// A port of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Port {
    /// Its name in `.calve.toml`.
    pub name: String,
    pub number: u16,
}

impl Port {
    /// Returns its variable: `web` is `WEB_PORT`. The ending keeps a project from setting variables that programs heed, like `PATH`.
    pub fn variable(&self) -> String {
        format!("{}_PORT", self.name.to_ascii_uppercase().replace('-', "_"))
    }
}

/// A worktree that leases are for. Git's own directory of it tells which one it is: that stays when the worktree is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    entry: PathBuf,
    identity: Identity,
    is_linked: bool,
}

impl Holder {
    /// Returns the worktree with this root as a holder.
    pub fn of(root: &Path) -> Result<Holder> {
        let entry = trust::entry_of(root)?.unwrap_or_else(|| real(&root.join(".git")));
        let identity = Identity::of(&entry)?;
        let is_linked = entry.join("commondir").exists();
        Ok(Holder { entry, identity, is_linked })
    }
}

/// Tells git's directory of a worktree from a former or a later one at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: u64,
    /// When git has made a linked worktree, in nanoseconds: ext4 gives the inode number of one that was removed to the next. 0: unknown.
    made: u64,
}

impl Identity {
    fn of(entry: &Path) -> std::io::Result<Identity> {
        // Git writes it once.
        let made = fs_err::metadata(entry.join("commondir"));
        let nanoseconds =
            |file: std::fs::Metadata| file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
        let made = made.map_or(0, nanoseconds).unsigned_abs();
        Ok(Identity { inode: fs_err::metadata(entry)?.ino(), made })
    }

    fn is(&self, other: &Identity) -> bool {
        // A backup that was restored has other inode numbers.
        if self.made == 0 || other.made == 0 { self.inode == other.inode } else { self.made == other.made }
    }

    fn is_at(&self, entry: &Path) -> bool {
        Identity::of(entry).is_ok_and(|found| found.is(self))
    }

    /// Returns whether something else is at `entry`.
    fn is_replaced_at(&self, entry: &Path) -> bool {
        Identity::of(entry).is_ok_and(|found| !found.is(self))
    }
}

/// Returns the root of the worktree that `path` is in.
pub fn root_of(path: &Path) -> Result<PathBuf> {
    repository::asked(path, &["rev-parse", "--show-toplevel"])
}

/// Whether a worktree is still there, told by git's own directory of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// It is, or it cannot be told.
    Here,
    /// Its files or its repository are not where they were: moved, deleted, or on a disk that is not mounted.
    Away,
    /// The repository is there and has forgotten it, or another worktree is in its place.
    Gone,
}

fn presence(entry: &Path, identity: Identity) -> Presence {
    if !is_missing(entry) {
        if identity.is_replaced_at(entry) {
            return Presence::Gone;
        }
        let Ok(named) = fs_err::read(entry.join("gitdir")) else { return Presence::Here };
        // It may be relative to the entry.
        let pointer = entry.join(path_of(named.trim_ascii_end()));
        return if is_missing(&pointer) { Presence::Away } else { Presence::Here };
    }
    match entry.parent().filter(|all| all.ends_with("worktrees")).and_then(Path::parent) {
        Some(repository) if !is_missing(&repository.join("HEAD")) => Presence::Gone,
        _ => Presence::Away,
    }
}

fn is_missing(path: &Path) -> bool {
    let found = fs_err::symlink_metadata(path);
    found.is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}
