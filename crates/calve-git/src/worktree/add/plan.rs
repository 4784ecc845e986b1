use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use calve_core::internal::stage_in;
use calve_core::report::{SkipReason, SkippedEntry};

use crate::config::{Config, SHARED, ServiceConfig};
use crate::directory::LARGEST_BYTES;
use crate::error::{Result, failed};
use crate::paths::check_writable;
use crate::repository::Repository;
use crate::worktree::add::ignored::left_behind;
use crate::worktree::add::ignored::secrets::is_secret;
use crate::worktree::add::input_paths::InputPaths;
use crate::worktree::add::options::{AddOptions, UncommittedChanges};
use crate::worktree::add::report::{AddReport, CarriedFiles, PlanDetails, PlanScratch};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::shown::{may_read, planned, source};
use crate::worktree::add::survey::Survey;
use crate::worktree::add::{intent, stage, surveyed};
use crate::worktree::registration::Registration;

/// Plans [`add_after`](super::add_after). Makes nothing that lasts, except by fetching a pull request.
pub fn plan(options: &AddOptions) -> Result<AddReport<PlanDetails>> {
    let mut request = AddRequest::new(Repository::open(&options.start)?, options)?;
    check_places(&request)?;
    let intent = intent(&request);
    // No spare is handed over for a plan.
    request.options.clone.spares = None;
    // Adding a worktree writes to the repository too.
    let directory = tempfile::tempdir().or_else(|_| tempfile::tempdir_in(&request.repository.common))?;
    let scratch = PlanScratch { files: directory.path().join("files"), directory };
    let entry = Registration::planned(&request, scratch.directory.path().join("entry"))?;
    let survey = surveyed(&entry)?;
    let tracked = survey.tracked.counts(request.is_sparse);
    let services = services(&request, &survey);
    let mut untracked = survey.carried(&request.donor);
    let CarriedFiles { carried, left, dependencies, .. } = &mut untracked;
    let unreadable = carried.extract_if(.., |path| !may_read(&source(&request, dependencies, path)));
    left.extend(unreadable.map(|path| SkippedEntry { path, reason: SkipReason::Unreadable }));
    let shown = planned(&request, &survey, &untracked, &entry.directory)?;
    let shown = shown.into_iter().map(|path| SkippedEntry { path, reason: left_behind::NOT_IGNORED });
    untracked.left.extend(shown);
    untracked.finish();
    let secrets = survey.roots.iter().filter(|root| is_secret(&root.path));
    let secrets = secrets.filter(|root| untracked.carried.contains(&root.path)).map(|root| root.path.clone()).collect();
    let has_files = match &services {
        Ok(services) => make_inputs(&scratch.files, &entry, survey, services)?,
        Err(_) => false,
    };
    let details = PlanDetails { secrets, services, intent, inputs: has_files.then_some(scratch) };
    Ok(AddReport { worktree: request.new_worktree(), tracked, untracked, details })
}

fn check_places(request: &AddRequest) -> Result<()> {
    let path = request.place.path();
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
    for directory in [&request.repository.common, above] {
        check_writable(directory).map_err(|error| failed("failed to create an entry in", directory, error))?;
    }
    Ok(())
}

/// Returns a planned worktree's services, by its commit's configuration and the user's own, which goes along.
fn services(request: &AddRequest, survey: &Survey) -> Result<BTreeMap<String, ServiceConfig>> {
    let index = &survey.tracked.index;
    let is_carried = request.options.changes == UncommittedChanges::Carry;
    let is_donors = survey.tracked.is_cloned(SHARED.as_bytes()) || is_carried;
    if is_donors || request.provenance.is_untrusted() {
        return Ok(request.config.services.clone());
    }
    let entry = index.entries.iter().find(|entry| entry.path == SHARED.as_bytes());
    let text = entry.map_or(Ok(None), |entry| request.repository.git().blob(&entry.hex(), LARGEST_BYTES))?;
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Config::of_commit(text.as_deref(), &request.donor)?.services)
}

/// Makes the services' `inputs`, and maybe more, in the new directory `files`, as for a worktree. False: no inputs.
fn make_inputs(
    files: &Path,
    entry: &Registration<'_>,
    mut survey: Survey,
    services: &BTreeMap<String, ServiceConfig>,
) -> Result<bool> {
    let recipes = services.values().filter_map(|service| service.recipe.as_ref());
    let patterns: Vec<PathBuf> = recipes.flat_map(|recipe| &recipe.inputs).map(PathBuf::from).collect();
    if patterns.is_empty() {
        return Ok(false);
    }
    let request = entry.request;
    survey.limit(InputPaths::find(patterns, &survey.tracked.index, request.repository.git())?);
    stage_in(None, files, &request.options.clone, |staged| {
        let place = staged.path();
        stage::fill(staged, entry, survey).map_err(|error| error.of_staged(&place, &request.path))
    })?;
    Ok(true)
}
