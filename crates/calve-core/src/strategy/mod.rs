//! The ways to clone, in order of preference, and the choice between them.

pub(crate) mod criteria;
pub(crate) mod facts;
pub(crate) mod method;
mod sample;
pub(crate) mod select;

pub use overlay::{OverlayMount, mount_overlay};
pub use snapshot::make_snapshotable_directory;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $file:ident)*) => {
        $(pub(crate) mod $file;)*

        /// The fastest first.
        pub(crate) const IN_ORDER: &[&method::Method] = &[$(&$file::METHOD),*];
    };
}
crate::vocabulary::strategy::strategies!(methods);
