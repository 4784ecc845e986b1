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

use calve_core::options::Background;
use calve_core::report::ReapReport;
use calve_core::{CancelToken, Error, RemovalWait, RemoveOptions, RemoveReport, reap, remove_tree};
use fs_err as fs;

fn waiting() -> RemoveOptions {
    let mut options = RemoveOptions::default();
    options.wait = RemovalWait::Yes;
    options
}

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

fn reap_in(directory: &Path) -> ReapReport {
    let parent = fs::File::open(directory).unwrap();
    reap(parent.into_parts().0.into(), directory, Background::No, &CancelToken::default()).unwrap()
}
