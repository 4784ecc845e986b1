//! Test support: real file systems, trees worth cloning, and an oracle that shares no code with the engine.
//!
//! Everything here panics with the path and the reason instead of returning errors: a test without its setup has
//! failed. A missing ability of the machine (root, `rsync`) is skipped with a line on stderr, and fails when the
//! environment variable `CI` is set, so that no test passes by skipping where it counts.
//!
//! ```no_run
//! use calve_testkit::{FileSystem, Volume, assert_same, everything, fingerprint};
//!
//! let Some(volume) = Volume::new(FileSystem::Xfs) else { return };
//! let (src, dst) = (volume.path().join("src"), volume.path().join("dst"));
//! everything(&src);
//! let before = fingerprint(&src);
//! // ... clone `src` to `dst` ...
//! assert_same(&src, &dst);
//! before.assert_unchanged(&src);
//! ```
#![cfg(any(target_os = "linux", target_os = "macos"))]

mod binary;
mod cursor;
mod document;
#[cfg(target_os = "linux")]
mod fuse;
mod fuzz;
mod git;
mod inject;
mod mounts;
mod must;
mod oracle;
mod prng;
mod program;
mod rounds;
mod skip;
#[allow(unsafe_code, reason = "system calls that a thread must not make at any time")]
mod sys;
mod tree;
mod user;
mod volume;

pub use binary::calve_binary;
pub use document::assert_document;
#[cfg(target_os = "linux")]
pub use fuse::{FuseOptions, FuseVolume};
pub use fuzz::fuzz;
pub use git::{git, git_command};
pub use inject::{Injection, Outcome, each_nth, run_injected};
pub use mounts::{BindMount, unmount_whole};
pub use oracle::{Aspect, Fingerprint, assert_same, assert_same_except, differences, fingerprint, rsync_differences};
pub use prng::SplitMix64;
pub use program::{copy_program, spawn_written, write_program};
pub use rounds::{few_rounds, matrix, rounds};
pub use skip::{is_root, require_program, require_root, skip};
pub use tree::everything::everything;
pub use tree::random::random;
pub use tree::shapes::{Shape, deep, node_modules_like, remove_deep, wide};
pub use tree::{Capability, Tree};
pub use user::UnprivilegedUser;
pub use volume::{FileSystem, Volume, VolumeBuilder, isolate_mounts};
