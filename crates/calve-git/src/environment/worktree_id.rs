//! The owner of service data: an id in git's own directory of a worktree, which identifies it whatever is moved.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::environment::leasing_worktree::own_directory;
use crate::error::Result;
use crate::identity::{give_word, read_word};
use crate::paths::{if_there, real};
use crate::repository::entries::{self, DATA_SOURCE, NO_SOURCE};
use crate::repository::{Repository, Worktree};

const FILE: &str = "calve-services";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeId {
    /// Git's own directory of the worktree, which no commit can write, and which goes with the worktree.
    pub entry: PathBuf,
    pub id: String,
}

impl WorktreeId {
    pub fn read(root: &Path) -> Result<Option<WorktreeId>> {
        Self::at(own_directory(root)?)
    }

    /// Accepts a worktree that is gone, if git's directory of it is left.
    pub fn of_worktree(worktree: &Worktree) -> Result<Option<WorktreeId>> {
        match &worktree.entry {
            Some(entry) => Self::of_entry(entry),
            None if worktree.is_bare => Ok(None),
            None => Self::read(&worktree.path),
        }
    }

    /// Returns those of a repository's worktrees that can be read.
    pub fn of_repository(start: &Path) -> Result<Vec<WorktreeId>> {
        Ok(Repository::open(start)?.worktrees.iter().filter_map(|one| Self::of_worktree(one).ok()?).collect())
    }

    pub fn of_entry(entry: &Path) -> Result<Option<WorktreeId>> {
        Self::at(real(entry))
    }

    fn at(entry: PathBuf) -> Result<Option<WorktreeId>> {
        let id = read_word(&entry, FILE)?;
        Ok(id.map(|id| WorktreeId { entry, id }))
    }

    /// Gives the worktree this id, unless it has one. Returns the id it has.
    pub fn make(root: &Path, id: &str) -> Result<WorktreeId> {
        let entry = own_directory(root)?;
        let id = give_word(&entry, FILE, id)?;
        Ok(WorktreeId { entry, id })
    }

    /// Gives up an id that came with a copy of another worktree, which still has it.
    pub fn forget(&self) -> Result<()> {
        if_there(fs::remove_file(self.entry.join(FILE)))?;
        Ok(())
    }

    /// Returns whether a worktree with this id is at `entry`. An error leaves that open.
    pub fn is_at(entry: &Path, id: &str) -> Result<bool> {
        Ok(read_word(entry, FILE)?.as_deref() == Some(id))
    }

    /// Returns the root of the worktree with this id at `entry`, which may be unmounted; `None` if one is missing. An
    /// error leaves that open.
    pub fn root(entry: &Path, id: &str) -> Result<Option<PathBuf>> {
        if !Self::is_at(entry, id)? {
            return Ok(None);
        }
        let root = Self::last_root(entry);
        let is_left = root.try_exists()? || entries::unmounted(entry).is_some();
        Ok(is_left.then_some(root))
    }

    /// Returns the last known root of the worktree, or else its entry.
    pub fn last_root(entry: &Path) -> PathBuf {
        // The entry of a main worktree names none.
        let main = || entry.parent().filter(|_| entry.file_name().is_some_and(|name| name == ".git"));
        entries::worktree_of(entry).unwrap_or_else(|| main().unwrap_or(entry).to_path_buf())
    }

    /// Returns whether `entry` is its own directory, by any path.
    pub fn is(&self, entry: &Path) -> bool {
        let (own, other) = (fs::metadata(&self.entry), fs::metadata(entry));
        own.is_ok_and(|own| other.is_ok_and(|other| (own.dev(), own.ino()) == (other.dev(), other.ino())))
    }
}

/// Returns the id of the worktree whose data is still to be cloned: the command that made this one was killed before,
/// perhaps while it noted the id.
pub fn data_source(root: &Path) -> Result<Option<String>> {
    let word = read_word(&own_directory(root)?, DATA_SOURCE).ok().flatten();
    Ok(word.filter(|word| word != NO_SOURCE))
}

/// Forgets the [`data_source`] of a finished worktree, which has its own data now.
pub fn forget_data_source(root: &Path) -> Result<()> {
    if_there(fs::remove_file(own_directory(root)?.join(DATA_SOURCE)))?;
    Ok(())
}
