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
    let entry = entry_of(root)?.unwrap_or_else(|| root.join(".git"));
    check_original(&entry, root)?;
    let was_untrusted = provenance_of(root)?.is_untrusted();
    if let Some(commit) = Git::at(root).answer(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? {
        note_trust(&entry, &commit)?;
    }
    Ok(remove_mark(&entry)? || was_untrusted)
}

/// Returns the provenance of the worktree with this root; in the main one, of the commit that is checked out.
pub fn provenance_of(root: &Path) -> Result<Provenance> {
    if is_untrusted(root) {
        return Ok(Provenance::Untrusted);
    }
    // git may have made it, or another commit was checked out there since.
    let repository = Repository::open(root)?;
    let main = repository.worktrees.first().filter(|main| !main.is_bare && repository.own == repository.common);
    match main.and_then(|main| main.head.as_deref()) {
        Some(head) if repository.is_foreign(head)? => Ok(Provenance::Untrusted),
        _ => Ok(recorded(root)),
    }
}
