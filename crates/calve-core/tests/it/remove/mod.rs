//! Removing: out of sight at once, deleted later, and never what must not be.

mod deletion;
mod expected;
mod git;
#[cfg(target_os = "linux")]
mod mounts;
mod refusals;
#[cfg(target_os = "linux")]
mod subvolumes;
mod trash;

use std::path::Path;

use calve_core::{Error, RemoveOptions, RemoveReport, remove_tree};

use crate::cloning::{reap_in, waiting};

#[track_caller]
fn remove(path: impl AsRef<Path>, options: &RemoveOptions) -> RemoveReport {
    match remove_tree(path.as_ref(), options) {
        Ok(report) => report,
        Err(error) => panic!("cannot remove `{}`: {error}", path.as_ref().display()),
    }
}

#[track_caller]
fn refused(path: impl AsRef<Path>, options: &RemoveOptions) -> Error {
    match remove_tree(path.as_ref(), options) {
        Err(error) => error,
        Ok(report) => panic!("`{}` was removed: {report:?}", path.as_ref().display()),
    }
}
