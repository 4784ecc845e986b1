//! Finding out what a new worktree is to consist of, before anything of it is made.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calve_core::{Decision, EntrySelector, Patterns, Selection, ShownPath, SpareUse};

use crate::config::{Config, Secrets};
use crate::environment::is_own_env_file;
use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{path_of, plain};
use crate::place::Place;
use crate::remedy::Remedy;
use crate::repository::{Repository, joined};
use crate::trust::{self, ForeignPart, Provenance};
use crate::worktree::add::ignored::dependencies::{Choice, Dependency};
use crate::worktree::add::ignored::rules::{self, Rules};
use crate::worktree::add::ignored::{self, CarriedRoot, CarryFacts, LeftBehindReason, LeftEntry};
use crate::worktree::add::known::KnownDonor;
use crate::worktree::add::selector::Selector;
use crate::worktree::add::spares;
use crate::worktree::add::target::{self, Target, TargetRequest};
use crate::worktree::add::unfiltered::unfiltered;
use crate::worktree::add::{AddOptions, AddWarning, IgnoredEntries, Trust, UncommittedChanges};
use crate::worktree::status::{GitPath, Status};
use crate::worktree::tracked::TrackedFiles;
use crate::worktree::tracked::conversion::{Conversion, conversions};
use crate::worktree::tracked::index::Index;

/// The request, in terms of one repository.
pub(crate) struct AddRequest {
    pub(crate) repository: Repository,
    /// The worktree that files come from.
    pub(crate) donor: PathBuf,
    pub(crate) target: Target,
    pub(crate) place: Place,
    /// Absolute; its parent exists unless this is a dry run.
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    pub(crate) leaves_secrets: bool,
    /// Whose the new worktree will be. It is a pull request's if its commit or the donor is.
    pub(crate) provenance: Provenance,
    /// Whose the commit is.
    pub(crate) of_commit: Provenance,
    /// The worktree whose lists say what is carried.
    pub(crate) listed_in: Option<PathBuf>,
    /// The donor has only a part of what is tracked, and so will the new worktree.
    pub(crate) is_sparse: bool,
    /// The word of the worktree from whose data the new one is to get its own.
    pub(crate) data_source: Option<String>,
}

impl AddRequest {
    /// Refuses what makes no sense. Makes nothing but, for a pull request, what fetching it makes.
    pub(crate) fn new(repository: Repository, options: &AddOptions) -> Result<AddRequest> {
        let donor = match &options.from {
            Some(from) => repository.find_usable(from)?.path.clone(),
            None => repository.here.clone().ok_or_else(no_donor)?,
        };
        repository.check()?;
        let mut is_sparse = repository.is_sparse();
        if repository.here.as_ref() != Some(&donor) {
            // Settings may be a worktree's own.
            let at_donor = Repository::open(&donor)?;
            if at_donor.here.is_none() {
                return Err(no_donor());
            }
            at_donor.check()?;
            is_sparse = at_donor.is_sparse();
        }
        let of_donor = match options.trust {
            Trust::No => trust::recorded(&donor)?,
            Trust::Yes => Provenance::TrustedByUser,
        };
        let listed_in = match of_donor.is_untrusted() {
            // Its own list is that of the pull request.
            true => repository.main().map(Path::to_path_buf),
            false => Some(donor.clone()),
        };
        let config = listed_in.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        let branch = match options.branch.as_str() {
            "-" => target::previous(&repository.git())?,
            branch => branch.to_owned(),
        };
        let asked = TargetRequest { branch: &branch, base: options.base.as_deref(), is_detached: options.is_detached };
        let target = target::resolve(&repository, &asked)?;
        let place = match &options.path {
            Some(path) => Place::Anywhere(plain(&options.start.join(path))),
            None => config.place(&repository, target.branch.as_deref().unwrap_or(&branch))?,
        };
        place.check()?;
        let path = place.path();
        if fs_err::symlink_metadata(&path).is_ok() {
            return Err(calve_core::Error::DestinationExists(path).into());
        }
        let of_commit = match options.trust {
            Trust::No => target::provenance(&repository, &target)?,
            Trust::Yes => Provenance::TrustedByUser,
        };
        let provenance = of_commit.with_files_of(of_donor);
        let leaves_secrets = provenance.is_untrusted() || config.secrets == Some(Secrets::Leave);
        let data_source = None;
        Ok(AddRequest {
            repository,
            donor,
            target,
            place,
            path,
            config,
            leaves_secrets,
            provenance,
            of_commit,
            listed_in,
            is_sparse,
            data_source,
        })
    }

