//! Serializes agents that want the same branch, until its worktree is finished: a hook configured twice asks twice.

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use calve_core::CancelToken;
use calve_core::internal::lock_file;
use rustix::fs::{CWD, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::repository::Repository;

const PREFIX: &str = "calve-agent-";
const SUFFIX: &str = ".lock";
const PAUSE: Duration = Duration::from_millis(20);

/// The right to make a branch's worktree for an agent, until dropped or its process ends. Without file locks, every agent has it: an agent
/// without its worktree would be worse than two that ask at once.
#[derive(Debug)]
pub struct AgentTurn {
    locked: Option<(PathBuf, File)>,
}

impl AgentTurn {
    pub fn wait(start: &Path, branch: &str, cancel: &CancelToken) -> Result<AgentTurn> {
        let id = blake3::hash(branch.as_bytes()).to_hex();
        let path = Repository::open(start)?.common.join(format!("{PREFIX}{}{SUFFIX}", &id[..16]));
        loop {
            match AgentTurn::take(&path, OFlags::CREATE) {
                Ok(Some(turn)) => return Ok(turn),
                Ok(None) if cancel.is_cancelled() => return Err(Error::Interrupted),
                Ok(None) => {}
                // The file system has no locks, or the file belongs to a user who does not share the repository.
                Err(_) => return Ok(AgentTurn { locked: None }),
            }
            sleep(PAUSE);
        }
    }

    fn take(path: &Path, flags: OFlags) -> std::io::Result<Option<AgentTurn>> {
        let locked = lock_file(CWD, path, flags | OFlags::RDWR, FlockOperation::NonBlockingLockExclusive);
        if let Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) = locked {
            // No process holds it.
            let _ = fs_err::remove_file(path);
        }
        let Some(file) = locked?.map(File::from) else { return Ok(None) };
        if flags.contains(OFlags::CREATE) {
            share(path, &file)?;
        }
        Ok(Some(AgentTurn { locked: Some((path.to_path_buf(), file)) }))
    }
}

/// Lets everyone who may write to the repository's directory use the file (`core.sharedRepository`).
fn share(path: &Path, file: &File) -> std::io::Result<()> {
    let writers = fs_err::metadata(path.parent().unwrap_or(path))?.mode() & 0o022;
    // Writers read it, too.
    let mode = 0o600 | writers | (writers << 1);
    // Another user's file has the mode already.
    if file.metadata()?.mode() & 0o777 != mode {
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
    Ok(())
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

impl Drop for AgentTurn {
    fn drop(&mut self) {
        // The lock is still held here: the next process creates a new file.
        if let Some((path, _)) = &self.locked {
            let _ = fs_err::remove_file(path);
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use calve_testkit::{FuseOptions, FuseVolume, git_command};

    use super::*;

    fn locks(directory: &Path) -> usize {
        let entries = fs_err::read_dir(directory.join(".git")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(PREFIX)).count()
    }

    #[test]
    fn without_locks_nobody_waits_or_fails() {
        for refuses_flock in [false, true] {
            let options = FuseOptions { refuses_flock, ..FuseOptions::default() };
            let Some(volume) = FuseVolume::with_options(options) else { return };
            assert!(git_command(volume.path()).args(["init", "-q"]).status().unwrap().success());
            let cancel = CancelToken::default();
            let first = AgentTurn::wait(volume.path(), "x", &cancel).unwrap();
            assert_eq!(locks(volume.path()), usize::from(!refuses_flock));
            if refuses_flock {
                drop(AgentTurn::wait(volume.path(), "x", &cancel).unwrap());
            } else {
                cancel.cancel();
                assert!(matches!(AgentTurn::wait(volume.path(), "x", &cancel), Err(Error::Interrupted)));
            }
            drop(first);
            assert_eq!(locks(volume.path()), 0);
        }
    }
}
