//! Ready, isolated, writable database servers from prepared data directories.
//!
//! The library never prints, and never reads the environment or configuration of its own accord. It is for Unix.
#![cfg(unix)]

mod copy_up;
mod engine;
mod error;
mod files;
mod registry;
mod remedy;
mod server;
mod supervise;
mod sys;
mod template;

pub use copy_up::{Cause, Copied, Large, Trace};
pub use engine::{PostgresSession, names as engines};
pub use error::{Error, Result, Unusable};
pub use registry::{EndReason, Ending, Home, Log, Record, Swept, delete_trash, endings, find, list, log, sweep};
pub use remedy::Remedy;
pub use server::{Address, OwnedServer, Ownership, StartOptions, check_option_files, start};
pub use supervise::{Reset, Starting, Stopped, reset, stop, supervise};
pub use sys::Ended;
pub use template::{
    BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, Template, create as create_template,
    list as list_templates, remove as remove_template,
};
