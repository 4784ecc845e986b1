//! Asks calve-git's `Leases`, which chooses the numbers, for the ports that a worktree's configuration names.

use std::collections::BTreeMap;
use std::path::Path;

use calve_git::Config;
use calve_git::environment::{LeasedPort, Leases, LeasingWorktree};
use calve_git::worktree::Worktree;

use crate::error::Result;
use crate::host::{Host, required_home};

fn leases(host: &dyn Host) -> Result<Leases> {
    Ok(Leases::at(required_home(host, "port leases")?.join("ports")))
}

/// Calls `with` for the leases, the worktree at `root` and its configured ports, if it has any.
pub(crate) fn ports_of<T: Default>(
    host: &dyn Host,
    root: &Path,
    config: &Config,
    with: impl FnOnce(&Leases, &LeasingWorktree, &BTreeMap<String, u16>) -> calve_git::Result<T>,
) -> Result<T> {
    if config.ports.is_empty() {
        return Ok(T::default());
    }
    Ok(with(&leases(host)?, &LeasingWorktree::find(root)?, &config.ports)?)
}

/// Keeps a worktree's ports after its directory was replaced by a copy.
pub fn carry_ports(host: &dyn Host, former: &LeasingWorktree, root: &Path) -> Result<()> {
    // Without a home there are no ports.
    let Ok(leases) = leases(host) else { return Ok(()) };
    Ok(leases.carry(former, root)?)
}

/// Returns each worktree's ports that its configuration still names. Without a home there are none.
pub fn ports_of_worktrees<'w>(
    host: &dyn Host,
    worktrees: impl IntoIterator<Item = &'w Worktree> + Clone,
) -> calve_git::Result<Vec<Vec<LeasedPort>>> {
    let Ok(leases) = leases(host) else { return Ok(worktrees.into_iter().map(|_| Vec::new()).collect()) };
    let mut all = leases.of_worktrees(worktrees.clone())?;
    let with_ports = |(worktree, ports): &(&Worktree, &mut Vec<LeasedPort>)| worktree.is_usable() && !ports.is_empty();
    for (worktree, ports) in worktrees.into_iter().zip(&mut all).filter(with_ports) {
        if let Ok(config) = Config::of_listed(worktree) {
            ports.retain(|port| config.ports.contains_key(&port.name));
        }
    }
    Ok(all)
}
