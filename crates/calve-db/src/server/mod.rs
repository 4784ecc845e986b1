//! Servers as their starters see them: from the wish for one to the conversation with its supervisor; and what a killed one left.

pub(crate) mod baseline;
pub(crate) mod control;
pub(crate) mod launch;
pub(crate) mod messages;
pub(crate) mod standby;
pub(crate) mod start;
pub(crate) mod starter;
pub(crate) mod sweep;
