//! A spare: a clone that was made ahead of time, and is handed over by a rename when it is sure to equal its source. `spares` makes them.
//!
//! docs/atomicity.md says why a spare that is handed over equals its source.

pub(crate) mod ask;
pub(crate) mod check;
pub(crate) mod hand_over;
pub(crate) mod names;
pub(crate) mod order;
mod ranges;
pub(crate) mod record;
pub(crate) mod select;
pub(crate) mod store;
pub(crate) mod update;
