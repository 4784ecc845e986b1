//! Adds a worktree: the plot.

pub(crate) mod fill;
pub(crate) mod ignored;
pub(crate) mod known;
pub(crate) mod location;
pub(crate) mod meaning;
pub(crate) mod post_checkout;
pub(crate) mod selector;
pub(crate) mod spares;
pub(crate) mod survey;
pub(crate) mod target;
mod unfiltered;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use calve_core::{CloneOptions, CloneReport, StagedTree, UnreadableEntry, stage_in};

use crate::config::{Hooks, ServiceConfig, SparesRequest};
use crate::environment::remove_own_env_files;
use crate::error::{Error, Result};
use crate::escape::{self, AuditOptions, AuditReport, Fix, FormerPathRule};
use crate::git::Git;
use crate::repository::Repository;
use crate::trust::Provenance;
use crate::worktree::add::ignored::dependencies::Dependency;
use crate::worktree::add::ignored::{LeftBehindReason, LeftEntry};
use crate::worktree::add::post_checkout::{HookRun, post_checkout};
use crate::worktree::add::spares::SpareRoots;
use crate::worktree::add::survey::{AddRequest, Survey, rules_below, selection, survey};
use crate::worktree::add::target::BranchStart;
use crate::worktree::registration::{Registration, sweep};
use crate::worktree::status::Status;
use crate::worktree::tracked::index::Index;
use crate::worktree::tracked::{Checkout, NotClonedReason, TrackedCounts, TrackedFiles, limit_root};

/// Whether entries that git ignores are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoredEntries {
    /// All of them, as far as the project's configuration goes along.
    #[default]
    Carry,
    Leave,
}

/// Whether uncommitted changes and untracked files are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UncommittedChanges {
    /// The new worktree has what was committed.
    #[default]
    Leave,
    /// It has them too, as changes that are not staged.
    Carry,
}

/// Whether a pull request's commit is treated like one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// It gets no secrets, no hook runs, and the worktree is marked ([`crate::trust`]).
    #[default]
    No,
    Yes,
}

/// A worktree to be made.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AddOptions {
    /// A directory in the repository.
    pub start: PathBuf,
    /// The branch to check out, or to make; `-` for the one before; `origin/x`; `pr/123`; a tag, or a commit's id.
    pub branch: String,
    /// The start of a new branch; by default HEAD.
    pub base: Option<String>,
    /// The worktree to take files from: its branch, path or name; by default the one that `start` is in.
    pub from: Option<PathBuf>,
    /// Where to, relative to `start`; by default the place that the configuration gives the branch.
    pub path: Option<PathBuf>,
    /// Check out the commit, and no branch.
    pub is_detached: bool,
    /// The entries that git ignores.
    pub ignored: IgnoredEntries,
    /// The changes that are not committed.
    pub changes: UncommittedChanges,
    pub trust: Trust,
    /// How the engine works: threads, progress, cancelling, the numbers measured for the place.
    pub clone: CloneOptions,
}

/// Something that the user should know of and that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddWarning {
    /// Submodules are empty, as after `git worktree add`.
    EmptySubmodules,
    /// Files are as stored, because a filter would run code of an untrusted pull request.
    Unfiltered {
        /// Its name in git's configuration.
        filter: String,
        /// The commands that it would run.
        command: String,
        files: u64,
    },
    /// Messages of git, or of a filter that it ran, although it ended without an error.
    Git(String),
    /// A warning of the clone engine.
    Engine(calve_core::Warning),
}

