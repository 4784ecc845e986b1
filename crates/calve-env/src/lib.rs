//! Complete worktrees, each with its own ports, databases and env files.
//!
//! [`add`] makes one, [`set_up`] completes one that another program made, [`remove`] removes one, and [`Environment`]
//! is its life in between. The library never prints and never reads the environment: its [`Host`] does.

mod add;
mod complete;
mod consent;
mod data_from;
mod early_clones;
mod env_files;
mod environment;
mod error;
mod host;
mod leaving;
mod origin;
mod ownership;
mod ports;
mod prune;
mod remedy;
mod remove;
mod service_receipts;
mod services;
mod set_up;
mod template;

pub use add::{AddFailure, AddOptions, AddOutcome, AddRest, AddedEnvironment, add, plan};
pub use complete::OwnParts;
pub use consent::{Consent, approvals, approvals_failed};
pub use data_from::DataFrom;
pub use env_files::RewrittenFiles;
pub use environment::{Environment, ServiceReset, StartedServices};
pub use error::{Error, Result};
pub use host::{Event, Host, database_home, reap_trash, required_home, swept_home};
pub use origin::DataOrigin;
pub use ownership::{last_root, note_places, note_places_around, services_of_named};
pub use ports::{carry_ports, ports_of_worktrees};
pub use prune::{merged, prune_data};
pub use remedy::Remedy;
pub use remove::{RemoveOptions, RemovedEnvironment, plan_removal, remove};
pub use service_receipts::{data_bytes, services_of_worktrees};
pub use services::Services;
pub use set_up::set_up;
