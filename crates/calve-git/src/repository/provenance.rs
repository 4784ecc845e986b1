use std::path::Path;

use crate::error::Result;
use crate::git::Git;
use crate::paths::real;
use crate::repository::opened::Repository;
use crate::repository::state::check_original;
use crate::trust::{Provenance, entry_of, is_untrusted, note_trust, recorded, remove_mark};

/// Trusts the commit checked out in the worktree around `path`. Returns whether the worktree was untrusted before.
pub fn trust_commit(path: &Path) -> Result<bool> {
    let real = real(path);
    let root = real.ancestors().find(|above| fs_err::symlink_metadata(above.join(".git")).is_ok());
    let Some(root) = root else { return Ok(false) };
    let Some(entry) = entry_of(root)? else { return Ok(false) };
    check_original(&entry, root)?;
    if let Some(commit) = Git::at(root).answer(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? {
        note_trust(&entry, &commit)?;
    }
    remove_mark(&entry)
}

/// Returns the provenance of the worktree with this root. The main one is the user's, whatever is checked out there.
pub fn provenance_of(root: &Path) -> Result<Provenance> {
    if !is_untrusted(root) && entry_of(root)?.is_some() {
        // git may have made it, or another commit was checked out there since.
        Repository::open(root)?;
    }
    Ok(recorded(root))
}
