//! Carries ignored entries into a worktree that was made with git alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::internal::{FileSet, FileSetState, ShownPath};
use calve_core::report::SkippedEntry;
use calve_core::{UnreadableEntry, clone_tree};
use fs_err::File;

use crate::error::{Error, Result};
use crate::escape::{self, AuditReport};
use crate::git::Git;
use crate::place::{StepDown, open_directory, step_down};
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::repository::entries;
use crate::repository::state::check_original;
use crate::trust::{self, Provenance};
use crate::worktree::add::ignored::left_behind::{self, take_notes};
use crate::worktree::add::options::AddOptions;
use crate::worktree::add::report::CarriedFiles;
use crate::worktree::add::request::{AddRequest, no_donor};
use crate::worktree::add::selector::rules_below;
use crate::worktree::add::shown::{planned, source};
use crate::worktree::add::stage::audit_options;
use crate::worktree::add::survey::{Survey, survey};
use crate::worktree::tracked::index::Index;

#[derive(Debug)]
pub struct FillReport {
    pub path: PathBuf,
    pub donor: PathBuf,
    /// A pull request's if the donor is.
    pub provenance: Provenance,
    /// The donor's entries. Env files may be this worktree's own, and dependency directories count if carried.
    pub untracked: CarriedFiles,
    pub changed: Vec<PathBuf>,
    pub audit: AuditReport,
}

/// Carries ignored entries from `options.from`, by default the main worktree, into the worktree that `options.start` is in. Existing entries
/// stay as they are, but references back into the donor are repaired in them too: a killed run may have left some.
pub fn fill(options: &AddOptions) -> Result<FillReport> {
    let repository = Repository::open(&options.start)?;
    let here = repository.here.clone().ok_or_else(|| no_donor(&repository))?;
    check_original(&repository.own, &here)?;
    let main = || repository.main().map(Path::to_path_buf);
    let donor = options.from.clone().or_else(main).ok_or_else(|| no_donor(&repository))?;
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
        entries::note(&request.repository.own, entries::DONOR, &request.donor)?;
        // Its time proves nothing about the files here, which may have changed before.
        File::open(request.repository.own.join(entries::DONOR))?.file().set_modified(SystemTime::UNIX_EPOCH)?;
        entries::note_mount(&request.repository.own, &here)?;
    }
    judge(&mut request, &here)?;
    // After the mark, by which git runs no code of the worktree.
    let git = Git::at(&here);
    let index = || Ok(Index::listed(&git.run(&["ls-tree", "-r", "-z", "--full-tree", &head])?));
    let survey = survey(&request, index, None)?;
    let mut untracked = survey.carried(&request.donor);
    let (changed, audited) = carry(&request, &survey, &mut untracked)?;
    let audit = match audited.is_empty() {
        true => AuditReport::default(),
        false => escape::audit(&here, &request.donor, &audit_options(&request, audited))?,
    };
    let (path, donor, provenance) = (here, request.donor, request.provenance);
    Ok(FillReport { path, donor, provenance, untracked, changed, audit })
}

/// Carries the entries of `untracked`, which then has the carried ones. Returns changed ones, and all carried so far.
fn carry(request: &AddRequest, survey: &Survey, untracked: &mut CarriedFiles) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let here = &request.path;
    let shown = planned(request, survey, untracked, &request.repository.own)?;
    let CarriedFiles { carried, left, dependencies, .. } = untracked;
    let parts: Vec<_> =
        std::mem::take(carried).into_iter().map(|path| (source(request, dependencies, &path), path)).collect();
    let (mut audited, mut changed) = (Vec::new(), Vec::new());
    let sets = SingleSet::all(&parts);
    let is_there = |path: &Path| fs_err::symlink_metadata(here.join(path)).is_ok();
    let mut collides = |path: PathBuf, left: &mut Vec<SkippedEntry>| {
        audited.push(path.clone());
        left.push(SkippedEntry { path, reason: left_behind::COLLIDES });
    };
    for (from, path) in parts {
        if !leads_through_no_link(here, &path, false)? {
            left.push(SkippedEntry { path, reason: left_behind::BEHIND_LINK });
        } else if is_there(&path) {
            collides(path, left);
        } else if shown.iter().any(|shown| path.starts_with(shown) || shown.starts_with(&path)) {
            left.push(SkippedEntry { path, reason: left_behind::NOT_IGNORED });
        } else if !leads_through_no_link(here, &path, true)? {
            left.push(SkippedEntry { path, reason: left_behind::BEHIND_LINK });
        } else {
            let mut clone = request.options.clone.clone();
            clone.unreadable = UnreadableEntry::Skip;
            // Nothing here would make the next spare.
            clone.spares = None;
            let is_directory = fs_err::symlink_metadata(&from).is_ok_and(|found| found.is_dir());
            clone.select = is_directory.then(|| rules_below(&survey.plan, &path));
            match clone_tree(&from, &here.join(&path), &clone) {
                Ok(mut report) => {
                    changed.extend(take_notes(&mut report, &path, left));
                    carried.push(path);
                }
                // Another process has made it meanwhile.
                Err(calve_core::Error::DestinationExists(_)) => collides(path, left),
                Err(error) => return Err(error.into()),
            }
        }
    }
    let changed_sets = sets.into_iter().filter(SingleSet::is_changed);
    changed.extend(changed_sets.flat_map(|set| set.paths).filter(|path| carried.contains(path)));
    changed.sort();
    changed.dedup();
    audited.extend(carried.iter().cloned());
    untracked.finish();
    Ok((changed, audited))
}

