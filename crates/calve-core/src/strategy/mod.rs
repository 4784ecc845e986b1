//! The ways to clone, in order of preference, and the choice between them.

mod clonefile;
mod copy;
pub(crate) mod criteria;
pub(crate) mod facts;
pub(crate) mod hardlink;
pub(crate) mod method;
mod overlay;
mod reflink;
mod sample;
pub(crate) mod select;
mod snapshot;

pub(crate) use overlay::State as OverlayState;
pub use overlay::{OverlayMount, mount_overlay};
pub use snapshot::make_snapshotable_directory;
