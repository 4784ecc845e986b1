//! Stored state: servers with their records and marks, and templates.

mod ending;
pub(crate) mod mark;
pub(crate) mod name;
mod record;
mod servers;
mod slots;
pub(crate) mod template;

pub use crate::files::home::Home;
pub(crate) use crate::files::home::POOL_SUFFIX;
pub use ending::{Ending, endings};
pub(crate) use ending::{forget as forget_ending, gone, sweep as sweep_endings};
pub use record::{LargeFile, LaunchReport, Record, Server};
pub(crate) use record::{StartFindings, read, read_begun, write, write_begun};
pub use servers::{find, list, log, throwaway};
pub(crate) use servers::{is_held_by, without_record};
pub(crate) use slots::*;
