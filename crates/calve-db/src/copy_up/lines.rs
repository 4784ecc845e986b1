//! The copies of an overlay as lines in a file of the server's place, which another process can follow.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::CopiedFile;
use crate::error::{Error, Result};
use crate::files::private;
use crate::operation::Operation;

const NAME: &str = "copied";

/// Creates an empty file for the lines. After a reset it is a new file, so that a process that follows it notices.
pub(crate) fn begin_lines(place: &Path) -> Result<File> {
    let path = place.join(NAME);
    let staged = path.with_extension("new");
    let file = private::create(&staged)?;
    fs::rename(&staged, &path).map_err(|error| Error::io(Operation::Rename, &staged, error))?;
    Ok(file)
}

/// Returns the lines that were written until now.
pub(crate) fn lines(place: &Path) -> Vec<CopiedFile> {
    Lines::of(place).more()
}

/// A reader of the file of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    place: PathBuf,
    file: Option<File>,
    begun: Vec<u8>,
}

impl Lines {
    pub(crate) fn of(place: &Path) -> Self {
        Self { place: place.to_path_buf(), file: None, begun: Vec::new() }
    }

    /// Returns the copies since the last call.
    pub(crate) fn more(&mut self) -> Vec<CopiedFile> {
        let mut found = self.read();
        let path = self.place.join(NAME);
        let is_another = match (&self.file, fs::metadata(&path)) {
            (Some(file), Ok(there)) => file.metadata().is_ok_and(|own| own.ino() != there.ino()),
            (None, Ok(_)) => true,
            _ => false,
        };
        if is_another {
            self.file = fs::File::open(&path).ok().map(|file| file.into_parts().0);
            self.begun.clear();
            found.extend(self.read());
        }
        found
    }

    fn read(&mut self) -> Vec<CopiedFile> {
        if let Some(file) = &mut self.file {
            let _ = file.read_to_end(&mut self.begun);
        }
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.begun.drain(..whole).collect();
        lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_half_written_is_waited_for_and_a_reset_begins_again() {
        let place = tempfile::tempdir().unwrap();
        let copied = |bytes| CopiedFile { path: "base/1".into(), bytes, after_ms: 1.0, took_ms: None, cause: None };
        let line = |bytes| serde_json::to_string(&copied(bytes)).unwrap() + "\n";
        let mut reader = Lines::of(place.path());
        assert_eq!(reader.more(), vec![]);
        let mut file = begin_lines(place.path()).unwrap();
        let text = line(1) + &line(2);
        file.write_all(&text.as_bytes()[..text.len() - 5]).unwrap();
        assert_eq!(reader.more(), vec![copied(1)]);
        file.write_all(&text.as_bytes()[text.len() - 5..]).unwrap();
        assert_eq!(reader.more(), vec![copied(2)]);
        begin_lines(place.path()).unwrap().write_all(line(3).as_bytes()).unwrap();
        assert_eq!(reader.more(), vec![copied(3)]);
        assert_eq!(lines(place.path()), vec![copied(3)]);
    }
}
