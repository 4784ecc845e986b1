use std::collections::{BTreeMap, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::internal::stage_in;
use calve_core::report::SkipReason;
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::config::{Config, SHARED, ServiceConfig};
use crate::directory::LARGEST_BYTES;
use crate::error::{Error, Result, failed};
use crate::paths::path_of;
use crate::repository::Repository;
use crate::worktree::add::fill::{ignores_itself, source};
use crate::worktree::add::ignored::left_behind::{LeftBehindReason, LeftEntry};
use crate::worktree::add::ignored::secrets::is_secret;
use crate::worktree::add::input_paths::InputPaths;
use crate::worktree::add::options::{AddOptions, UncommittedChanges};
use crate::worktree::add::report::{AddPlan, CarriedFiles, PlanScratch};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::survey::Survey;
use crate::worktree::add::{intent, stage, surveyed};
use crate::worktree::registration::Registration;
use crate::worktree::tracked::is_ignore_file;

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
    let scratch = PlanScratch::new(scratch);
    let entry = Registration::planned(&request, scratch.directory.path().join("entry"))?;
    let mut survey = surveyed(&request, &options, &entry)?;
    if survey.may_show {
        leave_shown(&mut survey, &request, &entry, &scratch.directory.path().join("rules"))?;
    }
    let (tracked_same, tracked_other) = survey.tracked.counts(request.is_sparse);
    let secrets = survey.roots.iter().filter(|root| is_secret(&root.path, root.is_directory));
    let secrets = secrets.map(|root| root.path.clone()).collect();
    let services = services(&request, &options, &survey);
    let mut untracked = survey.carried(&request.donor);
    let CarriedFiles { carried, left, dependencies, .. } = &mut untracked;
    let unreadable = carried.extract_if(.., |path| !may_read(&source(&request, dependencies, path)));
    left.extend(unreadable.map(|path| LeftEntry { path, reason: LeftBehindReason::Engine(SkipReason::Unreadable) }));
    untracked.sort();
    let has_files = match &services {
        Ok(services) => make_inputs(&scratch.files, &request, &options, &entry, survey, services)?,
        Err(_) => false,
    };
    let inputs = has_files.then_some(scratch);
    let worktree = request.into_new_worktree();
    Ok(AddPlan { worktree, intent, untracked, tracked_same, tracked_other, secrets, services, inputs })
}

/// Leaves the roots that the new worktree does not ignore, as [`stage::fill`](super::stage::fill) removes them. Makes `rules`: a tree of its
/// `.gitignore` files, with an empty directory for each root that is one.
fn leave_shown(survey: &mut Survey, request: &AddRequest, entry: &Registration, rules: &Path) -> Result<()> {
    let directory = |path: &Path| fs_err::create_dir_all(path.parent().unwrap_or(rules));
    let index = survey.tracked.index.entries.iter().filter(|file| is_ignore_file(&file.path));
    let (paths, oids): (Vec<_>, Vec<_>) = index.map(|file| (path_of(&file.path), file.hex())).unzip();
    for (path, text) in paths.iter().zip(request.repository.git().blobs(&oids, LARGEST_BYTES)?) {
        directory(&rules.join(path))?;
        fs_err::write(rules.join(path), text.unwrap_or_default())?;
    }
    for root in &survey.roots {
        let (from, to) = (request.donor.join(&root.path), rules.join(&root.path));
        directory(&to)?;
        match root.is_directory {
            true => fs_err::create_dir_all(to)?,
            // git follows no link to rules, and what cannot be read is not carried.
            false if is_ignore_file(root.path.as_os_str().as_bytes()) && !from.is_symlink() => {
                let _ = fs_err::copy(from, to);
            }
            false => {}
        }
    }
    fs_err::create_dir_all(rules)?;
    let asked = survey.roots.iter().flat_map(|root| [root.path.as_os_str().as_bytes(), b"\0"].concat());
    let ignored = match entry.git(rules).fed(&["check-ignore", "-z", "--stdin"], &asked.collect::<Vec<u8>>()) {
        // None is ignored.
        Err(Error::Git { code: Some(1), .. }) => Vec::new(),
        answered => answered?,
    };
    let ignored: HashSet<PathBuf> = ignored.split(|&byte| byte == 0).map(path_of).collect();
    let is_shown = |path: &Path| !ignored.contains(path) && !ignores_itself(&request.donor.join(path));
    let shown = survey.roots.extract_if(.., |root| is_shown(&root.path));
    survey.untracked.left.extend(shown.map(|root| LeftEntry { path: root.path, reason: LeftBehindReason::NotIgnored }));
    Ok(())
}

/// Fails if this user may make nothing in the repository, or where the worktree would be.
fn check_writable(request: &AddRequest) -> Result<()> {
    let path = request.place.path();
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("."));
    for directory in [&request.repository.common, above] {
        rustix::fs::accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|errno| failed("failed to create an entry in", directory, errno))?;
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

/// Makes those of the worktree's files that its services name as `inputs`, and possibly more, in the new directory `files`, by the code
/// that makes the real ones. Returns whether there are any.
fn make_inputs(
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
