//! The words for the services of a worktree.

use std::collections::BTreeSet;

use calve_core::internal::ShownPath;
use calve_db::Service;
use calve_env::{DataOrigin, Services, last_root};
use calve_git::worktree::WorktreeInfo;
use calve_receipt::ServiceReceipt;

use crate::failure::{Failure, with_hint};
use crate::host::Program;
use crate::output;

/// Says where the data comes from that was cloned now. `None` if none was.
pub(crate) fn origins_line(services: &Services<'_>) -> Option<String> {
    let origins: Vec<String> =
        services.origins.iter().map(|(name, origin)| format!("`{name}` from {}", origin_text(origin))).collect();
    (!origins.is_empty()).then(|| format!("data: {}", origins.join(", ")))
}

fn origin_text(origin: &DataOrigin) -> String {
    match origin {
        DataOrigin::Template { name, is_there } => {
            let is_made = if *is_there { "" } else { ", which is made first" };
            format!("the template `{name}`{is_made}")
        }
        DataOrigin::Worktree { path, server, runs, is_older } => {
            let kept = || format!("the kept data `{server}`");
            let path = path.as_deref().map_or_else(kept, |path| format!("`{}`", ShownPath(path)));
            let runs = if *runs { ", whose server runs" } else { "" };
            let is_older = if *is_older { "; the template is newer" } else { "" };
            format!("{path}{runs}{is_older}")
        }
    }
}

pub(crate) fn lacking_lines(services: &Services<'_>) -> Vec<String> {
    let line = |(name, error): &(String, calve_env::Error)| {
        format!("warning: the service `{name}` has no data: {}", with_hint(error))
    };
    services.lacking.iter().map(line).collect()
}

pub(crate) fn complete(services: &mut Services<'_>) -> Result<(), Failure> {
    let mut lacking = std::mem::take(&mut services.lacking);
    // That of a command which is not approved is the same for each.
    let mut told = BTreeSet::new();
    lacking.retain(|(_, error)| told.insert(error.to_string()));
    let last = lacking.pop();
    lacking.into_iter().for_each(|(_, error)| _ = output::failure(&error.into()));
    last.map_or(Ok(()), |(_, error)| Err(error.into()))
}

/// Says which of the wanted services have no data, and how they get it.
pub(crate) fn say_without_data(services: &Services<'_>) -> Result<(), Failure> {
    for (name, obstacle) in services.without_data()? {
        let how = obstacle.unwrap_or_else(|| "`calve up` clones it".into());
        output::note(&format!("the service `{name}` has no data yet; {how}"));
    }
    Ok(())
}

/// Describes whose the data is, as in "service `db` of `PATH`".
pub(crate) fn whose(service: &Service) -> String {
    format!("service `{}` of `{}`", service.service, ShownPath(&last_root(service)))
}

/// Returns the services of each of these worktrees. The caller wants to know more, so errors are only said.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<ServiceReceipt>> {
    calve_env::services_of_worktrees(&Program, all).unwrap_or_else(|error| {
        output::failure(&error.into());
        all.iter().map(|_| Vec::new()).collect()
    })
}
