use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;

use calve_core::internal::ReplacedFile;
use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::edit::{Edit, FileChange, FileLeftReason};

const FILE_BYTES: u64 = 4 << 20;

/// Reads a file without following links, not even in the directories above it.
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

/// Applies the planned change. Fails if the file has changed since the plan.
pub fn apply(root: &Path, change: &FileChange) -> io::Result<()> {
    let path = root.join(&change.path);
    match &change.outcome {
        Edit::Fine | Edit::LeftAlone(_) => return Ok(()),
        _ if read(root, &change.path)?.ok() != Some(change.before.clone()) => {
            let text = format!("`{}` has changed meanwhile", calve_core::internal::ShownPath(&path));
            return Err(io::Error::other(text));
        }
        Edit::Write(text) => replace(&path, text)?,
        Edit::Remove => {
            fs::remove_file(&path)?;
            // Also remove the directories that have become empty.
            for above in change.path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
                if fs::remove_dir(root.join(above)).is_err() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Replaces a file's text atomically. An existing file keeps its owner and permissions.
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

/// Publishes a new file without replacing any. Copies its text if the file system has no hard links.
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
