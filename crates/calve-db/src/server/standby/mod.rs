//! Standbys: servers started ahead of time, which wait to be handed over, in the pool of their template.
//!
//! A pool is a file with the number of standbys. Each standby has its own supervisor, which looks at that file, and
//! ends if the pool is gone, idle for too long, or of an ended session. So a pool needs no process of its own.

pub(crate) mod fill;
mod room;

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime};

use calve_core::CancelToken;
use calve_core::internal::if_there;
use fs_err as fs;
use serde::{Deserialize, Serialize};

pub(crate) use self::room::has_room;
use crate::error::{AtPath as _, Error, Result};
use crate::files::private;
use crate::registry::template::DatabaseTemplate;
use crate::registry::{self, Home, POOL_SUFFIX, Record, name, unix_now};
use crate::server::control::ask;
use crate::server::messages::{Answer, Claim, Request};
use crate::server::starter::{OwnedServer, converse};
use crate::sys::{self, ProcessHandle};

pub const MOST_STANDBYS: usize = 64;

#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// The number of servers that wait. 0: no pool.
    pub size: usize,
    /// How long they wait while none is taken. `None`: without a limit.
    pub idle: Option<Duration>,
    pub lifetime: PoolLifetime,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self { size: 0, idle: Some(Duration::from_secs(600)), lifetime: PoolLifetime::Session }
    }
}

/// The event that ends a pool, besides idleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PoolLifetime {
    /// The end of the leader of the caller's session (setsid(2)), such as a login shell.
    #[default]
    Session,
    Kept,
}

/// A pool of servers that wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DbPool"))]
pub struct Pool {
    /// The template.
    pub template: String,
    /// The number of servers that should wait.
    pub size: usize,
    /// The number of servers that wait.
    pub waiting: usize,
    /// How long they wait when nobody takes one, in seconds. Null for as long as they can.
    pub idle_s: Option<u64>,
    /// The process that the pool ends with. Null if there is none.
    pub session_pid: Option<u32>,
    /// Why fewer servers wait than should: `memory` or `disk`. Null if nothing limits them.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub limit: Option<PoolLimit>,
}

/// Why a pool is not full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolLimit {
    #[error("not enough memory for more")]
    Memory,
    #[error("not enough disk space for more")]
    Disk,
}

/// A pool's record. The file's time is that of its last use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) size: usize,
    pub(crate) idle: Option<Duration>,
    /// The leader of its session, and when that started.
    session: Option<(u32, u64)>,
    boot: String,
    limit: Option<PoolLimit>,
}

impl Settings {
    fn has_ended(&self) -> bool {
        let is_over = |(pid, started)| ProcessHandle::open(pid, Some(started)).is_none();
        self.boot != sys::boot() || self.session.is_some_and(is_over)
    }
}

pub fn has_pool(home: &Home, template: &str) -> bool {
    home.pool(template).exists()
}

/// Returns `None` if the pool does not exist, or has ended.
pub(crate) fn settings(pool: &Path) -> Result<Option<Settings>> {
    let settings: Option<Settings> = private::read_json(pool)?;
    Ok(settings.filter(|settings| !settings.has_ended()))
}

/// Returns whether the pool is gone, or was idle for too long.
pub(crate) fn is_idle(pool: &Path) -> bool {
    let used = fs::metadata(pool).map_or(0, |found| found.mtime().cast_unsigned());
    let is_over = |idle: Duration| unix_now().saturating_sub(used) > idle.as_secs();
    settings(pool).is_ok_and(|settings| settings.is_none_or(|settings| settings.idle.is_some_and(is_over)))
}

/// Returns the pools with a readable record.
pub fn pools(home: &Home) -> Result<Vec<Pool>> {
    let readable = templates(home).into_iter().filter(|template| settings(&home.pool(template)).is_ok());
    readable.filter_map(|template| state(home, &template).transpose()).collect()
}

pub(crate) fn faults(home: &Home) -> Vec<Error> {
    templates(home).iter().filter_map(|template| settings(&home.pool(template)).err()).collect()
}

fn templates(home: &Home) -> Vec<String> {
    let entries = fs::read_dir(&home.pools).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let templates = names.filter_map(|name| name.strip_suffix(POOL_SUFFIX).map(str::to_owned));
    let mut templates: Vec<String> = templates.filter(|name| name::check(name).is_ok()).collect();
    templates.sort();
    templates
}

fn state(home: &Home, template: &str) -> Result<Option<Pool>> {
    let Some(settings) = settings(&home.pool(template))? else { return Ok(None) };
    Ok(Some(Pool {
        template: template.to_owned(),
        size: settings.size,
        waiting: waiting(home, template)?.len(),
        idle_s: settings.idle.map(|idle| idle.as_secs()),
        session_pid: settings.session.map(|(pid, _)| pid),
        limit: settings.limit,
    }))
}

/// Returns a template's waiting standbys, including outdated ones.
fn waiting(home: &Home, template: &str) -> Result<Vec<Record>> {
    let slots = registry::slots(home)?;
    // Standbys' names begin like this, so that few other servers' records are read.
    let start = name::made_up(template, "");
    let named =
        slots.iter().filter(|slot| slot.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start)));
    let records = named.filter_map(|slot| registry::read(slot).ok().flatten().filter(|_| registry::is_held(slot)));
    Ok(records.filter(|record| record.waits && record.server.template.as_deref() == Some(template)).collect())
}

/// Takes a standby of the present template. `None`: no standby waits.
pub(crate) fn claim(home: &Home, template: &DatabaseTemplate, claim: &Claim) -> Result<Option<OwnedServer>> {
    let pool = home.pool(&template.name);
    if !pool.exists() {
        return Ok(None);
    }
    // This counts as use, even if no standby waits now.
    let _ = fs::File::open(&pool).and_then(|file| file.file().set_modified(SystemTime::now()));
    for record in waiting(home, &template.name)? {
        if record.template_identity != template.identity() {
            end(&record);
            continue;
        }
        if let Some(name) = &claim.name {
            registry::forget_ending(home, name);
        }
        let Ok(stream) = UnixStream::connect(&record.control) else { continue };
        let mut talk = BufReader::new(stream);
        let answer = converse(&mut talk, &Request::Claim(claim.clone()), &CancelToken::default())?;
        // Otherwise it has ended, or another caller was first.
        if let Some(Answer::Ready(record)) = answer.map(Answer::into_result).transpose()? {
            return Ok(Some(OwnedServer { record: *record, home: home.clone(), talk, supervisor: None }));
        }
    }
    Ok(None)
}

/// Ends a template's outdated standbys, or all if the template is gone.
pub(crate) fn empty(home: &Home, template: &str, is_now: Option<&DatabaseTemplate>) -> Result<()> {
    for record in waiting(home, template)? {
        if is_now.is_none_or(|template| template.identity() != record.template_identity) {
            end(&record);
        }
    }
    Ok(())
}

/// Ends a standby, unless it has just ended or was handed over.
fn end(record: &Record) {
    let _ = ask(record, Request::Dismiss, &CancelToken::default());
}

/// Removes a pool and ends its standbys, even one that is just being started.
pub(crate) fn remove(home: &Home, template: &str) -> Result<()> {
    let path = home.pool(template);
    if if_there(fs::remove_file(&path)).at("remove", &path)?.is_none() {
        return Ok(());
    }
    let _filling = lock(home, template)?;
    empty(home, template, None)
}

/// Takes the lock of a pool. Its holder starts the standbys, and counts those of the previous holder.
fn lock(home: &Home, template: &str) -> Result<File> {
    registry::take_lock(&home.pools.join(format!(".lock-{template}")))
}
