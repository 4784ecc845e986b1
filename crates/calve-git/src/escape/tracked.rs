//! Files that git tracks are the project's own, and not for a repair to change.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::git::Git;

use crate::escape::options::AuditOptions;
use crate::escape::report::{Action, Explanation, PendingFinding};

pub(super) fn only_report(found: &mut [PendingFinding], new: &Path, options: &AuditOptions) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let asked;
    let tracked = match &options.tracked {
        Some(tracked) => tracked,
        None => {
            asked = ask(new)?;
            &asked
        }
    };
    for found in found.iter_mut() {
        if tracked.contains(&found.path) && found.action != Action::Reported {
            found.only_reported(Explanation::Tracked);
        }
        found.steps.retain(|step| !tracked.contains(step.path()));
    }
    Ok(())
}

/// Asks git for the tracked files. There are none where there is no repository.
fn ask(new: &Path) -> Result<HashSet<PathBuf>> {
    if new.join(".git").symlink_metadata().is_err() {
        return Ok(HashSet::new());
    }
    let listed = Git::at(new).run(&["ls-files", "-z", "--recurse-submodules"])?;
    let names = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| Path::new(OsStr::from_bytes(name)).to_path_buf()).collect())
}
