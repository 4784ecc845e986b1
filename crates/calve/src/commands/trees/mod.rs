//! The commands for trees of files.

pub(crate) mod cp;
pub(crate) mod dedupe;
pub(crate) mod du;
pub(crate) mod probe;
pub(crate) mod rm;
pub(crate) mod run;
mod space;
pub(crate) mod spares;
pub(crate) mod template;
pub(crate) mod volume;
