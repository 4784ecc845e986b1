//! Walking, filling, comparing and deleting trees, and the hidden siblings in which that happens.

pub(crate) mod ahead;
pub(crate) mod compare;
pub(crate) mod exclude;
pub(crate) mod fill;
pub(crate) mod location;
pub(crate) mod lock;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod notes;
pub(crate) mod pool;
pub(crate) mod scan;
pub(crate) mod stable;
