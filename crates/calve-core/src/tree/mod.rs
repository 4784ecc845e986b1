//! Walking, filling, comparing and deleting trees.

pub(crate) mod exclude;
pub(crate) mod notes;
pub(crate) mod pool;

pub(crate) mod ahead;
pub(crate) mod compare;
pub(crate) mod fill;
pub(crate) mod location;
pub(crate) mod lock;
pub(crate) mod names;
pub(crate) mod node;
pub(crate) mod set_state;
pub(crate) mod source;
pub(crate) mod stable;
pub(crate) mod walk;