    /// Returns the part of the worktree that makes it untrusted.
    pub(crate) fn foreign_part(&self) -> ForeignPart {
        if self.of_commit.is_untrusted() { ForeignPart::Commit } else { ForeignPart::Files }
    }
}

pub(crate) fn no_donor() -> Error {
    Error::refused("there is no worktree here to take files from", Remedy::NameSource)
}

/// The parts that it will consist of.
pub(crate) struct Survey {
    pub(crate) tracked: TrackedFiles,
    pub(crate) plan: Arc<Selector>,
    pub(crate) rules: Rules,
    pub(crate) roots: Vec<CarriedRoot>,
    /// The spares of the whole donor.
    pub(crate) spare: Option<SpareUse>,
    /// Those of the roots that a spare may be handed over for.
    pub(crate) spare_roots: Vec<PathBuf>,
    /// The donor's files of variables that Calve made, which have its ports and databases: no roots.
    pub(crate) env_files: Vec<PathBuf>,
    pub(crate) left: Vec<LeftEntry>,
    pub(crate) dependencies: Vec<Dependency>,
    /// A carried file may not be ignored in the new worktree.
    pub(crate) may_show: bool,
    /// How many changed and untracked files the donor keeps.
    pub(crate) uncommitted: u64,
    pub(crate) warnings: Vec<AddWarning>,
}

/// Finds the parts that the new worktree consists of. `index` returns the commit's index, and `git` asks for the conversion of its files;
/// both run while git looks at the donor.
pub(crate) fn survey(
    request: &AddRequest,
    options: &AddOptions,
    index: impl FnOnce() -> Result<Index> + Send,
    git: Option<&Git>,
) -> Result<Survey> {
    let AddRequest { repository, donor, .. } = request;
    let at_donor = Git::at(donor);
    let mut spare = spares::of_donor(donor, &options.clone)?;
    let (mut tracked, status) = compared(request, &at_donor, spare.as_mut(), index, git)?;
    let mut warnings: Vec<_> = tracked.has_submodules.then_some(AddWarning::EmptySubmodules).into_iter().collect();
    let mut left = Vec::new();
    let changed = match options.changes {
        UncommittedChanges::Carry => changes(request, &at_donor, &status, &mut left)?,
        UncommittedChanges::Leave => HashSet::new(),
    };
    tracked.leave_changed(|path| changed.contains(path));
    if let Some(git) = git.filter(|_| request.provenance.is_untrusted()) {
        let names = tracked.index.entries.iter().flat_map(|entry| [&entry.path[..], b"\0"].concat());
        warnings.extend(unfiltered(git, &names.collect::<Vec<u8>>())?);
    }

    let rules = Rules { exclude: Patterns::new(&request.config.exclude)?, leaves_secrets: request.leaves_secrets };
    let nested = nested(request);
    let include = ignored::included(request.listed_in.as_deref(), &request.config.include)?;
    let collides = |path: &Path| path.ancestors().any(|above| tracked.has(above.as_os_str().as_encoded_bytes()));
    let carry = CarryFacts { donor, rules: &rules, include: include.as_ref(), nested: &nested, collides: &collides };
    let mut roots = match options.ignored {
        IgnoredEntries::Carry => carry.ignored(&status.ignored, &mut left)?,
        IgnoredEntries::Leave => Vec::new(),
    };
    let mut dependencies = Vec::new();
    if options.ignored == IgnoredEntries::Carry {
        let wanted = |path: &Path| {
            include.as_ref().is_none_or(|include| include.covers(path, true))
                && rules.leave(path, true).is_none()
                && !collides(path)
        };
        let (tracked, roots, changed, worktrees) = (&tracked, &roots, &changed, &repository.worktrees);
        dependencies = Choice { tracked, donor, roots, worktrees, wanted: &wanted, changed }.dependencies()?;
    }
    let replaced = replaced(donor, &dependencies, &mut roots, &mut left);
    if options.changes == UncommittedChanges::Carry {
        roots.extend(carry.untracked(&status.untracked, &mut left));
    }
    let own = roots.extract_if(.., |root| !root.is_directory && is_own_env_file(donor, &root.path));
    let env_files = own.map(|root| root.path).collect();
    let uncommitted = match options.changes {
        UncommittedChanges::Carry => 0,
        UncommittedChanges::Leave => uncommitted(&status, &nested),
    };
    let may_show =
        options.changes == UncommittedChanges::Leave && (tracked.ignores_otherwise || hidden_in_untracked(&status));
    let is_inside_of: Vec<PathBuf> = nested.iter().chain(&replaced).cloned().collect();
    let mut plan = Selector::new(rules.clone(), nested, replaced);
    let tracks_below = |path: &Path| tracked.index.entries.iter().any(|file| path_of(&file.path).starts_with(path));
    let is_elsewhere = |root: &Path| is_inside_of.iter().any(|path| path.starts_with(root)) || tracks_below(root);
    let spare_roots = match &spare {
        Some(_) => Vec::new(),
        None => spares::with_spares(donor, &roots, &options.clone, is_elsewhere)?,
    };
    roots.iter().filter(|root| !spare_roots.contains(&root.path)).for_each(|root| plan.root(root));
    tracked.cloned().for_each(|path| plan.file(path));
    changed.iter().filter(|path| exists(donor, path)).for_each(|path| plan.file(path));
    Ok(Survey {
        tracked,
        plan: Arc::new(plan),
        rules,
        roots,
        spare,
        spare_roots,
        env_files,
        left,
        dependencies,
        may_show,
        uncommitted,
        warnings,
    })
}

