//! Handing over spares: clones made ahead of time, and renamed into place once they are sure to equal their source.
//! docs/atomicity.md says why they do. `spares` makes them.

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
