//! Finds out what a new worktree is to consist of, before anything of it is made.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::internal::{ShownPath, joined};
use calve_core::options::SpareUse;
use calve_core::report::SkippedEntry;

use crate::dependency_names::dependency;
use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::path_of;
use crate::remedy::Remedy;
use crate::trust::programs::refused_filters;
use crate::worktree::add::ignored::dependencies::Choice;
use crate::worktree::add::ignored::left_behind;
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::add::ignored::{self, CarriedEntries, secrets};
use crate::worktree::add::input_paths::InputPaths;
use crate::worktree::add::options::{AddWarning, IgnoredEntries, UncommittedChanges};
use crate::worktree::add::report::{CarriedFiles, Dependency};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::selector::Selector;
use crate::worktree::add::spares;
use crate::worktree::add::watched_donor::WatchedDonor;
use crate::worktree::status::{GitPath, Status, UntrackedEntry};
use crate::worktree::tracked::TrackedFiles;
use crate::worktree::tracked::conversion::conversions;
use crate::worktree::tracked::index::Index;

pub(crate) struct Survey {
    pub(crate) tracked: TrackedFiles,
    pub(crate) plan: Arc<Selector>,
    pub(crate) roots: Vec<UntrackedEntry>,
    pub(crate) spare: Option<SpareUse>,
    /// Roots that a spare may be handed over for.
    pub(crate) spare_roots: Vec<PathBuf>,
    /// The donor's other entries: [`Survey::carried`] adds the roots.
    pub(crate) untracked: CarriedFiles,
    /// A carried file might not be ignored in the new worktree.
    pub(crate) may_show: bool,
    /// The number of changed and untracked files that stay in the donor.
    pub(crate) uncommitted: u64,
    pub(crate) warnings: Vec<AddWarning>,
}

impl Survey {
    pub(crate) fn carried(&self, donor: &Path) -> CarriedFiles {
        let foreign = self.untracked.dependencies.iter().filter(|one| one.from != donor).map(|one| &one.path);
        let carried = self.roots.iter().map(|root| &root.path).chain(foreign).cloned().collect();
        CarriedFiles { carried, ..self.untracked.clone() }
    }

    pub(crate) fn limit(&mut self, only: Arc<InputPaths>) {
        self.tracked.leave_changed(|path| !only.may_have(&path_of(path), false));
        self.roots.retain(|root| only.may_have(&root.path, root.is_directory));
        self.untracked.dependencies.retain(|one| only.may_have(&one.path, true));
        if let Some(plan) = Arc::get_mut(&mut self.plan) {
            plan.rules.only = Some(only);
        }
    }
}

