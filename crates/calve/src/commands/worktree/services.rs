use std::collections::BTreeSet;

use calve_core::internal::ShownPath;
use calve_db::Service;
use calve_env::{DataOrigin, Services, last_root};
use calve_git::worktree::WorktreeInfo;
use calve_receipt::ServiceReceipt;

use crate::failure::{Failure, with_hint};
use crate::host::Program;
use crate::output;

/// Describes the origins of newly cloned data. `None` without any.
pub(crate) fn origins_line(services: &Services<'_>) -> Option<String> {
    let origins: Vec<String> =
        services.origins.iter().map(|(name, origin)| format!("`{name}` from {}", origin_text(origin))).collect();
    (!origins.is_empty()).then(|| format!("data: {}", origins.join(", ")))
}

fn origin_text(origin: &DataOrigin) -> String {
    match origin {
        DataOrigin::Template { name, is_there, passed_over } => {
            let is_made = if *is_there { "" } else { ", which is made first" };
            let data = |other: &Service| format!("{} data of `{}`", other.program.engine, other.template);
            let why = passed_over.as_ref().map(|(source, other)| {
                format!(" (`{}` has {})", ShownPath(source), other.as_deref().map_or("none to clone".into(), data))
            });
            format!("the template `{name}`{}{is_made}", why.unwrap_or_default())
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
    // A command that is not approved gives the same error for each service.
    let mut shown = BTreeSet::new();
    lacking.retain(|(_, error)| shown.insert(error.to_string()));
    let last = lacking.pop();
    lacking.into_iter().for_each(|(_, error)| _ = output::failure(&error.into()));
    last.map_or(Ok(()), |(_, error)| Err(error.into()))
}

/// Reports the chosen services without data, and how they get it.
pub(crate) fn say_without_data(services: &Services<'_>) -> Result<(), Failure> {
    for (name, obstacle) in services.without_data()? {
        let how = obstacle.unwrap_or_else(|| "`calve up` clones it, or says why it cannot".into());
        output::note(&format!("the service `{name}` has no data yet; {how}"));
    }
    Ok(())
}

/// Names the owner of the data, as in "service `db` of `PATH`".
pub(crate) fn whose(service: &Service) -> String {
    format!("service `{}` of `{}`", service.service, ShownPath(&last_root(service)))
}

/// Returns the services of each worktree. Errors are only printed, because the caller shows more than services.
pub(crate) fn of_worktrees(all: &[WorktreeInfo]) -> Vec<Vec<ServiceReceipt>> {
    calve_env::services_of_worktrees(&Program, all).unwrap_or_else(|error| {
        output::failure(&error.into());
        all.iter().map(|_| Vec::new()).collect()
    })
}
