//! Ready, isolated, writable database servers from prepared data directories.
//!
//! The library never prints, and never reads the environment or configuration of its own accord. It is for Unix.
#![cfg(unix)]

mod account;
mod address;
mod client;
mod confined;
mod connection;
mod control;
mod copy_up;
mod directory;
mod engine;
mod error;
mod home;
mod key;
mod launch;
mod manifest;
mod memory;
mod name;
mod place;
mod private;
mod programs;
mod readiness;
mod registry;
mod requests;
mod runtime;
mod server;
mod sockets;
mod spec;
mod supervisor;
mod sweep;
mod sys;
mod template;

pub use address::Address;
pub use client::check_option_files;
pub use control::{Reset, Stopped, reset, stop};
pub use copy_up::{Cause, Copied, Large, Report, Trace, unreported};
pub use engine::names as engines;
pub use error::{Error, Result};
pub use home::Home;
pub use registry::{Record, find, list};
pub use server::{Owned, Ownership, StartOptions, start};
pub use spec::Starting;
pub use supervisor::supervise;
pub use sweep::{Swept, delete_trash, sweep};
pub use template::{
    Built, Caller, CommandEnd, CreateOptions, Said, Template, create as create_template, list as list_templates,
    remove as remove_template,
};

/// Repeats a call until no signal interrupts it.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return other,
        }
    }
}

/// How a process ended, in words.
fn ended(ended: sys::Ended) -> String {
    match ended {
        sys::Ended::Exit(code) => format!("exit code {code}"),
        sys::Ended::Signal(signal) => format!("signal {signal}"),
    }
}