/// Files that belong together but are carried one by one, as git lists them if it does not ignore the whole directory.
struct SingleSet {
    directory: File,
    set: FileSet,
    before: FileSetState,
    /// Relative to the worktree.
    paths: Vec<PathBuf>,
}

impl SingleSet {
    /// Finds the sets among these entries, which are pairs of the path in the donor and the path in the worktree.
    fn all(parts: &[(PathBuf, PathBuf)]) -> Vec<Self> {
        let mut sets: BTreeMap<(&Path, FileSet), Vec<PathBuf>> = BTreeMap::new();
        for (from, path) in parts {
            if let (Some(directory), Some(name)) = (from.parent(), from.file_name())
                && let Ok(opened) = File::open(directory)
                && let Some(set) = FileSet::of_entry(&opened, name.as_bytes())
            {
                sets.entry((directory, set)).or_default().push(path.clone());
            }
        }
        for ((_, set), paths) in &mut sets {
            // A database's name need not tell that it is one.
            let main = paths.first().map(|path| path.with_file_name(OsStr::from_bytes(&set.main_file())));
            paths.extend(main.filter(|main| !paths.contains(main) && parts.iter().any(|(_, path)| path == main)));
        }
        // A lone database file counts too: its journal may come and go while it is carried.
        sets.retain(|(_, set), paths| paths.len() > 1 || !set.is_known_by_others());
        let looked = sets.into_iter().filter_map(|((directory, set), paths)| {
            // An unreadable directory cannot be carried either, which is reported there.
            let directory = File::open(directory).ok()?;
            let before = FileSetState::look_at(&set, &directory).ok()?;
            Some(SingleSet { directory, set, before, paths })
        });
        looked.collect()
    }

    fn is_changed(&self) -> bool {
        !FileSetState::look_at(&self.set, &self.directory).is_ok_and(|now| self.before.lasted_until(&now))
    }
}

/// Refuses to carry a pull request's files into the main worktree. Marks a linked one before it gets any.
fn judge(request: &mut AddRequest, here: &Path) -> Result<()> {
    // Opening the repository has marked a pull request's worktree, even a moved one.
    request.of_commit = trust::recorded(here);
    request.provenance = request.of_commit.with_files_of(trust::recorded(&request.donor));
    if !request.provenance.is_untrusted() {
        return Ok(());
    }
    let Some(entry) = trust::entry_of(here)? else {
        let donor = ShownPath(&request.donor);
        let text = format!("`{donor}` is not trusted, so nothing of it goes into the main worktree");
        return Err(Error::refused(text, Remedy::NameSource));
    };
    trust::mark(&entry, request.of_commit, Some(&request.target.oid))
}

/// Returns whether only directories lead to a path below `here`. Makes missing ones if `makes`, else lets them pass.
fn leads_through_no_link(here: &Path, path: &Path, makes: bool) -> Result<bool> {
    let (mut directory, mut there) = (open_directory(here)?, here.to_path_buf());
    for name in path.parent().into_iter().flatten() {
        there.push(name);
        directory = match step_down(directory, &there, makes)? {
            StepDown::Into(opened) => opened,
            StepDown::Missing => return Ok(!makes),
            StepDown::Blocked => return Ok(false),
        };
    }
    Ok(true)
}
