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
//! let server = calve_db::start(&home, "shop", &options, &supervisor)?;
//! println!("{}", server.record.address.url);
//! # Ok(())
//! # }
//! ```

mod address;
mod bare;
mod build;
mod container;
mod control;
mod copy_up;
mod end_reason;
mod engine;
mod error;
mod files;
mod launch;
mod log;
mod mark;
mod messages;
mod operation;
mod registry;
mod remedy;
mod runtime;
mod server;
mod service;
mod standby;
mod start;
mod supervise;
mod sweep;
mod sys;
mod template;

pub use address::{Address, check_option_files};
pub use bare::{BareServer, BareServers, PreparedBareServer};
pub use build::{
    BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, NameLock, ReceiveOptions, ReceiveOutcome,
    ReceivePaths, TemplateToSend, create as create_template, hold_to_send, promote, receive, remove as remove_template,
    remove_unused as remove_unused_templates,
};
pub use container::RUNTIMES;
pub use control::{ResetReport, StopReport, mark, reset, stop, unmark};
pub use copy_up::LargeFile;
pub use end_reason::EndReason;
pub use engine::{EngineKind, MysqlSession, PostgresSession, names as engines};
pub use error::{Error, Result, UnusableData};
pub use mark::marks;
pub use operation::Operation;
pub use registry::{Ending, Home, Log, Record, endings, find, list, log};
pub use remedy::Remedy;
pub use server::{OwnedServer, first_process, memory_bytes};
pub use service::{
    DoomedService, NewService, Service, ServiceData, ServiceOrigin, UnsavedDataRule, WrittenDataRule,
    create as create_service, doom, find as find_service, is_written, new_keeper_id, reset as reset_service, services,
    set_keeper, start as start_service, stop as stop_service, sweep_doomed, usable_template as service_template,
};
pub use standby::{Pool, PoolLifetime, PoolLimit, PoolOptions, fill_pool, has_pool, pools, set_pool, want_pool};
pub use start::{Ownership, StartOptions, start};
pub use supervise::supervise;
pub use sweep::{ServerSweepReport, delete_trash, sweep};
pub use sys::ProcessEnd;
pub use template::key::recipe_word;
pub use template::{DatabaseTemplate, ImageOrigin, list as list_templates};
