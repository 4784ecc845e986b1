//! Ready, isolated, writable database servers from prepared data directories.
//!
//! The library never prints, and never reads the environment or configuration of its own accord. It is for Unix.
//!
//! A server for a test, which ends when it is dropped and with the process. `calve` is the program, in `PATH`; the template is one that
//! `calve db template create shop` has made.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use calve_db::{Home, Ownership, StartOptions};
//!
//! # fn start(calve_home: &Path, xdg_runtime_dir: Option<&Path>) -> calve_db::Result<()> {
//! let home = Home::new(calve_home, xdg_runtime_dir);
//! let mut options = StartOptions::default();
//! options.owner = Ownership::Caller;
//! let supervisor = ["calve".into(), "__supervise".into()];
//! let server = calve_db::start(&home, "shop", &options, &supervisor, &mut |_| ())?;
//! println!("{}", server.record.address.url);
//! # Ok(())
//! # }
//! ```
#![cfg(unix)]

mod container;
mod contents;
mod copy_up;
mod end_reason;
mod engine;
mod error;
mod files;
mod mark;
mod registry;
mod remedy;
mod server;
mod service;
mod standby;
mod supervise;
mod sys;
mod template;

pub use container::RUNTIMES;
pub use contents::{Difference, contents, differences};
pub use copy_up::{Cause, Copied, Large};
pub use end_reason::EndReason;
pub use engine::{DatabaseObject, MysqlSession, PostgresSession, Rows, names as engines};
pub use error::{Error, Result, Unusable};
pub use mark::marks;
pub use registry::{Ending, Home, Log, Record, Swept, delete_trash, endings, find, list, log, sweep};
pub use remedy::Remedy;
pub use server::memory_bytes;
pub use server::{Address, OwnedServer, Ownership, StartOptions, Trace, check_option_files, start};
pub use service::{
    Doomed, NewService, Service, ServiceData, ServiceOrigin, Unsaved, Written,
    check_template as check_service_template, create as create_service, doom, find as find_service, is_written,
    new_keeper_id, reset as reset_service, services, set_keeper, start as start_service, stop as stop_service,
    sweep_doomed,
};
pub use standby::{Pool, PoolLifetime, PoolLimit, PoolOptions, fill_pool, has_pool, pools, set_pool, want_pool};
pub use supervise::{Reset, Starting, Stopped, mark, reset, stop, supervise, unmark};
pub use sys::Ended;
pub use template::{
    BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, HeldTemplate, ImageOrigin, NameLock, ReceiveOptions,
    Received, Room, Template, create as create_template, hold_to_send, list as list_templates, promote, receive,
    remove as remove_template,
};
