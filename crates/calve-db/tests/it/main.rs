//! The one test binary of this crate: the program on real servers.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "clippy takes functions outside `#[test]` for other code")]

mod bad_input;
mod bench;
mod conformance;
mod containers;
mod copy_up;
mod django;
mod elsewhere;
mod ended;
mod engine;
mod full_disk;
mod hostile;
mod images;
mod killed;
mod lifetime;
mod marks;
mod moved;
mod patience;
mod resets;
mod run;
mod runtimes;
mod services;
mod sockets;
mod standby;
mod taking_over;
mod templates;
mod together;
mod world;
