//! The tests of the engine, on real file systems: see `calve_testkit` for what they stand on.
#![cfg(any(target_os = "linux", target_os = "macos"))]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod child;
mod cloning;
mod rival;

mod atomicity;
mod conformance;
mod patterns;
mod remove;
mod staging;
mod sweep;
mod tidy;

#[cfg(like_macos)]
mod macos;

#[cfg(target_os = "linux")]
mod bulk;
#[cfg(target_os = "linux")]
mod changing;
#[cfg(target_os = "linux")]
mod extents;
#[cfg(target_os = "linux")]
mod file_sets;
#[cfg(target_os = "linux")]
mod follow;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod independence;
#[cfg(target_os = "linux")]
mod latency;
#[cfg(target_os = "linux")]
mod overlay;
#[cfg(target_os = "linux")]
mod plain;
#[cfg(target_os = "linux")]
mod regression;
#[cfg(target_os = "linux")]
mod replaced;
#[cfg(target_os = "linux")]
mod revert;
#[cfg(target_os = "linux")]
mod script;
#[cfg(target_os = "linux")]
mod space;
#[cfg(target_os = "linux")]
mod spare;
#[cfg(target_os = "linux")]
mod template;
