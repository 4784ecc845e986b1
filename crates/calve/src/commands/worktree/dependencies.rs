//! What `calve worktree add` says of directories of dependencies.

use std::path::Path;

use calve_core::ShownPath;
use calve_git::worktree::Dependency;
use calve_receipt::{WorktreeDependency, path};

use crate::output;

/// Says which directories are from another worktree than the donor, and which do not fit their lockfile.
pub(crate) fn say(dependencies: &[Dependency], donor: &Path) {
    for dependency in dependencies {
        if dependency.from != donor {
            output::say(&format!("`{}` comes from `{}`", ShownPath(&dependency.path), ShownPath(&dependency.from)));
        }
        if let Some(command) = &dependency.command {
            output::say(&format!(
                "`{}` does not fit `{}`: run `{command}`",
                ShownPath(&dependency.path),
                ShownPath(&dependency.lockfile)
            ));
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
