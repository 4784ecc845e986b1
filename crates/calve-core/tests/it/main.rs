//! The tests of the engine, on real file systems: see `calve_testkit` for what they stand on.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod child;
mod cloning;
mod extents;
mod rival;

mod atomicity;
mod bulk;
mod changing;
mod conformance;
mod hostile;
mod independence;
mod latency;
#[cfg(like_macos)]
mod macos;
mod overlay;
mod patterns;
mod plain;
mod regression;
mod remove;
mod space;
mod spare;
mod staging;
mod sweep;
mod template;
mod tidy;
