//! Random words in directories of git's own: by one a repository or a worktree is told from a copy of it, wherever it is moved.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use fs_err as fs;

use crate::error::Result;

/// Returns a word that nothing else has.
pub(crate) fn new_word() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the word in the file `name` of a directory. `None` if there is none.
pub(crate) fn read_word(directory: &Path, name: &str) -> Result<Option<String>> {
    let is_word = |text: &String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match fs::read_to_string(directory.join(name)) {
        Ok(text) => Ok(Some(text).filter(is_word)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives a directory a word in the file `name`, unless it has one. Returns the word that it has.
pub(crate) fn give_word(directory: &Path, name: &str, word: &str) -> Result<String> {
    let staged = directory.join(format!("{name}.{word}"));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&staged)?;
    let written = file.write_all(word.as_bytes()).and_then(|()| file.sync_all());
    // Another process may have been faster.
    let named = written.and_then(|()| match fs::hard_link(&staged, directory.join(name)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    });
    fs::remove_file(&staged)?;
    named?;
    Ok(read_word(directory, name)?.unwrap_or_else(|| word.to_owned()))
}