/// A worktree that was made.
#[derive(Debug)]
#[non_exhaustive]
pub struct AddReport {
    /// Absolute.
    pub path: PathBuf,
    /// None when HEAD is detached.
    pub branch: Option<String>,
    /// Whether the branch was made for it.
    pub is_new_branch: bool,
    /// The start of the new branch. None for a pull request's.
    pub start: Option<BranchStart>,
    /// The branch that the new one follows.
    pub upstream: Option<String>,
    /// The hash of the commit.
    pub head: String,
    /// The worktree that the files came from.
    pub donor: PathBuf,
    pub pull_request: Option<u64>,
    /// Whose it is. It is a pull request's, too, if it was made from one's worktree.
    pub provenance: Provenance,
    /// The engine's report of the donor's part.
    pub clone: CloneReport,
    /// Tracked files that were cloned.
    pub tracked_cloned: u64,
    /// How many tracked files git wrote, for each reason.
    pub tracked_written: BTreeMap<NotClonedReason, u64>,
    /// The ignored entries that were carried (and with [`UncommittedChanges::Carry`] the untracked ones).
    pub carried: Vec<PathBuf>,
    /// The files of variables that Calve made for the donor, whose ports and databases are in them: they were not carried.
    pub env_files: Vec<PathBuf>,
    /// The other entries that were not, and why.
    pub left: Vec<LeftEntry>,
    /// Where directories of dependencies came from.
    pub dependencies: Vec<Dependency>,
    /// Directories that are spares, each as a clone of its own, by its path in the worktree.
    pub spares: Vec<CloneReport>,
    /// There is room for another spare: work for [`calve_core::Spares::refill`].
    pub spares_wanted: bool,
    /// How many spares of the donor its configuration asks for.
    pub spares_request: Option<SparesRequest>,
    /// How many changed and untracked files stay in the donor; 0 with [`UncommittedChanges::Carry`].
    pub uncommitted: u64,
    /// The references that pointed back into the donor.
    pub audit: AuditReport,
    /// git's own hook, when there is one.
    pub post_checkout: Option<HookRun>,
    /// Other facts that the user should know.
    pub warnings: Vec<AddWarning>,
    /// There is trash beside the worktree: work for [`calve_core::reap`].
    pub trash_waits: bool,
    /// From the call to its return.
    pub elapsed: Duration,
}

/// The plan of [`add`].
#[derive(Debug)]
#[non_exhaustive]
pub struct AddPlan {
    pub path: PathBuf,
    /// None when HEAD is detached.
    pub branch: Option<String>,
    /// Whether the branch would be made.
    pub is_new_branch: bool,
    /// The start of the new branch. None for a pull request's.
    pub start: Option<BranchStart>,
    /// The hash of the commit.
    pub head: String,
    /// The worktree that the files would come from.
    pub donor: PathBuf,
    /// Whose it would be.
    pub provenance: Provenance,
    /// Tracked files that would be cloned, or written by git where it converts them.
    pub tracked_same: u64,
    /// Tracked files that git would write.
    pub tracked_other: u64,
    /// The entries that would be carried.
    pub carried: Vec<PathBuf>,
    /// Those of them that look like secrets.
    pub secrets: Vec<PathBuf>,
    /// The entries that would stay.
    pub left: Vec<LeftEntry>,
    /// Where directories of dependencies would come from.
    pub dependencies: Vec<Dependency>,
}

/// A planned worktree, when nothing of it has been made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AddIntent {
    /// The worktree that files come from.
    pub donor: PathBuf,
    /// The main worktree; none when the repository is bare.
    pub main: Option<PathBuf>,
    /// The commands that the project wants to be run. None for a pull request that is not trusted.
    pub hooks: Hooks,
    /// The services that the donor's configuration names. None for a pull request that is not trusted.
    pub services: BTreeMap<String, ServiceConfig>,
    /// The word of the worktree from whose data ([`crate::environment::Keeper`]) the new one is to get its own, which the new one notes.
    pub data_source: Option<String>,
}

/// Makes a worktree. It is absent or complete at any time, whatever happens to this process, and git does not list it before it is
/// complete.
pub fn add(options: &AddOptions) -> Result<AddReport> {
    add_after(options, |_| Ok(()))
}

