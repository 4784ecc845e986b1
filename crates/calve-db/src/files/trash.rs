//! Removes trees by renaming them out of sight, and deletes that trash.

use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use calve_core::options::Background;
use calve_core::{CancelToken, RemovalWait, RemoveOptions};
use fs_err as fs;

use crate::error::{AtPath as _, Result, unless_cancelled};

/// The interval of looks at trash that another process deletes.
const POLL: Duration = Duration::from_millis(10);

/// Removes a tree if it exists. Without waiting, its contents are deleted with the trash beside it.
pub(crate) fn remove(path: &Path, wait: RemovalWait) -> Result<()> {
    let options = RemoveOptions { wait, ..RemoveOptions::default() };
    match calve_core::remove_tree(path, &options) {
        Ok(_) | Err(calve_core::Error::Missing(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn reap(directory: &Path) -> Result<()> {
    let opened = fs::File::open(directory).at("open directory", directory)?;
    let report = calve_core::reap(opened.into_parts().0.into(), directory, Background::No, &CancelToken::default())?;
    report.failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Deletes a directory's trash, and waits for other processes that do: a killed one leaves the rest.
pub(crate) fn reap_all(directory: &Path, cancel: &CancelToken) -> Result<()> {
    loop {
        // Before the work: busy trash may be free, and left behind, a moment later.
        let is_busy = calve_core::internal::pending_trash(directory)?.iter().any(|trash| trash.is_busy);
        reap(directory)?;
        if !is_busy {
            return Ok(());
        }
        unless_cancelled(cancel)?;
        std::thread::sleep(POLL);
    }
}

/// Deletes trash in a thread, so that the next request need not wait for it.
#[derive(Default)]
pub(crate) struct Reaper(Option<JoinHandle<()>>);

impl Reaper {
    /// Deletes the trash in these directories, after earlier trash. Leftovers go with the directories.
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

impl Drop for Reaper {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

pub(crate) fn is_in(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| calve_core::internal::is_trash(entry.file_name().as_encoded_bytes()))
}
