//! Planning the changes of one file, and making them.

use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use calve_core::ReplacedFile;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::agents::{Content, Part};
use super::{Direction, json_text, toml_text};

/// The largest file that is read.
const FILE_BYTES: u64 = 4 << 20;

/// A file, and what is to become of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct FileChange {
    /// Relative to the worktree's root.
    pub path: PathBuf,
    /// Its present contents; `None` if it is not there.
    pub before: Option<String>,
    pub outcome: Edit,
}

/// The planned change of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Edit {
    /// It is to have this text.
    Write(String),
    /// It goes: nothing but what is Calve's is in it.
    Remove,
    /// It is as it should be.
    Fine,
    /// It stays as it is.
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
#[non_exhaustive]
pub enum FileLeftReason {
    /// Comments of the user's in what is Calve's.
    #[error("comments would be lost")]
    Comments,
    /// Its formatting, such as mixed line endings, would not survive the edit.
    #[error("its other lines would change")]
    Form,
    /// It cannot be read.
    #[error("it has a mistake: {0}")]
    Mistake(String),
    /// Another value is there.
    #[error("`{0}` has another value already")]
    Taken(String),
    /// It is a link, a directory, too large, or no text.
    #[error("it is not a plain text file")]
    NotPlain,
}

/// Finds out what is to become of a file.
pub(super) fn planned(root: &Path, part: Part, direction: Direction) -> io::Result<FileChange> {
    let before = match read(root, &part.path)? {
        Ok(before) => before,
        Err(why) => return Ok(FileChange { path: part.path, before: None, outcome: Edit::LeftAlone(why) }),
    };
    let text = before.as_deref();
    let outcome = match (&part.content, direction) {
        (Content::Json(members), Direction::Install) => json_text::with(text, members),
        (Content::Json(members), Direction::Uninstall) => json_text::without(text, members),
        (Content::Toml { tables, text: own }, Direction::Install) => toml_text::with(text, own, tables),
        (Content::Toml { tables, text: own }, Direction::Uninstall) => toml_text::without(text, own, tables),
    };
    Ok(FileChange { path: part.path, before, outcome: outcome.unwrap_or_else(Edit::LeftAlone) })
}

/// Reads a file without following a link, in directories that are none either.
pub(super) fn read(root: &Path, path: &Path) -> io::Result<Result<Option<String>, FileLeftReason>> {
    let mut above = root.to_path_buf();
    for name in path {
        above.push(name);
        let is_last = above == root.join(path);
        match fs::symlink_metadata(&above) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ok(None)),
            Err(error) => return Err(error),
            Ok(found) if is_last && found.is_file() && found.len() <= FILE_BYTES => {}
            Ok(found) if !is_last && found.is_dir() => {}
            Ok(_) => return Ok(Err(FileLeftReason::NotPlain)),
        }
    }
    Ok(String::from_utf8(fs::read(&above)?).map(Some).map_err(|_| FileLeftReason::NotPlain))
}

/// Does what was planned, unless the file has changed since: then fails.
pub fn apply(root: &Path, change: &FileChange) -> io::Result<()> {
    let path = root.join(&change.path);
    match &change.outcome {
        Edit::Fine | Edit::LeftAlone(_) => return Ok(()),
        _ if read(root, &change.path)?.ok() != Some(change.before.clone()) => {
            let text = format!("`{}` has changed meanwhile", calve_core::ShownPath(&path));
            return Err(io::Error::other(text));
        }
        Edit::Write(text) => replace(&path, text)?,
        Edit::Remove => {
            fs::remove_file(&path)?;
            // The directories that only it was in, as far as they are of an agent.
            for above in change.path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
                if fs::remove_dir(root.join(above)).is_err() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Gives a file a new text: it has the former or the new one at any time. A file that was there keeps its owner and permissions.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let name = path.file_name().unwrap_or_default();
    let replaced = ReplacedFile::find(fs::File::open(parent)?.as_fd(), name)?;
    let mut word = [0; 8];
    getrandom::fill(&mut word)?;
    let staged = parent.join(format!(".{}.{:016x}", name.to_string_lossy(), u64::from_ne_bytes(word)));
    let mode = if replaced.is_some() { ReplacedFile::NEW_MODE } else { 0o666 };
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&staged)?;
    let kept = replaced.as_ref().map_or(Ok(()), |replaced| replaced.keep_in(file.as_fd()).map(drop));
    let written = kept.and_then(|()| file.write_all(text.as_bytes())).and_then(|()| file.sync_all());
    let written = written.and_then(|()| match replaced {
        None => publish(&staged, path),
        Some(_) => fs::rename(&staged, path),
    });
    if written.is_err() {
        let _ = fs::remove_file(&staged);
    }
    written
}

/// Gives a file a name that nothing has. Where there are no hard links, another file gets its text.
fn publish(staged: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(staged, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o666).open(path)?;
            file.write_all(&fs::read(staged)?).and_then(|()| file.sync_all())?;
        }
        linked => linked?,
    }
    fs::remove_file(staged)
}
