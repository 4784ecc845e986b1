//! Clone, remove and probe file trees by the fastest method that the file system really offers.
//!
//! ```
//! use calve_core::{CloneOptions, RemovalWait, clone_tree, remove_tree};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (src, dst) = (folder.path().join("project"), folder.path().join("copy"));
//! # fs_err::create_dir(&src)?;
//! # fs_err::write(src.join("readme"), "hello")?;
//! let report = clone_tree(&src, &dst, &CloneOptions::default())?;
//! println!("made by {}; better ones: {:?}", report.strategy, report.refused);
//! # assert_eq!(fs_err::read_to_string(dst.join("readme"))?, "hello");
//!
//! let mut options = calve_core::RemoveOptions::default();
//! options.wait = RemovalWait::Yes;
//! remove_tree(&dst, &options)?;
//! # assert!(!dst.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library never prints, never reads the environment or configuration files, and changes nothing of its process.

mod background;
#[warn(missing_docs)]
pub mod bulk;
mod claim;
mod clone;
pub mod error;
mod home;
#[doc(hidden)]
pub mod internal;
mod json;
#[warn(missing_docs)]
pub mod options;
#[warn(missing_docs)]
pub mod overlay_run;
#[warn(missing_docs)]
mod patterns;
#[warn(missing_docs)]
mod probe;
#[warn(missing_docs)]
mod progress;
mod remove;
#[warn(missing_docs)]
pub mod report;
mod scan;
#[warn(missing_docs)]
pub mod space;
#[warn(missing_docs)]
pub mod spares;
mod staging;
mod strategy;
mod sys;
#[warn(missing_docs)]
pub mod template;
mod tree;
mod vocabulary;

pub use clone::{clone_tree, plan};
pub use error::Error;
pub use options::{
    CloneOptions, CloneVerification, Durability, ExistingDestination, Mounts, RemovalWait, RemoveOptions, Selection,
    UnreadableEntry,
};
pub use patterns::Patterns;
pub use probe::probe;
pub use progress::{CancelToken, Progress};
pub use remove::{reap, remove_tree};
pub use report::{CloneReport, ProbeReport, RemoveReport};
pub use vocabulary::strategy::{Choice, Refusal, Requirement, Strategy};
