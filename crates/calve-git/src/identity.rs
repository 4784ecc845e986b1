//! Random words in git's own directories, which distinguish a repository or worktree from a copy, wherever it is moved.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use calve_core::internal::ShownPath;
use fs_err as fs;

use crate::error::{Error, Result};
use crate::remedy::Remedy;

pub(crate) fn new_word() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the word in `name`, if that file exists. Fails if it has none: another word would hide the first one's data.
pub(crate) fn read_word(directory: &Path, name: &str) -> Result<Option<String>> {
    let path = directory.join(name);
    match fs::read(&path) {
        Ok(text) if !text.is_empty() && text.iter().all(u8::is_ascii_alphanumeric) => {
            Ok(Some(text.into_iter().map(char::from).collect()))
        }
        Ok(_) => {
            let text = format!("`{}` is damaged, or of another version", ShownPath(&path));
            Err(Error::refused(text, Remedy::RestoreWord(path)))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives a directory this word, unless it has one. Returns the word that it has.
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
