//! The file by which others can tell whether the maker of a worktree's entry is still at work.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

use crate::error::Result;

/// Its name in the entry. The maker holds it under flock(2), and takes it away as the last thing it does.
pub(crate) const JOURNAL: &str = "calve";

/// How the maker of an entry is, going by the journal of it that was opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MakerState {
    Alive,
    /// Gone, and the entry is as it was then.
    Left,
    /// Gone, and it had come to its end: between opening its journal and trying the lock it took the journal away.
    Finished,
}

/// Looks at a journal that was opened. Where the maker is gone, the lock is this process's from now on.
pub(crate) fn state(journal: &File) -> Result<MakerState> {
    if flock(journal, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(MakerState::Alive);
    }
    // Only who holds the lock takes a journal away, and that is this process now.
    let links = rustix::fs::fstat(journal).map_err(std::io::Error::from)?.st_nlink;
    Ok(if links == 0 { MakerState::Finished } else { MakerState::Left })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_goes_while_it_is_looked_at_is_of_an_entry_that_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(JOURNAL);
        let mine = File::from(fs_err::File::create(&path).unwrap());
        flock(&mine, FlockOperation::NonBlockingLockExclusive).unwrap();
        let theirs = File::from(fs_err::File::open(&path).unwrap());
        assert_eq!(state(&theirs).unwrap(), MakerState::Alive);
        fs_err::remove_file(&path).unwrap();
        // A process that another test has just forked has it open too.
        flock(&mine, FlockOperation::Unlock).unwrap();
        assert_eq!(state(&theirs).unwrap(), MakerState::Finished);
        fs_err::write(&path, "").unwrap();
        assert_eq!(state(&File::from(fs_err::File::open(&path).unwrap())).unwrap(), MakerState::Left);
    }
}