/// Makes a worktree as [`add`] does, but makes something only after `before` has agreed.
pub fn add_after<E: From<Error>>(
    options: &AddOptions,
    before: impl FnOnce(&mut AddIntent) -> std::result::Result<(), E>,
) -> std::result::Result<AddReport, E> {
    let started = Instant::now();
    let mut repository = Repository::open(&options.start)?;
    // Before anything is looked up: a branch that a killed run made goes with what else it left.
    if !sweep(&repository.common)?.places.is_empty() {
        repository = Repository::open(&options.start)?;
    }
    let mut request = AddRequest::new(repository, options)?;
    let mut upcoming = AddIntent {
        donor: request.donor.clone(),
        main: request.repository.main().map(Path::to_path_buf),
        hooks: if request.provenance.is_untrusted() { Hooks::default() } else { request.config.hooks.clone() },
        services: if request.provenance.is_untrusted() { BTreeMap::new() } else { request.config.services.clone() },
        data_source: None,
    };
    before(&mut upcoming)?;
    // The data in somebody's database are not for a pull request that he does not trust.
    request.data_source = upcoming.data_source.filter(|_| !request.provenance.is_untrusted());
    Ok(make(options, request, started)?)
}

fn make(options: &AddOptions, mut request: AddRequest, started: Instant) -> Result<AddReport> {
    let parent = request.place.make_parent()?;
    request.path = parent.worktree;

    let spares_request = spares::requested(&request);
    let mut entry = Registration::begin(&request)?;
    let (index_path, oid) = (entry.index(), request.target.oid.clone());
    // No files are there yet; these commands look at none.
    let git = entry.git(&request.donor).with("GIT_INDEX_FILE", &index_path);
    let hash_bytes = request.repository.hash_bytes();
    let index = || {
        git.run(&[&PLAIN[..], &["read-tree", &oid]].concat())?;
        Index::read(&index_path, hash_bytes)
    };
    let survey = survey(&request, options, index, Some(&git))?;
    let (built, report) = stage_in(parent.directory, &request.path, &options.clone, |staged| {
        let mut built = build(staged, &request, options, &entry, survey)?;
        built.audit = Some(audit(staged, &request, options, &built)?);
        entry.seal(&request.repository, &request.target, &staged.path())?;
        Ok::<_, Error>(built)
    })?;
    limit_root(&request.path, &index_path)?;
    entry.show()?;
    let post_checkout = match request.provenance.is_untrusted() {
        true => None,
        false => post_checkout(&request.repository, &request.path, &request.target.oid)?,
    };
    let mut warnings = built.warnings;
    warnings.extend(report.warnings.into_iter().map(AddWarning::Engine));
    Ok(AddReport {
        path: request.path,
        branch: request.target.branch,
        is_new_branch: request.target.is_new,
        start: request.target.start,
        upstream: request.target.upstream,
        head: request.target.oid,
        donor: request.donor,
        pull_request: request.target.pull_request,
        provenance: request.provenance,
        clone: built.clone,
        tracked_cloned: built.tracked.cloned,
        tracked_written: built.tracked.written,
        carried: built.carried,
        env_files: built.env_files,
        left: built.left,
        dependencies: built.dependencies,
        spares: built.spares.used,
        spares_wanted: built.spares.wanted,
        spares_request,
        uncommitted: built.uncommitted,
        audit: built.audit.unwrap_or_default(),
        post_checkout,
        warnings,
        trash_waits: report.trash_waits,
        elapsed: started.elapsed(),
    })
}

/// Settings under which git writes an index that is all in one file, with an entry for each file, and starts no daemon for a place
/// that will be renamed.
pub(crate) const PLAIN: [&str; 6] =
    ["-c", "core.splitIndex=false", "-c", "index.sparse=false", "-c", "core.fsmonitor=false"];

struct StagedWorktree {
    clone: CloneReport,
    tracked: TrackedCounts,
    carried: Vec<PathBuf>,
    env_files: Vec<PathBuf>,
    left: Vec<LeftEntry>,
    dependencies: Vec<Dependency>,
    spares: SpareRoots,
    uncommitted: u64,
    warnings: Vec<AddWarning>,
    /// Tracked files below what was carried.
    tracked_below: HashSet<PathBuf>,
    audit: Option<AuditReport>,
}

