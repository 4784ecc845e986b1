use std::path::{Path, PathBuf};

use calve_core::internal::ShownPath;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{plain, real};
use crate::place::Place;
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::trust::{self, Provenance};
use crate::worktree::add::meaning::pull_request;
use crate::worktree::add::options::AddOptions;
use crate::worktree::add::report::NewWorktree;
use crate::worktree::add::target::{self, AddTarget};

pub(crate) struct AddRequest {
    pub(crate) options: AddOptions,
    pub(crate) repository: Repository,
    pub(crate) donor: PathBuf,
    pub(crate) target: AddTarget,
    pull_request: Option<u64>,
    pub(crate) place: Place,
    /// Absolute; its parent exists unless this is a dry run.
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    /// A pull request's if the commit or the donor is.
    pub(crate) provenance: Provenance,
    pub(crate) of_commit: Provenance,
    /// The worktree whose lists select the carried files.
    pub(crate) listed_in: Option<PathBuf>,
    /// The donor has a sparse checkout, and so will the new worktree.
    pub(crate) is_sparse: bool,
    pub(crate) data_source: Option<String>,
}

impl AddRequest {
    /// Refuses senseless requests. Makes nothing, except by fetching a pull request.
    pub(crate) fn new(repository: Repository, options: &AddOptions) -> Result<AddRequest> {
        let donor = match &options.from {
            Some(from) => repository.find_usable(from)?.path.clone(),
            None => repository.here.clone().ok_or_else(|| no_donor(&repository))?,
        };
        repository.check()?;
        let mut is_sparse = repository.is_sparse();
        if repository.here.as_ref() != Some(&donor) {
            // Settings may be a worktree's own.
            let at_donor = Repository::open(&donor)?;
            if at_donor.here.is_none() {
                return Err(no_donor(&at_donor));
            }
            at_donor.check()?;
            is_sparse = at_donor.is_sparse();
        }
        let of_donor = options.provenance.unwrap_or_else(|| trust::recorded(&donor));
        let listed_in = match of_donor.is_untrusted() {
            // The donor's own list is the pull request's.
            true => repository.main().map(Path::to_path_buf),
            false => Some(donor.clone()),
        };
        let config = listed_in.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        let branch = match options.branch.as_str() {
            "-" => target::previous(&repository.git())?,
            branch => branch.to_owned(),
        };
        let (target, pull_request) = (target::resolve(&repository, &branch, options)?, pull_request(&branch));
        if let (true, Some(new)) = (target.is_new, &target.branch) {
            target::check_place(&repository, new)?;
        }
        let place = match &options.path {
            Some(path) => Place::Anywhere(plain(&options.start.join(path))),
            None => config.place(&repository, target.branch.as_deref().unwrap_or(&branch))?,
        };
        place.check()?;
        let path = place.path();
        if fs_err::symlink_metadata(&path).is_ok() {
            return Err(taken(&repository, path));
        }
        // A worktree that was moved, or is on an unmounted disk, has an entry already: a second one would be made.
        let listed = real(&path);
        if let Some(gone) = repository.worktrees.iter().find(|worktree| worktree.path == listed) {
            gone.check_unlocked(Remedy::UnlockAndPrune)?;
            return Err(gone.status.refusal(&path));
        }
        let of_commit = match options.provenance {
            Some(given) => given,
            None if pull_request.is_some() => Provenance::Untrusted,
            None => repository.provenance_of(&target.oid, target.branch.as_deref())?,
        };
        Ok(AddRequest {
            options: options.clone(),
            repository,
            donor,
            target,
            pull_request,
            place,
            path,
            config,
            provenance: of_commit.with_files_of(of_donor),
            of_commit,
            listed_in,
            is_sparse,
            data_source: None,
        })
    }

    pub(crate) fn donor_index(&self) -> Result<PathBuf> {
        match self.repository.own_directory(&self.donor) {
            Some(own) => Ok(own.join("index")),
            None => Git::at(&self.donor).own_file("index"),
        }
    }

    pub(crate) fn new_worktree(&self) -> NewWorktree {
        let AddRequest { path, target, donor, pull_request, provenance, .. } = self;
        let (path, target, donor) = (path.clone(), target.clone(), donor.clone());
        NewWorktree { path, target, donor, pull_request: *pull_request, provenance: *provenance }
    }
}

pub(crate) fn no_donor(repository: &Repository) -> Error {
    if repository.own != repository.common && repository.is_set("core.bare") {
        let reason = "git takes this worktree for a bare repository, because `core.bare` is set for all of them";
        return Error::refused(reason, Remedy::UnsetBare);
    }
    Error::refused("there is no worktree here to take files from", Remedy::NameSource)
}

/// Returns the error for an occupied place. Two branches may have the same place.
fn taken(repository: &Repository, path: PathBuf) -> Error {
    let there = real(&path);
    let worktree = repository.worktrees.iter().find(|worktree| worktree.path == there);
    let exists = calve_core::Error::DestinationExists(path);
    let Some(branch) = worktree.and_then(|worktree| worktree.branch.as_ref()) else { return exists.into() };
    let text = format!("{exists}: it is the worktree of the branch `{}`", ShownPath(branch));
    Error::refused(text, Remedy::ChooseAnotherPath)
}
