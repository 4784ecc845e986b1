//! The one test binary of this crate.
#![cfg(unix)]
