//! Serializes agents that ask for the same branch, until its worktree is finished: a hook that is configured twice asks twice at once.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use calve_core::CancelToken;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::repository::Repository;

const PREFIX: &str = "calve-agent-";
const SUFFIX: &str = ".lock";
const PAUSE: Duration = Duration::from_millis(20);

/// The right to make a worktree of one branch for an agent, held until this is dropped or its process ends.
#[derive(Debug)]
pub struct AgentTurn {
    path: PathBuf,
    _locked: File,
}

impl AgentTurn {
    /// Waits until no other process is making this branch's worktree for an agent.
    pub fn wait(start: &Path, branch: &str, cancel: &CancelToken) -> Result<AgentTurn> {
        let id = blake3::hash(branch.as_bytes()).to_hex();
        let path = Repository::open(start)?.common.join(format!("{PREFIX}{}{SUFFIX}", &id[..16]));
        loop {
            if let Some(turn) = AgentTurn::take(&path, OFlags::CREATE)? {
                return Ok(turn);
            } else if cancel.is_cancelled() {
                return Err(Error::Interrupted);
            }
            sleep(PAUSE);
        }
    }

    fn take(path: &Path, flags: OFlags) -> std::io::Result<Option<AgentTurn>> {
        let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::from_raw_mode(0o600))?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // The previous holder may have removed the file meanwhile.
            Ok(()) => Ok(is_there(path, &file).then(|| AgentTurn { path: path.to_path_buf(), _locked: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Removes the lock files of killed processes.
pub(crate) fn sweep(common: &Path) -> Result<()> {
    for entry in fs_err::read_dir(common)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX)) {
            // Dropping the turn removes the file. If it cannot be taken, another process holds it or it is gone.
            drop(AgentTurn::take(&entry.path(), OFlags::empty()));
        }
    }
    Ok(())
}

fn is_there(path: &Path, file: &File) -> bool {
    let named = fs_err::symlink_metadata(path).map(|found| (found.dev(), found.ino())).ok();
    file.metadata().is_ok_and(|opened| named == Some((opened.dev(), opened.ino())))
}

impl Drop for AgentTurn {
    fn drop(&mut self) {
        // The lock is still held here: the next process creates a new file.
        let _ = fs_err::remove_file(&self.path);
    }
}
