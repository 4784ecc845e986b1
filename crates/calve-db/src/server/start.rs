//! Starting a server of a template: a standby is taken, or a new one is started.

use std::path::PathBuf;
use std::time::Duration;

use calve_core::{CancelToken, Strategy};

use crate::error::Result;
use crate::files::random;
use crate::registry::template;
use crate::registry::{self, Home, name};
use crate::server::messages::{Claim, Ownership, Spec};
use crate::server::standby;
use crate::server::starter::{OwnedServer, Starter, run, spec_of};

#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// Its name; by default one is made up.
    pub name: Option<String>,
    /// A port on 127.0.0.1 too: this one, or any that is free (0).
    pub tcp: Option<u16>,
    /// How long it may stay; `None` is for good.
    pub ttl: Option<Duration>,
    pub owner: Ownership,
    /// Use this strategy or none.
    pub strategy: Option<Strategy>,
    /// Ends the start early. Nothing is left of it then.
    pub cancel: CancelToken,
}

impl StartOptions {
    /// Returns whether a standby fits. It has no port, and the strategy that is best.
    pub fn may_be_standby(&self) -> bool {
        self.strategy.is_none() && self.tcp.is_none()
    }
}

/// Starts a server on a clone of the template. `supervisor` is the command that calls [`crate::supervise`] with its standard input
/// and output.
pub fn start(home: &Home, template: &str, options: &StartOptions, supervisor: &[PathBuf]) -> Result<OwnedServer> {
    let template = template::load(home, template)?;
    options.name.as_deref().map_or(Ok(()), name::check)?;
    home.prepare()?;
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
