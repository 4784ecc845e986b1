use std::path::PathBuf;

#[derive(Debug)]
pub struct FileChange {
    /// Relative to the worktree's root.
    pub path: PathBuf,
    /// Its present contents; `None` if it does not exist.
    pub before: Option<String>,
    pub outcome: Edit,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    Write(String),
    /// Everything in it is Calve's.
    Remove,
    Fine,
    LeftAlone(FileLeftReason),
}

impl Edit {
    /// Fails on mixed line endings, because the edit would change other lines.
    pub(super) fn write(before: &str, after: String) -> Result<Self, FileLeftReason> {
        let crlf = before.matches("\r\n").count();
        if crlf > 0 && crlf < before.matches('\n').count() {
            return Err(FileLeftReason::Form);
        }
        Ok(Self::Write(after))
    }

    /// Leaves `left` of a file after Calve's part was taken out. `markers`: those of comments in its language.
    pub(super) fn leave(before: &str, left: String, is_empty: bool, markers: &[&str]) -> Result<Self, FileLeftReason> {
        match comments(&left, markers) {
            // Some were inside that part, or right beside it.
            count if count != comments(before, markers) => Err(FileLeftReason::Comments),
            0 if is_empty => Ok(Self::Remove),
            _ => Self::write(before, left),
        }
    }
}

/// Counts comment markers. Counting those in strings is harmless, because only Calve's own text goes, and it has none.
pub(super) fn comments(text: &str, markers: &[&str]) -> usize {
    markers.iter().map(|marker| text.matches(marker).count()).sum()
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileLeftReason {
    /// Calve's part contains comments by the user.
    #[error("comments would be lost")]
    Comments,
    /// The edit would not preserve its formatting, such as mixed line endings.
    #[error("its other lines would change")]
    Form,
    #[error("it has a mistake: {0}")]
    Mistake(String),
    #[error("`{0}` already has a different value")]
    Taken(String),
    /// A link, a directory, too large, or not text.
    #[error("it is not a plain text file")]
    NotPlain,
}
