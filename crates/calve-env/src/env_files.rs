//! Which files of variables a new worktree gets. calve-git's `env_file.rs` writes them.

use std::path::{Path, PathBuf};

use calve_git::environment::{
    EnvFile, EnvFileOutcome, OtherValues, follow_env_file, is_outdated_env_file, other_values, untracked_files,
    write_env_file,
};

use crate::error::{Error, Result};

#[derive(Debug, Default)]
pub struct RewrittenFiles {
    pub files: Vec<EnvFile>,
    pub other_values: Vec<OtherValues>,
    /// A file that could not be written, such as on a read-only disk.
    pub failure: Option<Error>,
}

/// Writes the variables to `wanted` and `configured`, and where Calve made a file for the donor (`of_donor`).
pub(crate) fn write(
    root: &Path,
    donor: &Path,
    wanted: Option<&Path>,
    of_donor: &[PathBuf],
    configured: Option<PathBuf>,
    variables: &[(String, String)],
) -> Result<Vec<EnvFile>> {
    if variables.is_empty() {
        return Ok(Vec::new());
    }
    let wanted_one = wanted.map(|path| write_env_file(root, path, variables));
    let configured = configured.filter(|path| !of_donor.contains(path));
    let followed = of_donor.iter().cloned().chain(configured).filter(|path| Some(path.as_path()) != wanted);
    let followed = followed.map(|path| follow_env_file(root, donor, &path, variables));
    Ok(wanted_one.into_iter().chain(followed).collect::<calve_git::Result<_>>()?)
}

/// Writes the variables over outdated ones. Files that Calve did not make, or that were edited, are only reported.
pub(crate) fn rewrite(
    root: &Path,
    configured: Option<PathBuf>,
    variables: &[(String, String)],
) -> Result<RewrittenFiles> {
    let untracked = untracked_files(root, configured)?;
    let outdated = untracked.iter().filter(|file| is_outdated_env_file(root, file, variables));
    let files = outdated.map(|file| write_env_file(root, file, variables)).collect::<calve_git::Result<_>>()?;
    Ok(RewrittenFiles { files, other_values: other_values(root, &untracked, variables), failure: None })
}

/// Writes variables that came after the worktree to files that lack them: with `are_new`, to all with former values. A
/// linked worktree also gets its missing configured file. Servers run without these files, so a failure ends nothing.
pub(crate) fn refresh(
    root: &Path,
    configured: Option<PathBuf>,
    are_new: bool,
    variables: &[(String, String)],
) -> RewrittenFiles {
    if variables.is_empty() {
        return RewrittenFiles::default();
    }
    let failed = |error| RewrittenFiles { failure: Some(error), ..RewrittenFiles::default() };
    let mut rewritten = match are_new {
        true => rewrite(root, configured.clone(), variables).unwrap_or_else(failed),
        false => RewrittenFiles::default(),
    };
    let lacks_it = |path: &PathBuf| {
        let is_missing = root.join(path).symlink_metadata().is_err() && root.join(".git").is_file();
        is_missing || is_outdated_env_file(root, path, variables)
    };
    if let Some(path) = configured.filter(&lacks_it) {
        match follow_env_file(root, root, &path, variables) {
            Ok(file) if file.outcome == EnvFileOutcome::Written => rewritten.files.push(file),
            Ok(_) => {}
            // Another command has just written it.
            Err(_) if !lacks_it(&path) => {}
            Err(error) => rewritten.failure = Some(error.into()),
        }
    }
    rewritten
}
