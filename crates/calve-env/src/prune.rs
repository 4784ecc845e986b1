//! Judges what `calve worktree prune` removes: merged worktrees, and the data of worktrees that are gone.

use std::time::Duration;

use calve_db::{LossRule, Service};
use calve_git::worktree::{
    self, JudgedWorktrees, PruneReport, RemovalSteps, RemoveWorktreeOptions, UnsavedItem, Worktree,
};

use crate::error::{Error, Result};
use crate::host::{Host, database_home, reap_trash};
use crate::leaving::unsaved_data;
use crate::ownership::gone_services;

struct DataSteps<'h>(&'h dyn Host);

impl RemovalSteps<Error> for DataSteps<'_> {
    fn unsaved(&mut self, worktree: &Worktree) -> Result<Vec<UnsavedItem>> {
        // Unreadable data keeps its worktree, even if it may be lost.
        unsaved_data(self.0, worktree, LossRule::Refuse)
    }
}

/// Returns the merged worktrees as [`worktree::merged`] does. Data that exists nowhere else is a reason to stay, too.
pub fn merged(
    host: &dyn Host,
    options: &RemoveWorktreeOptions,
    older_than: Option<Duration>,
) -> Result<JudgedWorktrees<Error>> {
    worktree::merged(options, older_than, &mut DataSteps(host))
}

/// Ends the servers of worktrees that are gone, and removes their data. Data with possible changes that exist nowhere
/// else stays, unless `rule` accepts their loss. Reports each service, with the error if its data stays. If
/// `is_planned`, only reports the data that would go, also that of the plan's worktrees.
pub fn prune_data(
    host: &dyn Host,
    pruned: &PruneReport,
    rule: LossRule,
    is_planned: bool,
    report: &mut dyn FnMut(&Service, calve_db::Result<()>),
) -> Result<()> {
    let Ok(home) = database_home(host) else { return Ok(()) };
    // Those of a plan are still there.
    let going = if is_planned { &pruned.entries[..] } else { &[] };
    let gone = gone_services(&home, &pruned.common, going)?;
    for service in &gone {
        let judged = match is_planned {
            true => match calve_db::is_written(&home, service) {
                Ok(true) if rule == LossRule::Refuse => continue,
                judged => judged.map(drop),
            },
            false => match calve_db::begin_removal(&home, &service.name, rule) {
                Ok(removal) => Ok(removal.commit(&home)?),
                Err(stays) => Err(stays),
            },
        };
        report(service, judged);
    }
    if is_planned || gone.is_empty() { Ok(()) } else { reap_trash(host, &home) }
}
