//! A worktree's environment: its ports, which no other worktree shares, its env files, and the owner of its data.

mod env_file;
mod leases;
mod other_values;
mod worktree_id;

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use env_file::{
    EnvFile, EnvFileOutcome, env_file_inside, env_file_text, follow_env_file, is_outdated_env_file, is_own_env_file,
    may_have_directory, remove_own_env_files, untracked_files, write_env_file,
};
pub use leases::Leases;
pub(crate) use leases::is_in_use;
pub use other_values::{OtherValues, other_values};
pub use worktree_id::{WorktreeId, data_source, forget_data_source};

use crate::error::Result;
use crate::paths::{is_missing, real};
use crate::repository::entries;
use crate::{repository, trust};

/// A port of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "PortReceipt")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeasedPort {
    /// The name in .calve.toml.
    pub name: String,
    /// The variable: `WEB_PORT` for the name `web`.
    pub variable: String,
    /// The number.
    #[serde(rename = "port")]
    pub number: u16,
}

impl LeasedPort {
    fn new(name: &str, number: u16) -> LeasedPort {
        LeasedPort { name: name.to_owned(), variable: port_variable(name), number }
    }
}

/// Returns a port's variable. The ending keeps a project from setting variables that programs heed, like `PATH`.
pub(crate) fn port_variable(name: &str) -> String {
    format!("{}_PORT", name.to_ascii_uppercase().replace('-', "_"))
}

/// A worktree that leases ports, identified by git's own directory of it, which stays when the worktree moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasingWorktree {
    entry: PathBuf,
    identity: Identity,
    is_linked: bool,
}

impl LeasingWorktree {
    pub fn find(root: &Path) -> Result<LeasingWorktree> {
        let entry = own_directory(root)?;
        let identity = Identity::read(&entry)?;
        let is_linked = entry.join("commondir").exists();
        Ok(LeasingWorktree { entry, identity, is_linked })
    }
}

fn own_directory(root: &Path) -> Result<PathBuf> {
    Ok(trust::entry_of(root)?.unwrap_or_else(|| real(&root.join(".git"))))
}

/// Returns a linked worktree's own directory, which names the repository in `commondir`; a submodule's does not.
pub fn linked_entry(root: &Path) -> Option<PathBuf> {
    trust::entry_of(root).ok()?.filter(|entry| entry.join("commondir").exists())
}

/// Distinguishes a worktree's git directory from a former or a later one at the same path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: u64,
    /// Nanoseconds at which git made a linked worktree, or 0: ext4 reuses the inode number of a removed directory.
    made: u64,
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

    fn is(&self, other: &Identity) -> bool {
        // A restored backup has other inode numbers.
        if self.made == 0 || other.made == 0 { self.inode == other.inode } else { self.made == other.made }
    }

    fn is_at(&self, entry: &Path) -> bool {
        Identity::read(entry).is_ok_and(|found| found.is(self))
    }

    fn is_replaced_at(&self, entry: &Path) -> bool {
        Identity::read(entry).is_ok_and(|found| !found.is(self))
    }

    fn presence_at(&self, entry: &Path) -> Presence {
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

pub fn root_of(path: &Path) -> Result<PathBuf> {
    repository::asked(path, &["rev-parse", "--show-toplevel"])
}

/// Refuses the copy of a linked worktree, which has no ports and no data of its own. Notes the place of a moved one.
pub fn check_original(root: &Path) -> Result<()> {
    let Some(entry) = trust::entry_of(root)? else { return Ok(()) };
    let is_known = repository::state::check_original(&entry, root)?;
    if !is_known && entries::worktree_of(&entry).is_some() {
        // A read-only repository goes without the note.
        let _ = entries::note(&entry, entries::MOVED, root);
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// Present, or unknown.
    Here,
    /// Its files or its repository are not in place: moved, deleted, or on a disk that is not mounted.
    Away,
    /// The repository has forgotten it, or another worktree is in its place.
    Gone,
}
