//! Servers as their starters see them: launching them, talking to their supervisors, and sweeping up killed ones.

pub(crate) mod baseline;
pub(crate) mod control;
pub(crate) mod launch;
pub(crate) mod messages;
pub(crate) mod standby;
pub(crate) mod start;
pub(crate) mod starter;
pub(crate) mod sweep;
