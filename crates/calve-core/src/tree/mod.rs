//! Walking, filling and comparing trees.

pub(crate) mod exclude;
pub(crate) mod notes;
pub(crate) mod pool;

pub(crate) mod compare;
pub(crate) mod file_set;
pub(crate) mod fill;
pub(crate) mod held_lock;
pub(crate) mod held_times;
pub(crate) mod location;
pub(crate) mod lock;
pub(crate) mod node;
pub(crate) mod own;
pub(crate) mod pending_stack;
pub(crate) mod replaced;
pub(crate) mod set_state;
pub(crate) mod source;
pub(crate) mod stable;
pub(crate) mod walk;
