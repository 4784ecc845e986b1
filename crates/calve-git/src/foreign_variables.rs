use std::collections::BTreeSet;
use std::path::Path;

use crate::config::Config;
use crate::environment::port_variable;
use crate::repository::Repository;

/// Returns the variables that these worktrees or their main ones configure: no other's program may inherit them.
pub fn configured_variables<'p>(roots: impl IntoIterator<Item = &'p Path>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // An unreadable configuration fails elsewhere, where it is needed.
    let mut add = |config: Config| {
        names.extend(config.ports.keys().map(|name| port_variable(name)));
        names.extend(config.services.into_values().map(|service| service.variable));
    };
    for root in roots {
        Config::of_worktree(root).into_iter().for_each(&mut add);
        // A directory there marks a main worktree, and asking git would take longer than all else here.
        if root.join(".git").is_dir() {
            continue;
        }
        let Ok(repository) = Repository::open(root) else { continue };
        repository.main().filter(|main| *main != root).into_iter().flat_map(Config::load).for_each(&mut add);
    }
    names
}
