//! Carries what git ignores into a worktree that something else has made, by git alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::{FileSet, FileSetState, ShownPath, UnreadableEntry, clone_tree};
use fs_err::File;

use crate::config::Secrets;
use crate::environment::{is_ignored, is_own_env_file};
use crate::error::{Error, Result};
use crate::escape::{self, AuditOptions, AuditReport, Fix, FormerPathRule};
use crate::git::Git;
use crate::place::{MissingDirectory, StepDown, open_directory, step_down};
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::trust::{self, Provenance};
use crate::worktree::add::ignored::dependencies::Dependency;
use crate::worktree::add::ignored::{LeftBehindReason, LeftEntry};
use crate::worktree::add::survey::{AddRequest, no_donor, rules_below, survey};
use crate::worktree::add::{AddOptions, Trust, take_notes};
use crate::worktree::registration::note_donor;
use crate::worktree::tracked::index::Index;

/// A worktree that has now what git ignores.
#[derive(Debug)]
#[non_exhaustive]
pub struct FillReport {
    pub path: PathBuf,
    /// The worktree that the files came from.
    pub donor: PathBuf,
    /// Whose it is. It is a pull request's if the donor is.
    pub provenance: Provenance,
    /// The entries that were carried.
    pub carried: Vec<PathBuf>,
    /// Those of them that are directories of dependencies.
    pub dependencies: Vec<Dependency>,
    /// The files of variables that Calve made for the donor, or for this one.
    pub env_files: Vec<PathBuf>,
    /// The entries that were not, and why.
    pub left: Vec<LeftEntry>,
    /// The entries that changed while they were carried.
    pub changed: Vec<PathBuf>,
    /// The references that pointed back into the donor.
    pub audit: AuditReport,
}

