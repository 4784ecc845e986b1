//! Making, replacing and removing templates.

mod create;
mod promote;
mod publish;
mod travel;

pub use create::{BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, create};
pub use promote::promote;
pub use travel::{NameLock, ReceiveOptions, ReceivePaths, TemplateToSend, hold_to_send, receive};

use crate::error::{Error, Result};
use crate::registry::{Home, name, template};
use crate::server::standby;

/// Unused templates that stay, because switching branches may need them again.
const UNUSED_AND_KEPT: usize = 3;

/// Removes the templates of a prefix that no service uses, but keeps `current`, the newest, and promoted ones.
pub fn remove_unused(home: &Home, prefix: &str, current: &str) -> Result<()> {
    let used = crate::service::services(home)?;
    let is_used = |name: &str| name == current || used.iter().any(|service| service.template == name);
    let mut unused = template::list(home)?;
    unused.retain(|template| !template.promoted && template.name.starts_with(prefix) && !is_used(&template.name));
    unused.sort_by_key(|template| std::cmp::Reverse(template.made_unix_s));
    unused.iter().skip(UNUSED_AND_KEPT).try_for_each(|template| match remove(home, &template.name) {
        // Another process was faster.
        Err(Error::UnknownTemplate(_)) => Ok(()),
        other => other,
    })
}

/// Frees the template's name. Its files go with the next [`crate::sweep`], or when no server needs them.
pub fn remove(home: &Home, name: &str) -> Result<()> {
    name::check(name)?;
    let slot = home.templates.join(name);
    if !slot.is_dir() {
        return Err(Error::UnknownTemplate(name.into()));
    }
    template::put_aside(home, &slot, name)?;
    standby::remove(home, name)
}
