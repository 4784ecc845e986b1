use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_core::internal::json::{As, ReceiptPath};
use calve_core::report::SkippedEntry;
use calve_core::{CloneReport, RemovalWait, RemoveOptions, remove_tree};
use serde::Serialize;
use tempfile::TempDir;

use crate::config::{Hooks, ServiceConfig, SparesRequest};
use crate::error::Result;
use crate::escape::AuditReport;
use crate::trust::Provenance;
use crate::worktree::add::options::AddWarning;
use crate::worktree::add::post_checkout::HookRun;
use crate::worktree::add::target::AddTarget;
use crate::worktree::tracked::TrackedCounts;

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewWorktree {
    /// The new worktree, as an absolute path.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    #[serde(flatten)]
    pub target: AddTarget,
    /// The worktree that the files come from.
    #[serde(rename = "from", with = "As::<ReceiptPath>")]
    pub donor: PathBuf,
    #[serde(skip)]
    pub pull_request: Option<u64>,
    /// True if the worktree is a pull request's and not trusted.
    // Also one with the files of a pull request's worktree.
    #[serde(rename = "untrusted", with = "As::<bool>")]
    pub provenance: Provenance,
}

/// A directory of dependencies, such as `node_modules`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename = "WorktreeDependency")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Dependency {
    /// The directory, relative to the worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub path: PathBuf,
    /// The worktree that it was cloned from.
    #[serde(with = "As::<ReceiptPath>")]
    pub from: PathBuf,
    /// Its lockfile, relative to the worktree.
    #[serde(with = "As::<ReceiptPath>")]
    pub lockfile: PathBuf,
    /// True if what is installed is not what the lockfile names, or was not installed completely.
    pub install_needed: bool,
    /// The command that installs it, to be run beside the lockfile; absent if no install is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The donor's entries that git does not track, and their fate.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CarriedFiles {
    /// Ignored and, with `--dirty`, untracked paths that the new worktree has too.
    #[serde(with = "As::<Vec<ReceiptPath>>")]
    pub carried: Vec<PathBuf>,
    /// Files of variables that Calve made for the donor, with its ports and databases: they are not carried.
    #[serde(skip)]
    pub env_files: Vec<PathBuf>,
    /// Paths that the new worktree does not have.
    pub left: Vec<SkippedEntry>,
    /// The directories of dependencies.
    pub dependencies: Vec<Dependency>,
}

impl CarriedFiles {
    /// Removes entries that are left after all, and dependencies without a carried entry. Sorts the rest.
    pub(crate) fn finish(&mut self) {
        let Self { carried, left, dependencies, .. } = self;
        let gone: HashSet<&Path> = left.iter().map(|left| left.path.as_path()).collect();
        carried.retain(|path| !path.ancestors().any(|above| gone.contains(above)));
        dependencies.retain(|one| carried.iter().any(|path| one.path.starts_with(path) || path.starts_with(&one.path)));
        self.carried.sort();
        self.left.sort_by(|a, b| a.path.cmp(&b.path));
    }
}

/// A worktree that was added or, with [`PlanDetails`], would be.
#[derive(Debug)]
pub struct AddReport<D = AddDetails> {
    pub worktree: NewWorktree,
    pub tracked: TrackedCounts,
    pub untracked: CarriedFiles,
    pub details: D,
}

#[derive(Debug)]
pub struct AddDetails {
    /// The engine's report of the donor's part. `spares_wanted` covers all parts.
    pub clone: CloneReport,
    /// Directories made from spares, each as its own clone, by its path in the worktree.
    pub spares: Vec<CloneReport>,
    /// Changed and untracked files left in the donor; 0 with [`UncommittedChanges::Carry`](super::UncommittedChanges).
    pub uncommitted: u64,
    pub audit: AuditReport,
    pub warnings: Vec<AddWarning>,
    pub spares_request: Option<SparesRequest>,
    pub post_checkout: Option<HookRun>,
    /// There is trash beside the worktree: work for [`calve_core::reap`].
    pub trash_waits: bool,
    pub elapsed: Duration,
}

#[derive(Debug)]
pub struct PlanDetails {
    pub secrets: Vec<PathBuf>,
    /// The services in its own configuration, or the error in that.
    pub services: Result<BTreeMap<String, ServiceConfig>>,
    /// The facts that [`add_after`](super::add_after) would ask about.
    pub intent: AddIntent,
    /// A directory with the services' `inputs` as the worktree would have them. `None`: they name none.
    pub inputs: Option<PlanScratch>,
}

/// A plan's directory, removed when dropped, even with clones of read-only directories in it.
#[derive(Debug)]
pub struct PlanScratch {
    pub(crate) directory: TempDir,
    pub files: PathBuf,
}

impl Drop for PlanScratch {
    fn drop(&mut self) {
        let options = RemoveOptions { wait: RemovalWait::Yes, ..RemoveOptions::default() };
        // Nothing may have been made.
        let _ = remove_tree(&self.files, &options);
    }
}

#[derive(Debug, Clone)]
pub struct AddIntent {
    pub donor: PathBuf,
    /// `None` for a bare repository.
    pub main: Option<PathBuf>,
    pub head: String,
    /// The commands that the project wants to be run. Empty for an untrusted pull request.
    pub hooks: Hooks,
    /// The services in the donor's configuration. Empty for an untrusted pull request.
    pub services: BTreeMap<String, ServiceConfig>,
}
