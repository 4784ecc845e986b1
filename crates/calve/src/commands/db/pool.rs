use std::env;

use calve_core::CancelToken;
use calve_db::{Home, Pool, PoolLifetime, PoolOptions, StartOptions};
use calve_git::Config;

use super::home::{home, supervisor};
use crate::cli::db::PoolArguments;
use crate::failure::Failure;
use crate::{output, reaper, sys};
use calve_receipt::DbPoolsReceipt;

pub(crate) fn run(arguments: &PoolArguments, cancel: &CancelToken) -> Result<(), Failure> {
    let home = home()?;
    let pools = match (&arguments.template, arguments.size) {
        (Some(template), Some(size)) => {
            let lifetime = if arguments.keep { PoolLifetime::Kept } else { PoolLifetime::Session };
            let options = PoolOptions { size, idle: arguments.idle.0, lifetime };
            let pool = calve_db::set_pool(&home, template, &options, &supervisor()?, cancel)?;
            let text = pool.as_ref().map_or_else(|| format!("the template `{template}` has no pool"), description);
            output::note(&text);
            pool.into_iter().collect()
        }
        _ => {
            super::home::warn_of_unreadable(&home)?;
            let pools = calve_db::pools(&home)?;
            if !arguments.json {
                return output::result(
                    &pools.iter().map(|pool| format!("{}\n", description(pool))).collect::<String>(),
                );
            }
            pools
        }
    };
    output::json_if(arguments.json, &DbPoolsReceipt { pools })
}

fn description(pool: &Pool) -> String {
    let Pool { template, size, waiting, .. } = pool;
    let limit = pool.limit.map_or_else(String::new, |limit| format!(": {limit}"));
    format!("{waiting} of {size} standbys of `{template}` are ready{limit}")
}

/// Makes the pool that the current worktree's configuration asks for. Starts no server.
pub(super) fn configure(home: &Home, template: &str, options: &StartOptions) -> Result<(), Failure> {
    let Ok(here) = env::current_dir() else { return Ok(()) };
    // Asking git would take longer than a start with a standby.
    let root = here.ancestors().find(|directory| directory.join(".git").exists());
    let Some(root) = root.filter(|_| options.may_be_standby()) else { return Ok(()) };
    // The same check as git's: another user may have put a repository there.
    if !sys::is_trusted(root)? {
        return Ok(());
    }
    match Config::of_worktree(root)?.standbys.get(template) {
        None | Some(0) => Ok(()),
        Some(size) => Ok(calve_db::want_pool(home, template, *size)?),
    }
}

/// Starts the missing standbys of a template's pool in the background.
pub(super) fn refill(home: &Home, template: &str) {
    if calve_db::has_pool(home, template) {
        reaper::start_background(&["__fill", template]);
    }
}

pub(crate) fn fill(template: &str, cancel: &CancelToken) -> Result<(), Failure> {
    sys::leave_terminal();
    // `home` also sweeps, for the start that took a standby.
    calve_db::fill_pool(&home()?, template, &supervisor()?, cancel)?;
    Ok(())
}
