//! The data of missing worktrees, removed by `calve worktree prune`.

use std::path::{Path, PathBuf};

use calve_db::{Error, LossRule, Service};
use calve_env::{gone_services, last_root};
use calve_receipt::{PrunedData, path};

use crate::commands::worktree::services::whose;
use crate::failure::Failure;
use crate::host::Program;
use crate::output;

fn receipt(service: &Service, removed: bool) -> PrunedData {
    let worktree = path(last_root(service));
    PrunedData { worktree, service: service.service.clone(), server: service.name.clone(), removed }
}

/// Lists the data that [`remove`] would remove once these entries are gone.
pub(super) fn say(common: &Path, going: &[PathBuf], lose_data: bool) -> Result<Vec<PrunedData>, Failure> {
    let mut would_go = Vec::new();
    let Ok(home) = calve_env::database_home(&Program) else { return Ok(would_go) };
    for service in gone_services(&home, common, going)? {
        match calve_db::is_written(&home, &service) {
            Ok(is_written) if lose_data || !is_written => {
                output::note(&format!("its data goes too: {}, which is gone", whose(&service)));
                would_go.push(receipt(&service, false));
            }
            Ok(_) => {}
            Err(error) => _ = output::failure(&error.into()),
        }
    }
    Ok(would_go)
}

/// Ends the servers of a repository's missing worktrees, and removes their data. Data with possible changes that exist
/// nowhere else is kept and reported, unless `written` permits the loss.
pub(super) fn remove(common: &Path, written: LossRule) -> Result<Vec<PrunedData>, Failure> {
    let mut removed = Vec::new();
    let Ok(home) = calve_env::database_home(&Program) else { return Ok(removed) };
    let leaving = gone_services(&home, common, &[])?;
    if leaving.is_empty() {
        return Ok(removed);
    }
    for service in leaving {
        let whose = whose(&service);
        match calve_db::begin_removal(&home, &service.name, written) {
            Ok(removal) => {
                removal.commit(&home)?;
                output::note(&format!("removed the data of the {whose}, which is gone"));
                removed.push(receipt(&service, true));
            }
            Err(Error::ServiceWritten { .. }) => output::warn(&format!(
                "kept the data of the {whose}, which is gone: it may have changes that are nowhere else; `calve worktree add --data-from {}` gives it to a new \
                 worktree, and `calve worktree prune --lose-data` removes it",
                service.name
            )),
            Err(error) => _ = output::failure(&error.into()),
        }
    }
    calve_env::reap_trash(&Program, &home)?;
    Ok(removed)
}
