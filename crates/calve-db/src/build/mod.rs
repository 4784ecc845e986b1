//! Making, replacing and removing templates.

mod create;
mod promote;
mod publish;
mod travel;

pub use create::{BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, create};
pub use promote::promote;
pub use travel::{NameLock, ReceiveOptions, ReceiveOutcome, ReceivePaths, TemplateToSend, hold_to_send, receive};

use crate::error::{Error, Result};
use crate::registry::{Home, name};
use crate::{standby, template};

/// Removes a template. Its name is free on return; its files go with the next [`crate::sweep`], or when no server needs them.
pub fn remove(home: &Home, name: &str) -> Result<()> {
    name::check(name)?;
    let place = home.templates().join(name);
    if !place.is_dir() {
        return Err(Error::UnknownTemplate(name.into()));
    }
    template::put_aside(home, &place, name)?;
    standby::remove(home, name)?;
    Ok(())
}
