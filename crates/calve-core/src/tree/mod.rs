//! Walking, filling, comparing and deleting trees.

#[cfg_attr(windows, allow(dead_code, reason = "one form of a name is of no use there"))]
pub(crate) mod exclude;
#[cfg_attr(windows, allow(dead_code, reason = "not everything is told there"))]
pub(crate) mod notes;
#[cfg_attr(windows, allow(dead_code, reason = "there are no descriptors to count"))]
pub(crate) mod pool;

#[cfg(unix)]
pub(crate) mod ahead;
#[cfg(unix)]
pub(crate) mod compare;
#[cfg(unix)]
pub(crate) mod fill;
#[cfg(unix)]
pub(crate) mod location;
#[cfg(unix)]
pub(crate) mod lock;
#[cfg(unix)]
pub(crate) mod names;
#[cfg(unix)]
pub(crate) mod node;
#[cfg(unix)]
pub(crate) mod source;
#[cfg(unix)]
pub(crate) mod stable;
#[cfg(unix)]
pub(crate) mod walk;
