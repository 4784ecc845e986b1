use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use calve_core::internal::ShownPath;
use calve_core::report::SkipReason;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::config::{Config, SHARED, ServiceConfig};
use crate::directory::LARGEST_BYTES;
use crate::error::Result;
use crate::repository::Repository;
use crate::worktree::add::fill::source;
use crate::worktree::add::ignored::left_behind::{LeftBehindReason, LeftEntry};
use crate::worktree::add::ignored::secrets::is_secret;
use crate::worktree::add::options::{AddOptions, UncommittedChanges};
use crate::worktree::add::report::{AddPlan, CarriedFiles, PlannedInputs};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::survey::Survey;
use crate::worktree::add::{inputs, intent, surveyed};
use crate::worktree::registration::Registration;

/// Plans [`add_after`](super::add_after). Makes nothing that lasts, but for what fetching a pull request makes.
pub fn plan(options: &AddOptions) -> Result<AddPlan> {
    let request = AddRequest::new(Repository::open(&options.start)?, options)?;
    check_writable(&request)?;
    let intent = intent(&request);
    let mut options = options.clone();
    // None is handed over for a plan.
    options.clone.spares = None;
    // Adding a worktree writes to the repository too.
    let scratch = tempfile::tempdir().or_else(|_| tempfile::tempdir_in(&request.repository.common))?;
    let entry = Registration::planned(&request, scratch.path().join("entry"))?;
    let survey = surveyed(&request, &options, &entry)?;
    let (tracked_same, tracked_other) = survey.tracked.counts(request.is_sparse);
    let secrets = survey.roots.iter().filter(|root| is_secret(&root.path, root.is_directory));
    let secrets = secrets.map(|root| root.path.clone()).collect();
    let services = services(&request, &options, &survey);
    let mut untracked = survey.carried(&request.donor);
    let CarriedFiles { carried, left, dependencies, .. } = &mut untracked;
    let unreadable = carried.extract_if(.., |path| !may_read(&source(&request, dependencies, path)));
    left.extend(unreadable.map(|path| LeftEntry { path, reason: LeftBehindReason::Engine(SkipReason::Unreadable) }));
    untracked.sort();
    let files = scratch.path().join("files");
    let has_files = match &services {
        Ok(services) => inputs::make(&files, &request, &options, &entry, survey, services)?,
        Err(_) => false,
    };
    let inputs = has_files.then_some(PlannedInputs { scratch, files });
    let worktree = request.into_new_worktree();
    Ok(AddPlan { worktree, intent, untracked, tracked_same, tracked_other, secrets, services, inputs })
}

/// Fails if this user may make nothing in the repository, or where the worktree would be.
fn check_writable(request: &AddRequest) -> Result<()> {
    let path = request.place.path();
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
    for directory in [&request.repository.common, above] {
        rustix::fs::accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(
            |errno| {
                io::Error::new(
                    errno.kind(),
                    format!("failed to create an entry in `{}`: {errno}", ShownPath(directory)),
                )
            },
        )?;
    }
    Ok(())
}

/// Returns whether this user may read a file, or list a directory. Everything else is carried without being read.
fn may_read(path: &Path) -> bool {
    let wanted = match fs_err::symlink_metadata(path).map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => Access::READ_OK,
        Ok(kind) if kind.is_dir() => Access::READ_OK | Access::EXEC_OK,
        _ => return true,
    };
    !matches!(rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS), Err(Errno::ACCESS))
}

/// Returns the services of a worktree that is only planned: by the file of its commit, and by the user's own, which goes along.
fn services(request: &AddRequest, options: &AddOptions, survey: &Survey) -> Result<BTreeMap<String, ServiceConfig>> {
    let index = &survey.tracked.index;
    let is_donors = survey.tracked.is_cloned(SHARED.as_bytes()) || options.changes == UncommittedChanges::Carry;
    if is_donors || request.provenance.is_untrusted() {
        return Ok(request.config.services.clone());
    }
    let entry = index.entries.iter().find(|entry| entry.path == SHARED.as_bytes());
    let text = entry.map_or(Ok(None), |entry| request.repository.git().blob(&entry.hex(), LARGEST_BYTES))?;
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Config::of_commit(text.as_deref(), &request.donor)?.services)
}
