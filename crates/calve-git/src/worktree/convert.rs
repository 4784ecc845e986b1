//! Converts a worktree to a btrfs subvolume, so that cloning it is a snapshot.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calve_core::internal::json::{As, Milliseconds, ReceiptPath};
use calve_core::internal::{ShownPath, StageReport, StagedTree, supersede};
use calve_core::report::{SkipReason, SkippedEntry, TrashedTree};
use calve_core::{CloneOptions, CloneReport, CloneVerification, Requirement};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::path_of;
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::worktree::processes::check_idle;
use crate::worktree::tracked::index::Index;

/// The report of `calve worktree convert`.
#[derive(Debug, Serialize)]
#[serde(tag = "schema", rename = "calve.worktree-convert/1")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConvertReport {
    /// The worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// False if the worktree was a subvolume before.
    pub converted: bool,
    /// Where the old directory waits for [`calve_core::reap`].
    #[serde(skip)]
    pub trashed: Option<TrashedTree>,
    /// The old directory, if something was written in both during the exchange. Null otherwise.
    #[serde(with = "As::<Option<ReceiptPath>>")]
    pub kept: Option<PathBuf>,
    /// The time that it took in milliseconds.
    #[serde(rename = "elapsed_ms", with = "As::<Milliseconds>")]
    pub elapsed: Duration,
}

/// Clones the worktree that `start` is in into a new subvolume, compares the two, and exchanges them in one step.
///
/// Does not check for unsaved work, because nothing is lost: the repository's entry, with HEAD, index and references, stays as it is, and the
/// clone has every file, ignored or not, compared by contents before the old directory goes to the trash.
///
/// Refuses while a process is inside, because it would go on in the old directory. Writes of short-lived programs are not lost either: if
/// something changed before the exchange, it is undone, or the old directory is kept under another name.
pub fn convert(start: &Path, options: &CloneOptions) -> Result<ConvertReport> {
    let started = Instant::now();
    let repository = Repository::open(start)?;
    let no_worktree = || Error::refused("there is no worktree here to convert", Remedy::EnterWorktree);
    let path = repository.here.clone().ok_or_else(no_worktree)?;
    repository.check_here()?;
    if calve_core::internal::is_subvolume(&path)? {
        return Ok(ConvertReport { path, converted: false, trashed: None, kept: None, elapsed: started.elapsed() });
    }
    check_idle(&path)?;
    let make = |staged: &mut StagedTree<'_>| {
        if !staged.make_root()? {
            let text = format!("`{}` is not on btrfs, and only btrfs has subvolumes", ShownPath(&path));
            return Err(Error::refused(text, Remedy::AddWithoutConversion));
        }
        let mut clone = options.clone();
        clone.verify = CloneVerification::Contents;
        clone.require.push(Requirement::Stable);
        check_complete(&staged.clone_root(&path, &clone)?)?;
        restat(&repository, &path, &staged.path())?;
        check_idle(&path)
    };
    let StageReport { trashed, kept, .. } = supersede(&path, options, make, check_idle).map_err(while_at_work)?;
    Ok(ConvertReport { path, converted: true, trashed, kept, elapsed: started.elapsed() })
}

/// Refuses if the engine left something out, such as a socket: it would go with the old directory.
fn check_complete(report: &CloneReport) -> Result<()> {
    let lacking = report.skipped.iter().find(|skipped| skipped.reason != SkipReason::CalvesOwn);
    let Some(SkippedEntry { path, reason }) = lacking else { return Ok(()) };
    let text = format!("`{}` would be missing in the subvolume ({})", ShownPath(path), reason.text());
    Err(Error::refused(text, Remedy::MoveAwayUncloned))
}

/// Replaces the engine's error about a requirement that the user did not state.
fn while_at_work(error: Error) -> Error {
    match error {
        Error::Clone(calve_core::Error::RequirementRefused { detail: Some(detail), .. }) => {
            Error::refused(detail, Remedy::StopWriters)
        }
        other => other,
    }
}

/// Gives the index the new inodes, so that git need not read every file.
fn restat(repository: &Repository, old: &Path, new: &Path) -> Result<()> {
    let index = Git::at(old).own_file("index")?;
    // A linked worktree's index is elsewhere and is not cloned: git refreshes it itself.
    let Ok(inside) = index.strip_prefix(old).map(Path::to_path_buf) else { return Ok(()) };
    let at = new.join(inside);
    let mut index = Index::read(&at, repository.hash_bytes())?;
    for entry in 0..index.entries.len() {
        let file = path_of(&index.entries[entry].path);
        if let Ok(stat) = rustix::fs::lstat(new.join(file))
            && index.entries[entry].is_of(&stat)
        {
            index.set_stat(entry, &stat);
        }
    }
    index.save(&at).map(|_| ())
}
