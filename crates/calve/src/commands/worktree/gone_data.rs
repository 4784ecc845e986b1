//! The data of worktrees that are gone, which `calve worktree prune` removes.

use std::path::{Path, PathBuf};

use calve_core::ShownPath;
use calve_db::{Error, Home, Service, WrittenDataRule};

use crate::commands::db;
use crate::commands::services::has_no_keeper;
use crate::failure::Failure;
use crate::output;

/// Returns the services of a repository's worktrees that are gone, whoever removed them, and of those with these entries. `common`: git's own
/// directory of the repository.
fn of_gone(home: &Home, common: &Path, going: &[PathBuf]) -> Result<Vec<Service>, Failure> {
    let Ok(common) = fs_err::canonicalize(common) else { return Ok(Vec::new()) };
    // git removes the directory with the last one.
    let entries = common.join("worktrees");
    let is_going = |service: &Service| {
        going.iter().any(|entry| entries.join(entry.file_name().unwrap_or_default()) == Path::new(&service.keeper))
    };
    let mut gone = calve_db::services(home)?;
    gone.retain(|service| {
        Path::new(&service.keeper).starts_with(&entries) && (has_no_keeper(service) || is_going(service))
    });
    Ok(gone)
}

/// Describes whose the data is, as in "service `db` of the worktree `topic`, which is gone".
fn whose(service: &Service) -> String {
    let name = Path::new(&service.keeper).file_name().unwrap_or_default();
    format!("service `{}` of the worktree `{}`, which is gone", service.service, ShownPath(name))
}

/// Says which data [`remove`] would remove after these entries are gone.
pub(super) fn say(common: &Path, going: &[PathBuf], lose_data: bool) -> Result<(), Failure> {
    let Ok(home) = db::unswept_home() else { return Ok(()) };
    for service in of_gone(&home, common, going)? {
        match calve_db::is_written(&home, &service) {
            Ok(is_written) if lose_data || !is_written => {
                output::say(&format!("its data goes too: {}", whose(&service)));
            }
            Ok(_) => {}
            Err(error) => _ = output::failure(&error.into()),
        }
    }
    Ok(())
}

/// Ends the servers of a repository's worktrees that are gone, and removes their data. Data that may have changes which are nowhere else
/// stays, and is named, unless `written` says otherwise.
pub(super) fn remove(common: &Path, written: WrittenDataRule) -> Result<(), Failure> {
    let Ok(home) = db::unswept_home() else { return Ok(()) };
    let leaving = of_gone(&home, common, &[])?;
    if leaving.is_empty() {
        return Ok(());
    }
    for service in leaving {
        let whose = whose(&service);
        match calve_db::doom(&home, &service.name, written) {
            Ok(doomed) => {
                doomed.remove(&home)?;
                output::say(&format!("removed the data of the {whose}"));
            }
            Err(Error::ServiceWritten { .. }) => output::say(&format!(
                "kept the data of the {whose}: it may have changes that are nowhere else; `calve worktree add --data-from {}` gives it to a new \
                 worktree, and `calve worktree prune --lose-data` removes it",
                service.name
            )),
            Err(error) => {
                output::failure(&error.into());
            }
        }
    }
    db::reap_trash(&home)
}