/// Compares the commit's index with the donor, whose state git tells meanwhile.
fn compared(
    request: &AddRequest,
    at_donor: &Git,
    spare: Option<&mut SpareUse>,
    index: impl FnOnce() -> Result<Index> + Send,
    git: Option<&Git>,
) -> Result<(TrackedFiles, Status)> {
    let repository = &request.repository;
    if let Some(spare) = spare
        && let Some(known) = KnownDonor::of(request, spare)?
    {
        spare.knowing(&known.source);
        return known.compared(request, at_donor, index, git);
    }
    let look = || {
        let index = index()?;
        let donor_index = Index::read(&donor_index(request)?, repository.hash_bytes())?;
        let conversions = converted(repository, git, &index, &donor_index)?;
        Ok::<_, Error>((index, donor_index, conversions))
    };
    let (status, found) = std::thread::scope(|scope| {
        let status = scope.spawn(|| Status::of(at_donor));
        let found = look();
        (joined(status), found)
    });
    let (status, (index, donor_index, conversions)) = (status?, found?);
    Ok((TrackedFiles::compare(repository, index, &donor_index, &status, &conversions), status))
}

/// Returns where the donor's index is.
pub(crate) fn donor_index(request: &AddRequest) -> Result<PathBuf> {
    match request.repository.own_directory(&request.donor) {
        Some(own) => Ok(own.join("index")),
        None => Git::at(&request.donor).own_file("index"),
    }
}

pub(crate) fn converted(
    repository: &Repository,
    git: Option<&Git>,
    index: &Index,
    donor: &Index,
) -> Result<Vec<Conversion>> {
    match git {
        Some(git) => conversions(repository, git, index, donor),
        None => Ok(vec![Conversion::None; index.entries.len()]),
    }
}

/// Counts what is not committed, without the worktrees inside.
fn uncommitted(status: &Status, nested: &HashSet<PathBuf>) -> u64 {
    let changed: HashSet<&GitPath> = status.changed.iter().chain(&status.staged).collect();
    let is_own = |path: &GitPath| !nested.iter().any(|inside| inside.starts_with(path_of(path)));
    let untracked = status.untracked.iter().filter(|found| is_own(&found.path)).count();
    (changed.len() + untracked) as u64
}