/// Carries what git ignores from `options.from`, by default the main worktree, into the worktree that `options.start` is in. What is there
/// already stays as it is, but that what points back into the donor is repaired in it too: a killed run may have left it.
pub fn fill(options: &AddOptions) -> Result<FillReport> {
    let repository = Repository::open(&options.start)?;
    let here = repository.here.clone().ok_or_else(no_donor)?;
    let main = || repository.main().map(Path::to_path_buf);
    let donor = options.from.clone().or_else(main).ok_or_else(no_donor)?;
    let head = Git::at(&here).line(&["rev-parse", "--verify", "HEAD^{commit}"])?.to_string_lossy().into_owned();
    let wanted = AddOptions {
        branch: head.clone(),
        is_detached: true,
        from: Some(donor),
        // A place where nothing is.
        path: Some(here.join(".git/fill")),
        ..options.clone()
    };
    let mut request = AddRequest::new(repository, &wanted)?;
    if request.donor == here {
        return Err(Error::refused("this is the worktree that the files would come from", Remedy::NameSource));
    }
    request.path.clone_from(&here);
    if request.repository.own != request.repository.common {
        note_donor(&request.repository.own, &request.donor)?;
    }
    if options.trust == Trust::No {
        judge(&mut request, &here)?;
    }
    // After the mark, by which it runs no code of the worktree.
    let git = Git::at(&here);
    let index = || Ok(Index::listed(&git.run(&["ls-tree", "-r", "-z", "--full-tree", &head])?));
    let survey = survey(&request, &wanted, index, None)?;
    let own = survey.roots.iter().map(|root| (root.path.clone(), request.donor.join(&root.path)));
    let foreign = survey.dependencies.iter().filter(|one| one.from != request.donor);
    let parts: Vec<_> = own.chain(foreign.map(|one| (one.path.clone(), one.from.join(&one.path)))).collect();
    let mut left = survey.left;
    let (mut carried, mut audited_too, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    let sets = SingleSets::look(&parts);
    let is_there = |path: &Path| fs_err::symlink_metadata(here.join(path)).is_ok();
    let is_foreign = |path: &PathBuf| is_there(path) && !is_own_env_file(&here, path);
    let (others, mut env_files): (Vec<_>, Vec<_>) = survey.env_files.into_iter().partition(is_foreign);
    left.extend(others.into_iter().map(|path| LeftEntry { path, reason: LeftBehindReason::Collides }));
    for (path, from) in parts {
        let to = here.join(&path);
        if !leads_through_no_link(&here, &path, false)? {
            left.push(LeftEntry { path, reason: LeftBehindReason::BehindLink });
        } else if is_own_env_file(&here, &path) {
            env_files.push(path);
        } else if is_there(&path) {
            audited_too.push(path.clone());
            left.push(LeftEntry { path, reason: LeftBehindReason::Collides });
        } else if survey.may_show && !is_ignored(&git, &path)? {
            left.push(LeftEntry { path, reason: LeftBehindReason::NotIgnored });
        } else if !leads_through_no_link(&here, &path, true)? {
            left.push(LeftEntry { path, reason: LeftBehindReason::BehindLink });
        } else {
            let mut clone = options.clone.clone();
            clone.unreadable = UnreadableEntry::Skip;
            let is_directory = fs_err::symlink_metadata(&from).is_ok_and(|found| found.is_dir());
            clone.select = is_directory.then(|| rules_below(&survey.rules, &path));
            let mut report = clone_tree(&from, &to, &clone)?;
            changed.extend(take_notes(&mut report, &path, &mut left));
            carried.push(path);
        }
    }
    carried.sort();
    sets.add_changed(&carried, &mut changed);
    left.sort_by(|a, b| a.path.cmp(&b.path));
    audited_too.extend(carried.iter().cloned());
    let audit = match audited_too.is_empty() {
        true => AuditReport::default(),
        false => audited(&request, &here, audited_too, options)?,
    };
    let (path, donor, provenance) = (here, request.donor, request.provenance);
    let mut dependencies = survey.dependencies;
    dependencies.retain(|one| carried.iter().any(|path| one.path.starts_with(path)));
    Ok(FillReport { path, donor, provenance, carried, dependencies, env_files, left, changed, audit })
}

/// Files that belong together and are carried one by one, as git lists them where it does not ignore their whole directory.
struct SingleSets(Vec<SingleSet>);

struct SingleSet {
    /// The directory in the donor.
    directory: File,
    set: FileSet,
    before: FileSetState,
    /// Relative to the worktree.
    paths: Vec<PathBuf>,
}

impl SingleSets {
    /// Looks at the sets among these entries. Each comes with where it is in the donor.
    fn look(parts: &[(PathBuf, PathBuf)]) -> Self {
        let mut sets: BTreeMap<(&Path, FileSet), Vec<PathBuf>> = BTreeMap::new();
        for (path, from) in parts {
            if let (Some(directory), Some(name)) = (from.parent(), from.file_name())
                && let Ok(opened) = File::open(directory)
                && let Some(set) = FileSet::of_entry(&opened, name.as_bytes())
            {
                sets.entry((directory, set)).or_default().push(path.clone());
            }
        }
        for ((_, set), paths) in &mut sets {
            // Nothing in the name of a database need tell that it is one.
            let main = paths.first().map(|path| path.with_file_name(OsStr::from_bytes(&set.main_file())));
            paths.extend(main.filter(|main| !paths.contains(main) && parts.iter().any(|(path, _)| path == main)));
        }
        // A lone database file counts too: its journal may come and go while it is carried.
        sets.retain(|(_, set), paths| paths.len() > 1 || !set.is_told_by_others());
        let looked = sets.into_iter().filter_map(|((directory, set), paths)| {
            // What cannot be opened here cannot be carried either, which is told there.
            let directory = File::open(directory).ok()?;
            let before = FileSetState::of(&set, &directory).ok()?;
            Some(SingleSet { directory, set, before, paths })
        });
        Self(looked.collect())
    }

    /// Adds those that were carried of each set in which something has changed since.
    fn add_changed(self, carried: &[PathBuf], changed: &mut Vec<PathBuf>) {
        for SingleSet { directory, set, before, paths } in self.0 {
            if !FileSetState::of(&set, &directory).is_ok_and(|now| before.lasted_until(&now)) {
                changed.extend(paths.into_iter().filter(|path| carried.contains(path)));
            }
        }
        changed.sort();
        changed.dedup();
    }
}

/// Refuses to carry files of a pull request into the main worktree. Marks a linked one that gets some, before anything is carried into it.
fn judge(request: &mut AddRequest, here: &Path) -> Result<()> {
    // The repository has been opened, so the worktree is marked if it is a pull request's, also where it has moved.
    request.of_commit = trust::recorded(here)?;
    request.provenance = request.of_commit.with_files_of(trust::recorded(&request.donor)?);
    request.leaves_secrets = request.provenance.is_untrusted() || request.config.secrets == Some(Secrets::Leave);
    if !request.provenance.is_untrusted() {
        return Ok(());
    }
    let Some(entry) = trust::entry_of(here)? else {
        return Err(Error::refused(
            format!("`{}` is not trusted, so nothing of it goes into the main worktree", ShownPath(&request.donor)),
            Remedy::NameSource,
        ));
    };
    trust::mark(&entry, request.foreign_part(), Some(&request.target.oid))
}

/// Returns whether only directories lead to a path below `here`. Makes those that are missing, or takes them for ones that can be made.
fn leads_through_no_link(here: &Path, path: &Path, makes: bool) -> Result<bool> {
    let missing = if makes { MissingDirectory::Made } else { MissingDirectory::Ends };
    let (mut directory, mut there) = (open_directory(here)?, here.to_path_buf());
    for name in path.parent().into_iter().flatten() {
        there.push(name);
        directory = match step_down(directory, &there, missing)? {
            StepDown::Into(opened) => opened,
            StepDown::Missing => return Ok(!makes),
            StepDown::Blocked => return Ok(false),
        };
    }
    Ok(true)
}

fn audited(request: &AddRequest, here: &Path, below: Vec<PathBuf>, options: &AddOptions) -> Result<AuditReport> {
    let others = request.repository.worktrees.iter().filter(|one| !one.is_bare && one.path != here);
    let audit = AuditOptions {
        names: None,
        fix: Fix::Yes,
        below,
        others: others.map(|one| one.path.clone()).collect(),
        will_be: None,
        moved: FormerPathRule::Ignored,
        tracked: None,
        threads: options.clone.threads,
        cancel: options.clone.cancel.clone(),
    };
    escape::audit(here, &request.donor, &audit)
}
