//! What `calve worktree add` says of directories of dependencies.

use std::path::Path;

use calve_core::ShownPath;
use calve_git::worktree::Dependency;
use calve_receipt::{WorktreeDependency, path};

use crate::output;

/// Says which directories are from another worktree than the donor, and which do not fit their lockfile: of those with one lockfile, the first.
pub(crate) fn say(dependencies: &[Dependency], donor: &Path) {
    for (at, Dependency { path, from, lockfile, command, .. }) in dependencies.iter().enumerate() {
        if dependencies[..at].iter().any(|other| other.lockfile == *lockfile) {
            continue;
        }
        if from != donor {
            output::say(&format!("`{}` comes from `{}`", ShownPath(path), ShownPath(from)));
        }
        if let Some(command) = command {
            let (path, lockfile) = (ShownPath(path), ShownPath(lockfile));
            output::say(&format!("`{path}` does not fit `{lockfile}`: run `{command}`"));
        }
    }
}

pub(super) fn receipts(dependencies: &[Dependency]) -> Vec<WorktreeDependency> {
    let one = |one: &Dependency| WorktreeDependency {
        path: path(&one.path),
        from: path(&one.from),
        lockfile: path(&one.lockfile),
        install_needed: one.command.is_some(),
        command: one.command.clone(),
    };
    dependencies.iter().map(one).collect()
}
