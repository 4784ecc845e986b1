//! Compares trees without any of the engine's code.

mod compare;
mod content;
mod fingerprint;
mod record;
mod rsync;

pub use compare::{Aspect, assert_same, assert_same_except, differences};
pub use fingerprint::{Fingerprint, fingerprint};
pub use rsync::rsync_differences;
