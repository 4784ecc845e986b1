//! Starts the standbys of a pool.

use std::path::PathBuf;

use calve_core::CancelToken;

use super::room::{has_disk, has_room};
use super::{
    MOST_STANDBYS, Pool, PoolLifetime, PoolLimit, PoolOptions, Settings, empty, end, lock, remove, settings, state,
    waiting,
};
use crate::engine;
use crate::error::{Error, Remedy, Result, unless_cancelled};
use crate::files::private;
use crate::files::random;
use crate::registry::template::{self, DatabaseTemplate};
use crate::registry::{self, Home, name};
use crate::server::messages::{Ownership, Spec};
use crate::server::starter::{OwnedServer, Starter, run, spec_of};
use crate::sys;

/// Creates or changes a pool, and fills it. A size of zero ends it: `None`. After an error the pool is as before.
pub fn set_pool(
    home: &Home,
    template: &str,
    options: &PoolOptions,
    supervisor: &[PathBuf],
    cancel: &CancelToken,
) -> Result<Option<Pool>> {
    name::check(template)?;
    home.prepare()?;
    if options.size == 0 {
        remove(home, template)?;
        return Ok(None);
    }
    template::check_files(&template::load(home, template)?.slot)?;
    let before = settings(&home.pool(template)).ok().flatten();
    let wanted = write(home, template, options)?;
    let filled = fill_pool(home, template, supervisor, cancel);
    let filled = unless_cancelled(cancel).and(filled);
    if filled.is_err() {
        // The first error tells more than this one.
        let _ = put_back(home, template, &wanted, before);
    }
    filled
}

/// Restores the pool `before`, unless another process changed or ended it since.
fn put_back(home: &Home, template: &str, wanted: &Settings, before: Option<Settings>) -> Result<()> {
    let file = home.pool(template);
    let is_unchanged = |now: Settings| Settings { limit: wanted.limit, ..now } == *wanted;
    match before {
        _ if !settings(&file)?.is_some_and(is_unchanged) => Ok(()),
        Some(before) => private::write_json(&file, &before),
        None => remove(home, template),
    }
}

/// Creates a pool that ends with the session, or resizes the present one. [`fill_pool`] starts its servers.
pub fn want_pool(home: &Home, template: &str, size: usize) -> Result<()> {
    name::check(template)?;
    home.prepare()?;
    let pool = settings(&home.pool(template))?;
    if pool.as_ref().is_some_and(|pool| pool.size == size) {
        return Ok(());
    }
    template::load(home, template)?;
    match pool {
        Some(pool) if size <= MOST_STANDBYS => private::write_json(&home.pool(template), &Settings { size, ..pool }),
        _ => write(home, template, &PoolOptions { size, ..PoolOptions::default() }).map(drop),
    }
}

fn write(home: &Home, template: &str, options: &PoolOptions) -> Result<Settings> {
    if options.size > MOST_STANDBYS {
        let text = format!("a pool of {} servers is too large: at most {MOST_STANDBYS}", options.size);
        return Err(Error::usage(text, Remedy::ReadHelp));
    }
    let session = match options.lifetime {
        PoolLifetime::Session => sys::session(),
        PoolLifetime::Kept => None,
    };
    let pool = Settings { size: options.size, idle: options.idle, session, boot: sys::boot(), limit: None };
    private::write_json(&home.pool(template), &pool)?;
    Ok(pool)
}

/// Starts missing standbys, and ends superfluous or outdated ones. `None`: there is no pool.
pub fn fill_pool(home: &Home, template: &str, supervisor: &[PathBuf], cancel: &CancelToken) -> Result<Option<Pool>> {
    name::check(template)?;
    let file = home.pool(template);
    if settings(&file)?.is_none() {
        // Its session has ended.
        remove(home, template)?;
        return Ok(None);
    }
    let filling = lock(home, template)?;
    let mut limit = None;
    while let Some(pool) = settings(&file)?
        && !cancel.is_cancelled()
    {
        let now = match template::load(home, template) {
            Err(Error::UnknownTemplate(_)) => {
                drop(filling);
                remove(home, template)?;
                return Ok(None);
            }
            other => other?,
        };
        empty(home, template, Some(&now))?;
        let found = waiting(home, template)?;
        found.iter().skip(pool.size).for_each(end);
        if found.len() >= pool.size {
            break;
        }
        let has_memory = has_room(engine::named(&now.program.engine)?, &now.data_directory());
        let has_disk = has_disk(&home.servers);
        limit = (!has_memory).then_some(PoolLimit::Memory).or((!has_disk).then_some(PoolLimit::Disk));
        if limit.is_some() {
            break;
        }
        let starter = Starter { supervisor, cancel };
        match start_waiting(home, now, &starter) {
            // The server waits on, without its starter.
            Ok(owned) => drop::<OwnedServer>(owned),
            Err(error) if error.full_disk().is_some() => {
                limit = Some(PoolLimit::Disk);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(pool) = settings(&file)?.filter(|pool| pool.limit != limit) {
        private::write_json(&file, &Settings { limit, ..pool })?;
    }
    state(home, template)
}

fn start_waiting(home: &Home, template: DatabaseTemplate, starter: &Starter<'_>) -> Result<OwnedServer> {
    let name = name::made_up(&template.name, &random::letters(6)?);
    let slot = registry::reserve(home, &name)?;
    let mut spec = Spec { owner: Ownership::Nobody, ..spec_of(home, &name, &slot, template)? };
    spec.record.waits = true;
    run(home, &mut spec, slot, starter)
}
