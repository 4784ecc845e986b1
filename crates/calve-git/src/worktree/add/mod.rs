pub(crate) mod fill;
pub(crate) mod ignored;
pub(crate) mod input_paths;
pub(crate) mod meaning;
pub(crate) mod options;
pub(crate) mod plan;
pub(crate) mod post_checkout;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod selector;
pub(crate) mod shown;
pub(crate) mod spares;
pub(crate) mod stage;
pub(crate) mod survey;
pub(crate) mod target;
pub(crate) mod watched_donor;

use std::path::Path;
use std::time::Instant;

use calve_core::internal::stage_in;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::worktree::add::options::{AddOptions, AddWarning};
use crate::worktree::add::post_checkout::post_checkout;
use crate::worktree::add::report::{AddIntent, AddReport};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::survey::{Survey, survey};
use crate::worktree::registration::{Registration, open_swept};
use crate::worktree::tracked::index::{Index, PLAIN};
use crate::worktree::tracked::limit_root;

/// Makes a worktree once `before` has agreed. At any time it is absent or has all its files, whatever happens to this process, and git lists
/// it only then. It is unfinished until [`forget_data_source`](crate::environment::forget_data_source): it notes the id that `before` returns,
/// of the worktree whose service data is cloned.
pub fn add_after<E: From<Error>>(
    options: &AddOptions,
    before: impl FnOnce(&AddIntent) -> std::result::Result<Option<String>, E>,
) -> std::result::Result<AddReport, E> {
    let started = Instant::now();
    let mut request = AddRequest::new(open_swept(&options.start)?, options)?;
    // The user's data is not for an untrusted pull request.
    request.data_source = before(&intent(&request))?.filter(|_| !request.provenance.is_untrusted());
    Ok(make(request, started)?)
}

fn intent(request: &AddRequest) -> AddIntent {
    let is_untrusted = request.provenance.is_untrusted();
    let Config { hooks, services, .. } = if is_untrusted { Config::default() } else { request.config.clone() };
    AddIntent {
        donor: request.donor.clone(),
        main: request.repository.main().map(Path::to_path_buf),
        head: request.target.oid.clone(),
        hooks,
        services,
    }
}

/// Makes the entry, the files under a hidden name, their name, git's list. Dropping tree and entry undoes it until git lists it, and
/// nothing fails from then on.
fn make(mut request: AddRequest, started: Instant) -> Result<AddReport> {
    let (path, parent) = request.place.make_parent()?;
    request.path = path;
    let mut entry = Registration::begin(&request)?;
    let survey = surveyed(&entry)?;
    let (mut added, staged) = stage_in(parent, &request.path, &request.options.clone, |staged| {
        let place = staged.path();
        let added = stage::fill(staged, &entry, survey).map_err(|error| error.of_staged(&place, &request.path))?;
        entry.seal(&staged.path())?;
        Ok::<_, Error>(added)
    })?;
    limit_root(&request.path, &entry.index())?;
    entry.show()?;
    let details = &mut added.details;
    details.warnings.extend(staged.warnings.into_iter().map(AddWarning::Engine));
    if !request.provenance.is_untrusted() {
        details.post_checkout = post_checkout(&request.repository, &request.path, &request.target.oid);
    }
    (details.trash_waits, details.elapsed) = (staged.trash_waits, started.elapsed());
    Ok(added)
}

fn surveyed(entry: &Registration<'_>) -> Result<Survey> {
    let (request, index_path) = (entry.request, entry.index());
    // No files are there yet, and these commands look at none.
    let git = entry.git(&request.donor).with("GIT_INDEX_FILE", &index_path);
    let index = || {
        git.run(&[&PLAIN[..], &["read-tree", &request.target.oid]].concat())?;
        Index::read(&index_path, request.repository.hash_bytes())
    };
    survey(request, index, Some(&git))
}
