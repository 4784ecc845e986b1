//! What `calve worktree add` says of directories of dependencies.

use std::path::Path;

use calve_core::internal::ShownPath;
use calve_git::worktree::Dependency;

/// Says which directories are from another worktree than the donor, and which do not fit their lockfile: of those with one lockfile, the first.
pub(crate) fn lines(dependencies: &[Dependency], donor: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, Dependency { path, from, lockfile, command, .. }) in dependencies.iter().enumerate() {
        if dependencies[..at].iter().any(|other| other.lockfile == *lockfile) {
            continue;
        }
        if let Some(command) = command {
            let (path, lockfile) = (ShownPath(path), ShownPath(lockfile));
            lines.push(format!("warning: `{path}` does not fit `{lockfile}`: run `{command}`"));
        }
        if from != donor {
            lines.push(format!("`{}` comes from `{}`", ShownPath(path), ShownPath(from)));
        }
    }
    lines
}
