//! The change of one file, or the reason for leaving it alone.

use std::path::PathBuf;

#[derive(Debug)]
pub struct FileChange {
    /// Relative to the worktree's root.
    pub path: PathBuf,
    /// Its present contents; `None` if it is not there.
    pub before: Option<String>,
    pub outcome: Edit,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    Write(String),
    /// It goes, because everything in it is Calve's.
    Remove,
    Fine,
    LeftAlone(FileLeftReason),
}

impl Edit {
    /// Writes the changed text. Fails if its line endings are mixed, because those beside the addition would change.
    pub(super) fn write(before: &str, after: String) -> Result<Self, FileLeftReason> {
        let crlf = before.matches("\r\n").count();
        if crlf > 0 && crlf < before.matches('\n').count() {
            return Err(FileLeftReason::Form);
        }
        Ok(Self::Write(after))
    }
}

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileLeftReason {
    /// The user's comments inside Calve's part.
    #[error("comments would be lost")]
    Comments,
    /// Its formatting, such as mixed line endings, would not survive the edit.
    #[error("its other lines would change")]
    Form,
    #[error("it has a mistake: {0}")]
    Mistake(String),
    #[error("`{0}` has another value already")]
    Taken(String),
    /// It is a link, a directory, too large, or no text.
    #[error("it is not a plain text file")]
    NotPlain,
}
