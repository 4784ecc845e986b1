//! Walking, filling, comparing and deleting trees, and the hidden siblings in which that happens.

pub(crate) mod ahead;
pub(crate) mod compare;
pub(crate) mod contents;
pub(crate) mod delete;
mod descend;
pub(crate) mod entry;
pub(crate) mod exclude;
pub(crate) mod fill;
mod groups;
mod links;
pub(crate) mod lock;
mod log;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod notes;
pub(crate) mod place;
pub(crate) mod pool;
pub(crate) mod room;
pub(crate) mod scan;
pub(crate) mod scrub;
pub(crate) mod stable;
pub(crate) mod staging;
pub(crate) mod sweep;
pub(crate) mod trash;
