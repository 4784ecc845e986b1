//! A worktree's environment: its ports, which no other worktree shares, its env files, and the owner of its data.

mod env_file;
mod leases;
mod leasing_worktree;
mod other_values;
mod worktree_id;

use std::path::{Path, PathBuf};

pub use env_file::{
    EnvFile, EnvFileOutcome, env_file_inside, env_file_text, follow_env_file, is_outdated_env_file, is_own_env_file,
    may_have_directory, remove_own_env_files, untracked_files, write_env_file,
};
pub use leases::{LeasedPort, Leases};
pub(crate) use leases::{is_in_use, port_variable};
pub use leasing_worktree::LeasingWorktree;
pub use other_values::{OtherValues, other_values};
pub use worktree_id::{WorktreeId, data_source, forget_data_source};

use crate::error::Result;
use crate::repository::entries;
use crate::{repository, trust};

/// Returns a linked worktree's own directory, which names the repository in `commondir`; a submodule's does not.
pub fn linked_entry(root: &Path) -> Option<PathBuf> {
    trust::entry_of(root).ok()?.filter(|entry| entry.join("commondir").exists())
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