fn exists(donor: &Path, path: &GitPath) -> bool {
    fs_err::symlink_metadata(donor.join(path_of(path))).is_ok_and(|found| !found.is_dir())
}

/// Returns the tracked files that differ from the donor's commit, but for secrets that stay there. Fails where the new worktree's commit has
/// them otherwise too.
fn changes(request: &AddRequest, git: &Git, status: &Status, left: &mut Vec<LeftEntry>) -> Result<HashSet<GitPath>> {
    if status.has_conflicts {
        return Err(Error::refused(
            "a merge with conflicts is not finished here, and an unfinished merge cannot be carried",
            Remedy::FinishMergeOrLeaveChanges,
        ));
    }
    let mut changed: HashSet<GitPath> = status.changed.iter().chain(&status.staged).cloned().collect();
    if request.leaves_secrets {
        // As it is committed, it is none.
        let secret = changed.extract_if(|path| rules::is_secret(&path_of(path), false));
        left.extend(secret.map(|path| LeftEntry { path: path_of(&path), reason: LeftBehindReason::Secret }));
    }
    let oid = &request.target.oid;
    let differ = git.run(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", oid])?;
    match differ.split(|&byte| byte == 0).find(|path| changed.contains(*path)) {
        None => Ok(changed),
        Some(path) => Err(Error::refused(
            format!(
                "`{}` is changed here, and the new worktree's commit has another version of it",
                ShownPath(path_of(path))
            ),
            Remedy::CommitOrLeaveChanges,
        )),
    }
}

/// Returns the roots of worktrees inside the donor, the new one among them.
fn nested(request: &AddRequest) -> HashSet<PathBuf> {
    let all = request.repository.worktrees.iter().map(|worktree| worktree.path.as_path());
    let inside = all.chain([request.path.as_path()]).filter_map(|path| path.strip_prefix(&request.donor).ok());
    inside.filter(|path| !path.as_os_str().is_empty()).map(Path::to_path_buf).collect()
}

/// Returns the donor's directories of dependencies that come from another worktree, or that belong to a lockfile whose others do, and
/// removes them from `roots`.
fn replaced(
    donor: &Path,
    dependencies: &[Dependency],
    roots: &mut Vec<CarriedRoot>,
    left: &mut Vec<LeftEntry>,
) -> HashSet<PathBuf> {
    let foreign: Vec<&Dependency> = dependencies.iter().filter(|one| one.from != donor).collect();
    let mut replaced: HashSet<PathBuf> = foreign.iter().map(|one| one.path.clone()).collect();
    for root in roots.iter() {
        let Some(dependency) = rules::dependency(&root.path) else { continue };
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
            left.push(LeftEntry { path: dependency.to_path_buf(), reason: LeftBehindReason::OtherDonor });
        }
    }
    roots.retain(|root| !root.path.ancestors().any(|above| replaced.contains(above)));
    replaced
}

/// Returns whether something ignored lies in a directory that is not tracked: what makes it ignored may be in there and stay behind.
fn hidden_in_untracked(status: &Status) -> bool {
    status.untracked.iter().any(|untracked| {
        let is_rules = untracked.path == b".gitignore" || untracked.path.ends_with(b"/.gitignore");
        let inside =
            |path: &[u8]| path.strip_prefix(&untracked.path[..]).is_some_and(|rest| rest.first() == Some(&b'/'));
        is_rules || untracked.is_directory && status.ignored.iter().any(|ignored| inside(&ignored.path))
    })
}

/// Returns the engine's view of a plan.
pub(crate) fn selection(plan: &Arc<Selector>) -> Selection {
    Selection::from(Arc::clone(plan) as Arc<dyn EntrySelector>)
}

/// Returns a selection by the rules alone, for a directory that is cloned to `at`.
pub(crate) fn rules_below(rules: &Rules, at: &Path) -> Selection {
    let (rules, at) = (rules.clone(), at.to_path_buf());
    Selection::new(move |path, is_directory| {
        rules.leave(&at.join(path), is_directory).map_or(Decision::Take, LeftBehindReason::decision)
    })
}
