//! Ready, isolated, writable database servers from prepared data directories.
//!
//! The library never prints, and never reads the environment or configuration of its own accord. It is for Unix.
#![cfg(unix)]

mod copy_up;
mod engine;
mod error;
mod files;
mod registry;
mod server;
mod supervise;
mod sys;
mod template;

pub use copy_up::{Cause, Copied, Large, Report, Trace, unreported};
pub use engine::names as engines;
pub use error::{Error, Result};
pub use registry::{Home, Record, Swept, delete_trash, find, list, sweep};
pub use server::{Address, Owned, Ownership, StartOptions, check_option_files, start};
pub use supervise::{Reset, Starting, Stopped, reset, stop, supervise};
pub use template::{
    Built, Caller, CommandEnd, CreateOptions, Said, Template, create as create_template, list as list_templates,
    remove as remove_template,
};