/// Returns the entries that the commit tracks although they are ignored.
fn tracked_below(tracked: &TrackedFiles, carried: &[PathBuf]) -> HashSet<PathBuf> {
    let below = carried.iter().flat_map(|root| tracked.at_or_below(root.as_os_str().as_encoded_bytes()));
    below.map(|path| crate::paths::path_of(path)).collect()
}

/// Puts right what points out of the copy, before anybody can see it.
fn audit(
    staged: &mut StagedTree<'_>,
    request: &AddRequest,
    options: &AddOptions,
    built: &StagedWorktree,
) -> Result<AuditReport> {
    if built.carried.is_empty() {
        return Ok(AuditReport::default());
    }
    let others = request.repository.worktrees.iter().filter(|one| !one.is_bare).map(|one| one.path.clone());
    let names = staged.take_names().map(|mut names| {
        // git may have written them.
        built.tracked_below.iter().for_each(|path| names.made(path));
        Arc::new(names)
    });
    let audit = AuditOptions {
        names,
        fix: Fix::Yes,
        below: built.carried.clone(),
        others: others.collect(),
        will_be: Some(request.path.clone()),
        moved: FormerPathRule::Ignored,
        tracked: Some(built.tracked_below.clone()),
        threads: options.clone.threads,
        cancel: options.clone.cancel.clone(),
    };
    escape::audit(&staged.path(), &request.donor, &audit)
}

/// Fills the staged tree.
fn build(
    staged: &mut StagedTree<'_>,
    request: &AddRequest,
    options: &AddOptions,
    entry: &Registration,
    survey: Survey,
) -> Result<StagedWorktree> {
    let Survey { tracked, plan, rules, roots, spare, spare_roots, mut left, dependencies, .. } = survey;
    let Survey { may_show, uncommitted, env_files, mut warnings, .. } = survey;
    let mut clone = options.clone.clone();
    clone.spares = spare;
    clone.select = Some(selection(&plan));
    clone.unreadable = UnreadableEntry::Skip;
    let mut report = staged.clone_root(&request.donor, &clone)?;
    clone.spares = None;
    report.changed = take_notes(&mut report, Path::new(""), &mut left);
    for dependency in dependencies.iter().filter(|dependency| dependency.from != request.donor) {
        clone.select = Some(rules_below(&rules, &dependency.path));
        let from = dependency.from.join(&dependency.path);
        let mut part = staged.clone_below(&from, &dependency.path, &clone)?;
        report.changed.extend(take_notes(&mut part, &dependency.path, &mut left));
        warnings.extend(part.warnings.into_iter().map(AddWarning::Engine));
    }
    let mut spares = SpareRoots { wanted: report.spares_wanted, ..SpareRoots::default() };
    for root in &spare_roots {
        let placed = spares::place(staged, &request.donor, root, &rules, &options.clone, &mut left)?;
        spares.used.extend(placed.used);
        report.changed.extend(placed.changed);
        spares.wanted |= placed.wanted;
    }
    for pointer in plan.pointers() {
        // A `.git` file of a worktree: what is beside it is that worktree.
        if is_worktree(&request.donor.join(&pointer))
            && let Some(directory) = pointer.parent()
        {
            staged.remove(directory)?;
            left.push(LeftEntry { path: directory.to_path_buf(), reason: LeftBehindReason::NestedWorktree });
        }
    }
    warnings.extend(report.warnings.iter().cloned().map(AddWarning::Engine));
    let files = staged.path();
    let git = entry.git(&files);
    let mut carried: Vec<PathBuf> = roots.into_iter().map(|root| root.path).collect();
    carried.extend(dependencies.iter().filter(|one| one.from != request.donor).map(|one| one.path.clone()));
    // A spare has them, and a program could use the donor's database by them.
    remove_own_env_files(&files, &env_files)?;
    let tracked_below = tracked_below(&tracked, &carried);
    let threads = options.clone.threads.map_or(2, std::num::NonZeroUsize::get);
    let checkout = Checkout {
        files: &files,
        index_path: &entry.index(),
        commit: &request.target.oid,
        is_sparse: request.is_sparse,
        promisor: request.repository.promisor(),
        fetching: &request.repository.git_to_fetch(),
        threads,
    };
    let tracked = tracked.settle(&git, &checkout)?;
    warnings.extend(tracked.said.clone().map(AddWarning::Git));
    if may_show {
        remove_shown(staged, &git, &mut left)?;
    }
    carried.sort();
    carried.retain(|path| !left.iter().any(|left| left.path == *path));
    left.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(StagedWorktree {
        clone: report,
        tracked,
        carried,
        env_files,
        left,
        dependencies,
        spares,
        uncommitted,
        warnings,
        tracked_below,
        audit: None,
    })
}

