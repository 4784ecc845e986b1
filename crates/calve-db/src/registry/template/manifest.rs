//! The list of a template's files, which must not change.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FileType, Stat};

use crate::error::{AtPath as _, Result};
use crate::files::confined;
use crate::files::directory::Directory;
use crate::files::private;
use crate::registry::slots::DATA;

const NAME: &str = "manifest";

/// Writes the list of the files in `slot/data`. Returns their number and bytes. Refuses links that lead out.
pub(crate) fn write(slot: &Path) -> Result<(u64, u64)> {
    let data = Directory::open(&slot.join(DATA))?;
    confined::check(&data, &[])?;
    let (mut files, mut bytes) = (0, 0);
    let mut list = Vec::new();
    confined::walk(&data, &mut |directory, entry, below| {
        let Some(found) = directory.stat(&entry.name)? else { return Ok(()) };
        if entry.kind == FileType::RegularFile {
            files += 1;
            bytes += found.st_size.unsigned_abs();
        }
        list.extend(line(below, &found));
        Ok(())
    })?;
    let path = slot.join(NAME);
    private::replace(&path, &list)?;
    Ok((files, bytes))
}

/// Describes the first difference between a template's files and their list. `None` if they are equal.
pub(crate) fn difference(slot: &Path) -> Result<Option<String>> {
    let Ok(list) = fs::read(slot.join(NAME)) else { return Ok(Some("its list of files is missing".into())) };
    let mut expected = list.split_inclusive(|byte| *byte == 0).peekable();
    let mut difference = None;
    let walked = Directory::open(&slot.join(DATA)).and_then(|data| {
        confined::walk(&data, &mut |directory, entry, below| {
            let found = directory.stat(&entry.name)?.map(|found| line(below, &found));
            if difference.is_none() && expected.next() != found.as_deref() {
                let path = calve_core::internal::ShownPath(below);
                difference = Some(format!("`{path}` is not what was made, or something before it is missing"));
            }
            Ok(())
        })
    });
    if let Err(error) = walked {
        return Ok(Some(error.to_string()));
    }
    if difference.is_none() && expected.peek().is_some() {
        difference = Some("files at its end are missing".into());
    }
    Ok(difference)
}

/// Returns the fields that a change affects: kind and mode, size, time. Ends in a zero byte, which no path has.
#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
fn line(below: &Path, found: &Stat) -> Vec<u8> {
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    // A directory's size and time depend on the file system.
    let (size, time) =
        if is_directory { (0, (0, 0)) } else { (found.st_size, (found.st_mtime as i64, found.st_mtime_nsec as i64)) };
    let mut line = format!("{:o} {size} {}.{:09} ", found.st_mode as u32, time.0, time.1).into_bytes();
    line.extend_from_slice(below.as_os_str().as_bytes());
    line.push(0);
    line
}

pub(crate) fn names(directory: &Path) -> Result<Vec<OsString>> {
    let listed = fs::read_dir(directory).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    let mut names: Vec<OsString> = listed.at("list", directory)?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_file_shows() {
        let slot = tempfile::tempdir().unwrap();
        let file = |name: &str| slot.path().join("data/base").join(name);
        fs::create_dir_all(slot.path().join("data/base")).unwrap();
        fs::write(file("1"), "one").unwrap();
        fs::write(file("2"), "two").unwrap();
        assert_eq!(write(slot.path()).unwrap(), (2, 6));
        assert_eq!(difference(slot.path()).unwrap(), None);
        fs::write(file("2"), "tw").unwrap();
        assert!(difference(slot.path()).unwrap().unwrap().contains("base/2"));
        fs::remove_file(file("2")).unwrap();
        assert!(difference(slot.path()).unwrap().unwrap().contains("missing"));
    }
}
