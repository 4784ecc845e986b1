//! Removing trees by renaming them out of sight, and deleting that trash.

use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

use calve_core::{Background, CancelToken, RemovalWait, RemoveOptions};
use fs_err as fs;

use crate::error::{Error, Result};
use crate::operation::Operation;

/// Removes a tree, if it exists. Without waiting, its contents are deleted with the trash beside it.
pub(crate) fn remove(path: &Path, wait: RemovalWait) -> Result<()> {
    let mut options = RemoveOptions::default();
    options.wait = wait;
    match calve_core::remove_tree(path, &options) {
        Ok(_) | Err(calve_core::Error::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Deletes the trash in a directory.
pub(crate) fn reap(directory: &Path) -> Result<()> {
    let opened = fs::File::open(directory).map_err(|error| Error::io(Operation::OpenDirectory, directory, error))?;
    let report = calve_core::reap(opened.into_parts().0.into(), directory, Background::No, &CancelToken::default())?;
    report.failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Deletes trash in a thread, so that the next request need not wait for it.
#[derive(Default)]
pub(crate) struct Reaper(Option<JoinHandle<()>>);

impl Reaper {
    /// Deletes the trash in these directories, after what was to be deleted before. Whatever stays goes with the directories themselves.
    pub(crate) fn reap(&mut self, directories: [PathBuf; 2]) {
        let earlier = Self(self.0.take());
        let work = move || {
            drop(earlier);
            for directory in &directories {
                let _ = reap(directory);
            }
        };
        self.0 = Builder::new().name("reaper".into()).spawn(work).ok();
    }
}

/// Waits until everything is deleted.
impl Drop for Reaper {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Returns whether trash waits in a directory.
pub(crate) fn is_in(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| calve_core::is_trash(entry.file_name().as_encoded_bytes()))
}