/// Adds what was left out of the clone at `at`. Returns the entries that changed while it was made, relative to the root.
fn take_notes(report: &mut CloneReport, at: &Path, left: &mut Vec<LeftEntry>) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.as_os_str().is_empty() { at.to_path_buf() } else { at.join(path) };
    let skipped = report.skipped.drain(..);
    left.extend(
        skipped.map(|skipped| LeftEntry {
            path: at.join(skipped.path),
            reason: LeftBehindReason::of_engine(skipped.reason),
        }),
    );
    report.changed.drain(..).map(below).collect()
}

/// Returns whether a `.git` file points to a worktree's entry, rather than a submodule's.
fn is_worktree(pointer: &Path) -> bool {
    fs_err::read(pointer).is_ok_and(|text| {
        text.starts_with(b"gitdir: ") && text.split(|&byte| byte == b'/').any(|name| name == b"worktrees")
    })
}

/// Removes entries that the new commit's rules do not ignore, which would be in the way: `git status` is to be clean.
fn remove_shown(staged: &StagedTree<'_>, git: &Git, left: &mut Vec<LeftEntry>) -> Result<()> {
    for found in Status::of(git)?.untracked {
        let path = crate::paths::path_of(&found.path);
        staged.remove(&path)?;
        left.push(LeftEntry { path, reason: LeftBehindReason::NotIgnored });
    }
    Ok(())
}

/// Plans [`add`]. Makes nothing, but for what fetching a pull request makes.
pub fn plan(options: &AddOptions) -> Result<AddPlan> {
    let request = AddRequest::new(Repository::open(&options.start)?, options)?;
    let git = request.repository.git();
    let oid = request.target.oid.clone();
    let index = || Ok(Index::listed(&git.run(&["ls-tree", "-r", "-z", "--full-tree", &oid])?));
    let survey = survey(&request, options, index, None)?;
    let (tracked_same, tracked_other) = survey.tracked.counts(request.is_sparse);
    let foreign = survey.dependencies.iter().filter(|one| one.from != request.donor).map(|one| one.path.clone());
    let mut carried: Vec<PathBuf> = survey.roots.iter().map(|root| root.path.clone()).chain(foreign).collect();
    carried.sort();
    let is_secret = |root: &&crate::worktree::add::ignored::CarriedRoot| {
        crate::worktree::add::ignored::rules::is_secret(&root.path, root.is_directory)
    };
    Ok(AddPlan {
        secrets: survey.roots.iter().filter(is_secret).map(|root| root.path.clone()).collect(),
        path: request.path,
        branch: request.target.branch,
        is_new_branch: request.target.is_new,
        start: request.target.start,
        head: request.target.oid,
        donor: request.donor,
        provenance: request.provenance,
        tracked_same,
        tracked_other,
        carried,
        left: survey.left,
        dependencies: survey.dependencies,
    })
}
