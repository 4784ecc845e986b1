//! Makes the input files of a planned worktree's services out of everybody's sight, by the code that makes the real ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use calve_core::internal::stage_in;

use crate::config::ServiceConfig;
use crate::error::Result;
use crate::worktree::add::input_paths::InputPaths;
use crate::worktree::add::options::AddOptions;
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::stage;
use crate::worktree::add::survey::Survey;
use crate::worktree::registration::Registration;

/// Makes those of the worktree's files that its services name as `inputs`, and possibly more, in the new directory `files`. Returns whether
/// there are any.
pub(super) fn make(
    files: &Path,
    request: &AddRequest,
    options: &AddOptions,
    entry: &Registration,
    mut survey: Survey,
    services: &BTreeMap<String, ServiceConfig>,
) -> Result<bool> {
    let recipes = services.values().filter_map(|service| service.recipe.as_ref());
    let patterns: Vec<PathBuf> = recipes.flat_map(|recipe| &recipe.inputs).map(PathBuf::from).collect();
    if patterns.is_empty() {
        return Ok(false);
    }
    survey.limit(InputPaths::find(patterns, &survey.tracked.index, request.repository.git())?);
    stage_in(None, files, &options.clone, |staged| {
        let place = staged.path();
        stage::fill(staged, request, options, entry, survey).map_err(|error| error.of_staged(&place, &request.path))
    })?;
    Ok(true)
}