/// Surveys the new worktree. `index` returns the commit's index, `git` its conversions: both run beside `git status`.
pub(crate) fn survey(
    request: &AddRequest,
    index: impl FnOnce() -> Result<Index> + Send,
    git: Option<&Git>,
) -> Result<Survey> {
    let AddRequest { options, repository, donor, .. } = request;
    let at_donor = Git::at(donor);
    let mut spare = spares::of_donor(donor, &options.clone)?;
    let (mut tracked, status) = compared(request, &at_donor, spare.as_mut(), index, git)?;
    let mut warnings: Vec<_> = tracked.has_submodules.then_some(AddWarning::EmptySubmodules).into_iter().collect();
    let mut left = Vec::new();
    let carries = options.changes == UncommittedChanges::Carry;
    let changed = if carries { changes(request, &at_donor, &status, &mut left)? } else { HashSet::new() };
    tracked.leave_changed(|path| changed.contains(path));
    if let Some(git) = git.filter(|_| request.provenance.is_untrusted()) {
        let names = tracked.index.entries.iter().flat_map(|entry| [&entry.path[..], b"\0"].concat());
        warnings.extend(unfiltered(git, &names.collect::<Vec<u8>>())?);
    }

    let collides = |path: &Path| collides(&tracked, &changed, path);
    let mut entries = CarriedEntries {
        request,
        status: &status,
        rules: Rules::new(&request.config, secrets::rule(request))?,
        include: ignored::included(request.listed_in.as_deref(), &request.config.include)?,
        nested: nested(request),
        collides: &collides,
        roots: Vec::new(),
        env_files: Vec::new(),
        left,
    };
    let mut dependencies = Vec::new();
    if options.ignored == IgnoredEntries::Carry {
        entries.add_ignored(&status.ignored)?;
        let (tracked, entries, changed, worktrees) = (&tracked, &entries, &changed, &repository.worktrees);
        dependencies = Choice { donor, tracked, entries, worktrees, changed }.dependencies()?;
    }
    let mut staying = replaced(donor, &dependencies, &mut entries);
    if carries {
        status.untracked.iter().for_each(|entry| entries.add(entry.clone()));
    }
    let CarriedEntries { rules, nested, roots, env_files, left, .. } = entries;
    let uncommitted = if carries { 0 } else { uncommitted(&status, &nested) };
    let inside = ignored_in_untracked(&status);
    let has_rules = || status.untracked.iter().any(|one| one.path.ends_with(".gitignore"));
    let may_show = !carries && (tracked.ignores_otherwise || !inside.is_empty() || has_rules());
    let carried: HashSet<&PathBuf> = roots.iter().map(|root| &root.path).collect();
    staying.extend(inside.into_iter().filter(|path| !carried.contains(path)).cloned());
    let tracks_below = |path: &Path| tracked.at_or_below(path.as_os_str().as_encoded_bytes()).next().is_some();
    let overlaps = |a: &Path, b: &Path| a != b && (a.starts_with(b) || b.starts_with(a));
    let is_elsewhere = |root: &Path| {
        nested.iter().chain(&staying).any(|path| path.starts_with(root))
            || carried.iter().any(|other| overlaps(other, root))
            || tracks_below(root)
    };
    let spare_roots = match &spare {
        Some(_) => Vec::new(),
        None => spares::with_spares(donor, &roots, &options.clone, is_elsewhere)?,
    };
    let cloned = roots.iter().filter(|root| !spare_roots.contains(&root.path));
    let mut plan = Selector::new(rules, nested, staying, cloned);
    tracked.cloned().for_each(|path| plan.file(path));
    let is_there =
        |path: &&GitPath| fs_err::symlink_metadata(donor.join(path_of(path))).is_ok_and(|found| !found.is_dir());
    changed.iter().filter(is_there).for_each(|path| plan.file(path));
    Ok(Survey {
        tracked,
        plan: Arc::new(plan),
        roots,
        spare,
        spare_roots,
        untracked: CarriedFiles { carried: Vec::new(), env_files, left, dependencies },
        may_show,
        uncommitted,
        warnings,
    })
}

/// Returns whether the commit has a file at or above a path, and no change of the donor takes its place.
fn collides(tracked: &TrackedFiles, changed: &HashSet<GitPath>, path: &Path) -> bool {
    let mut above = path.ancestors().map(|above| above.as_os_str().as_encoded_bytes());
    above.any(|above| tracked.index_of(above).is_some() && !changed.contains(above))
}

fn compared(
    request: &AddRequest,
    at_donor: &Git,
    spare: Option<&mut SpareUse>,
    index: impl FnOnce() -> Result<Index> + Send,
    git: Option<&Git>,
) -> Result<(TrackedFiles, Status)> {
    let repository = &request.repository;
    let mut known = None;
    if let Some(spare) = spare {
        known = WatchedDonor::find(request, spare)?;
        known.iter().for_each(|known| spare.with_record_of(&known.source));
    }
    let known = known.as_ref();
    let look = || {
        let own = known.and_then(WatchedDonor::commit_index);
        // Its index file does not exist yet, and the donor's has the same attributes.
        let at_own = known.zip(git).filter(|_| own.is_some());
        let at_own = at_own.map(|(known, git)| git.clone().with("GIT_INDEX_FILE", &known.index_path));
        let index = own.map_or_else(index, Ok)?;
        let donor_index = match known {
            Some(known) => Cow::Borrowed(&known.index),
            None => Cow::Owned(Index::read(&request.donor_index()?, repository.hash_bytes())?),
        };
        let conversions = conversions(repository, at_own.as_ref().or(git), &index, &donor_index)?;
        Ok::<_, Error>((index, donor_index, conversions))
    };
    let (status, found) = std::thread::scope(|scope| {
        let status =
            scope.spawn(|| known.and_then(|known| known.status(at_donor)).unwrap_or_else(|| Status::read(at_donor)));
        let found = look();
        (joined(status), found)
    });
    let (status, (index, donor_index, conversions)) = (status?, found?);
    Ok((TrackedFiles::compare(repository, index, &donor_index, &status, &conversions), status))
}

fn uncommitted(status: &Status, nested: &HashSet<PathBuf>) -> u64 {
    let changed: HashSet<&GitPath> = status.changed.iter().chain(&status.staged).collect();
    let is_own = |found: &&UntrackedEntry| !nested.iter().any(|inside| inside.starts_with(&found.path));
    let untracked = status.untracked.iter().filter(is_own).count();
    (changed.len() + untracked) as u64
}

