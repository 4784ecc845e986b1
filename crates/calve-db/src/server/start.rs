//! Starts a template's server, or takes a standby.

use std::path::PathBuf;
use std::time::Duration;

use calve_core::{CancelToken, Strategy};

use crate::error::{Error, Result};
use crate::files::random;
use crate::registry::{self, Home, name, template};
use crate::server::messages::{Claim, Ownership, Spec};
use crate::server::standby;
use crate::server::starter::{OwnedServer, Starter, run, spec_of};

#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// `None`: a generated name.
    pub name: Option<String>,
    /// A port on 127.0.0.1 as well. 0: any free one.
    pub tcp: Option<u16>,
    /// `None`: no limit.
    pub ttl: Option<Duration>,
    pub owner: Ownership,
    /// Fails rather than use another strategy.
    pub strategy: Option<Strategy>,
    /// Aborts the start, which then leaves nothing behind.
    pub cancel: CancelToken,
}

impl StartOptions {
    /// Returns whether a standby fits: it has no port, and the best strategy.
    pub fn may_be_standby(&self) -> bool {
        self.strategy.is_none() && self.tcp.is_none()
    }
}

/// Starts a server on a clone of the template. `supervisor` runs [`crate::supervise`] on its standard input and output.
pub fn start(home: &Home, template: &str, options: &StartOptions, supervisor: &[PathBuf]) -> Result<OwnedServer> {
    let template = template::load(home, template)?;
    home.prepare()?;
    if let Some(name) = &options.name {
        name::check(name)?;
        // A worktree would take it for the server of its data.
        if home.services.join(name).exists() {
            return Err(Error::ServerExists(name.clone()));
        }
    }
    if options.may_be_standby() {
        let claim = Claim { name: options.name.clone(), ttl: options.ttl, owner: options.owner.clone() };
        if let Some(owned) = standby::claim(home, &template, &claim)? {
            return Ok(owned);
        }
    }
    let name = match &options.name {
        Some(name) => name.clone(),
        None => name::made_up(&template.name, &random::letters(6)?),
    };
    let slot = registry::reserve(home, &name)?;
    registry::forget_ending(home, &name);
    let spec = spec_of(home, &name, &slot, template)?;
    let mut spec = Spec { tcp: options.tcp, ttl: options.ttl, owner: options.owner.clone(), ..spec };
    spec.record.server.launch.strategy = options.strategy;
    run(home, &mut spec, slot, &Starter { supervisor, cancel: &options.cancel })
}
