//! Clone, remove and probe file trees by the fastest method that the file system really offers.
//!
//! ```
//! use calve_core::{CloneOptions, Wait, clone_tree, remove_tree};
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
//! options.wait = Wait::Yes;
//! remove_tree(&dst, &options)?;
//! # assert!(!dst.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library never prints, never reads the environment or configuration files, and never changes anything of the process
//! that it runs in.

mod check;
mod clone;
mod error;
mod finish;
mod guard;
mod options;
mod probe;
mod progress;
mod remove;
mod report;
mod source;
mod strategy;
mod sys;
mod tree;

pub use clone::{Plan, clone_tree, plan};
pub use error::{Error, Required, Shown};
pub use options::{
    Choice, CloneOptions, Durability, Existing, Inlined, Mounts, RemoveOptions, Requirement, Strategy, Verify, Wait,
};
pub use probe::{Offer, PlaceReport, ProbeReport, probe};
pub use progress::{Cancel, Progress};
pub use remove::{Background, ReapReport, check_removable, reap, remove_tree};
pub use report::{Bytes, CloneReport, Entries, FellBack, Refusal, RemoveReport, Skipped, Trashed, Warning};
pub use strategy::{OverlayMount, OverlayOptions, mount_overlay};
