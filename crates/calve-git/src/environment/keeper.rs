//! Whose data it is: a word in git's own directory of a worktree tells it from others, whatever is moved.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::Result;
use crate::identity::{give_word, read_word};
use crate::paths::real;
use crate::repository::{Worktree, entries};
use crate::trust;

/// The name of the file with the word.
const WORD: &str = "calve-services";
/// The name of the file with the word of another worktree, from whose data this one is to get its own.
pub(crate) const SOURCE: &str = "calve-data-from";

/// A worktree that keeps the data of services.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Keeper {
    /// Git's own directory of the worktree, which no commit can write, and which goes with the worktree.
    pub entry: PathBuf,
    pub id: String,
}

impl Keeper {
    /// Returns the worktree with this root; `None` if it keeps nothing.
    pub fn of(root: &Path) -> Result<Option<Keeper>> {
        Self::at(entry_of(root)?)
    }

    /// Returns a worktree that may be gone, and of which git's directory is left.
    pub fn of_worktree(worktree: &Worktree) -> Result<Option<Keeper>> {
        match &worktree.entry {
            Some(entry) => Self::at(real(entry)),
            None if worktree.is_bare => Ok(None),
            None => Self::of(&worktree.path),
        }
    }

    fn at(entry: PathBuf) -> Result<Option<Keeper>> {
        let id = read_word(&entry, WORD)?;
        Ok(id.map(|id| Keeper { entry, id }))
    }

    /// Returns the worktree that once had this word, and was here.
    pub fn named(entry: impl Into<PathBuf>, id: String) -> Keeper {
        Keeper { entry: entry.into(), id }
    }

    /// Gives the worktree with this root the word, unless it has one. Returns what it has.
    pub fn make(root: &Path, word: &str) -> Result<Keeper> {
        let entry = entry_of(root)?;
        let id = give_word(&entry, WORD, word)?;
        Ok(Keeper { entry, id })
    }

    /// Gives up its word: it came with a copy of another worktree, which has it still.
    pub fn forget(&self) -> Result<()> {
        remove_if_there(&self.entry.join(WORD))
    }

    /// Returns whether a worktree with this word is at `entry`. An error is no answer: it may be there.
    pub fn is_at(entry: &Path, id: &str) -> Result<bool> {
        Ok(read_word(entry, WORD)?.as_deref() == Some(id))
    }

    /// Returns the root of the worktree with this word at `entry`; `None` if the one or the other is not there. An error is no answer.
    pub fn root(entry: &Path, id: &str) -> Result<Option<PathBuf>> {
        if !Self::is_at(entry, id)? {
            return Ok(None);
        }
        let root = Self::last_root(entry);
        Ok(root.try_exists()?.then_some(root))
    }

    /// Returns where the worktree with this entry was last; its entry, if only that is known.
    pub fn last_root(entry: &Path) -> PathBuf {
        // That of a main worktree names none.
        let main = || entry.parent().filter(|_| entry.file_name().is_some_and(|name| name == ".git"));
        entries::worktree_of(entry).unwrap_or_else(|| main().unwrap_or(entry).to_path_buf())
    }

    /// Returns whether `entry` is its own directory, by whatever path.
    pub fn is(&self, entry: &Path) -> bool {
        let (own, other) = (fs::metadata(&self.entry), fs::metadata(entry));
        own.is_ok_and(|own| other.is_ok_and(|other| (own.dev(), own.ino()) == (other.dev(), other.ino())))
    }
}

fn entry_of(root: &Path) -> Result<PathBuf> {
    Ok(trust::entry_of(root)?.unwrap_or_else(|| real(&root.join(".git"))))
}

/// Returns the word of the worktree from whose data the one with this root is to get its own: the command that made it was killed before that.
pub fn data_source(root: &Path) -> Result<Option<String>> {
    read_word(&entry_of(root)?, SOURCE)
}

/// Forgets the [`data_source`] of the worktree with this root, which has data of its own now.
pub fn forget_data_source(root: &Path) -> Result<()> {
    remove_if_there(&entry_of(root)?.join(SOURCE))
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
