//! Ready, isolated, writable database servers from prepared data directories.
//!
//! The library never prints, and never reads the environment or configuration of its own accord. It is for Unix.
//!
//! Starts a server for a test. It ends when it is dropped, and with the process. `calve` is the program, in `PATH`, and
//! `calve db template create shop` made the template.
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
//! println!("{}", server.record.server.address.url);
//! # Ok(())
//! # }
//! ```

mod build;
mod engine;
mod error;
mod files;
mod registry;
mod server;
mod service;
mod supervise;
mod sys;

pub use build::{
    BuildEvent, BuiltTemplate, Caller, CommandEnd, CreateOptions, NameLock, ReceiveOptions, ReceivePaths,
    TemplateToSend, create as create_template, hold_to_send, promote, receive, remove as remove_template,
    remove_unused as remove_unused_templates,
};
pub use engine::address::Address;
pub use engine::container::RUNTIMES;
pub use engine::{EngineKind, MysqlSession, PostgresSession, ServerProgram};
pub use error::{EndReason, Error, Remedy, Result, UnusableData};
pub use registry::mark::marks;
pub use registry::template::key::recipe_word;
pub use registry::template::{DatabaseTemplate, ImageOrigin, list as list_templates};
pub use registry::{Ending, Home, LargeFile, LaunchReport, Record, Server, endings, find, list, log, throwaway};
pub use server::baseline::{BaselineServer, BaselineServers};
pub use server::control::{mark, reset, stop, unmark};
pub use server::messages::Ownership;
pub use server::standby::fill::{fill_pool, set_pool, want_pool};
pub use server::standby::{MOST_STANDBYS, Pool, PoolLifetime, PoolLimit, PoolOptions, has_pool, pools};
pub use server::start::{StartOptions, start};
pub use server::starter::{OwnedServer, first_process, memory_bytes};
pub use server::sweep::{ServerSweepReport, delete_trash, sweep};
pub use service::{
    LossRule, PendingRemoval, Service, ServiceData, ServiceOrigin, ServiceWorktree, begin_removal,
    create as create_service, find as find_service, finish_removals, has_newer_template, is_written, new_worktree_id,
    reset as reset_service, services, services_of, set_worktree, start as start_service, stop as stop_service,
    template_with_program, unreadable, usable_template as service_template,
};
pub use supervise::supervise;
pub use sys::ProcessEnd;