/// Returns tracked files that differ from the donor's commit, without secrets that stay. Fails if the new commit changes one, too.
fn changes(request: &AddRequest, git: &Git, status: &Status, left: &mut Vec<SkippedEntry>) -> Result<HashSet<GitPath>> {
    if status.has_conflicts {
        let text = "a merge with conflicts is not finished here, and an unfinished merge cannot be carried";
        return Err(Error::refused(text, Remedy::FinishMergeOrLeaveChanges));
    }
    let mut changed: HashSet<GitPath> = status.changed.iter().chain(&status.staged).cloned().collect();
    // The committed version is no secret.
    let rule = secrets::rule(request);
    let secret = changed.extract_if(|path| rule.leaves(&path_of(path)));
    left.extend(secret.map(|path| SkippedEntry { path: path_of(&path), reason: left_behind::SECRET }));
    let oid = &request.target.oid;
    let differ = git.run(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", oid])?;
    let Some(path) = differ.split(|&byte| byte == 0).find(|path| changed.contains(*path)) else { return Ok(changed) };
    let path = ShownPath(path_of(path));
    let text = format!("`{path}` is changed here, and the new worktree's commit has another version of it");
    Err(Error::refused(text, Remedy::CommitOrLeaveChanges))
}

/// Returns the roots of worktrees inside the donor, including the new one.
pub(super) fn nested(request: &AddRequest) -> HashSet<PathBuf> {
    let all = request.repository.worktrees.iter().map(|worktree| worktree.path.as_path());
    let inside = all.chain([request.path.as_path()]).filter_map(|path| path.strip_prefix(&request.donor).ok());
    inside.filter(|path| !path.as_os_str().is_empty()).map(Path::to_path_buf).collect()
}

/// Removes from the roots dependencies that come from elsewhere, or whose lockfile's others do. Returns them.
fn replaced(donor: &Path, dependencies: &[Dependency], entries: &mut CarriedEntries<'_>) -> HashSet<PathBuf> {
    let CarriedEntries { roots, left, .. } = entries;
    let foreign: Vec<&Dependency> = dependencies.iter().filter(|one| one.from != donor).collect();
    let mut replaced: HashSet<PathBuf> = foreign.iter().map(|one| one.path.clone()).collect();
    for root in roots.iter() {
        let Some(dependency) = dependency(&root.path) else { continue };
        if foreign.is_empty() || replaced.contains(dependency) || dependencies.iter().any(|one| one.path == dependency)
        {
            continue;
        }
        let governed = |one: &&Dependency| {
            let beside = one.lockfile.parent().unwrap_or(Path::new(""));
            one.path.file_name() == dependency.file_name() && dependency.starts_with(beside)
        };
        if foreign.iter().any(governed) {
            replaced.insert(dependency.to_path_buf());
            left.push(SkippedEntry { path: dependency.to_path_buf(), reason: left_behind::OTHER_DONOR });
        }
    }
    roots.retain(|root| !root.path.ancestors().any(|above| replaced.contains(above)));
    replaced
}

/// Returns the ignored entries in untracked directories: the rule for one may be in there and stay behind.
fn ignored_in_untracked(status: &Status) -> Vec<&PathBuf> {
    let directories = status.untracked.iter().filter(|one| one.is_directory);
    let around: HashSet<&Path> = directories.map(|one| one.path.as_path()).collect();
    let ignored = status.ignored.iter().map(|one| &one.path);
    ignored.filter(|path| path.ancestors().any(|above| around.contains(above))).collect()
}

/// Returns a warning for each filter that would run the tree's code, with the number of files that stay as stored.
fn unfiltered(git: &Git, index: &[u8]) -> Result<Vec<AddWarning>> {
    let refused = refused_filters(&git.run(&["config", "-z", "--show-scope", "--list"])?);
    if refused.is_empty() {
        return Ok(Vec::new());
    }
    let said = git.fed(&["check-attr", "--cached", "-z", "--stdin", "filter"], index)?;
    let mut fields = said.split(|&byte| byte == 0);
    let mut counts = vec![0_u64; refused.len()];
    while let (Some(_), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        if let Some(at) = refused.iter().position(|(filter, _)| filter.as_bytes() == value) {
            counts[at] += 1;
        }
    }
    let used = refused.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    Ok(used.map(|((filter, command), files)| AddWarning::Unfiltered { filter, command, files }).collect())
}
