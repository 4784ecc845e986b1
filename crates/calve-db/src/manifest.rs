//! The list of a template's files: what is there must be what was made.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

use crate::account::Account;
use crate::error::{Error, Result};

const NAME: &str = "manifest";

/// A template's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Size {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Writes the list of what is in `place/data`. Refuses what leads out of it.
pub(crate) fn write(place: &Path) -> Result<Size> {
    let data = place.join("data");
    let mut size = Size::default();
    let mut problem = None;
    let mut list = Vec::new();
    walk(&data, &mut |path, found| {
        let below = path.strip_prefix(&data).unwrap_or(path);
        if found.is_symlink() && leads_out(below, path) {
            problem.get_or_insert_with(|| format!("a symlink leads out of it: `{}`", calve_core::Shown(below)));
        }
        if found.is_file() {
            size.files += 1;
            size.bytes += found.len();
        }
        list.extend(line(below, found));
        Ok(())
    })?;
    if let Some(reason) = problem {
        return Err(Error::not_usable(&data, reason));
    }
    let path = place.join(NAME);
    fs::write(&path, list).map_err(|error| Error::io("write", &path, error))?;
    Ok(size)
}

/// The first difference between a template's files and their list.
pub(crate) fn difference(place: &Path) -> Result<Option<String>> {
    let data = place.join("data");
    let Ok(list) = fs::read(place.join(NAME)) else { return Ok(Some("its list of files is missing".into())) };
    let mut expected = list.split_inclusive(|byte| *byte == 0).peekable();
    let mut difference = None;
    let walked = walk(&data, &mut |path, found| {
        let below = path.strip_prefix(&data).unwrap_or(path);
        if difference.is_none() && expected.next() != Some(&line(below, found)) {
            difference =
                Some(format!("`{}` is not what was made, or something before it is missing", calve_core::Shown(below)));
        }
        Ok(())
    });
    if let Err(error) = walked {
        return Ok(Some(error.to_string()));
    }
    if difference.is_none() && expected.peek().is_some() {
        difference = Some("files at its end are missing".into());
    }
    Ok(difference)
}

/// What a change of a file changes: kind and mode, size, time. Ends in a zero byte, as no path has one.
fn line(below: &Path, found: &std::fs::Metadata) -> Vec<u8> {
    // A directory's size and time depend on the file system.
    let (size, time) = if found.is_dir() { (0, (0, 0)) } else { (found.len(), (found.mtime(), found.mtime_nsec())) };
    let mut line = format!("{:o} {size} {}.{:09} ", found.mode(), time.0, time.1).into_bytes();
    line.extend_from_slice(below.as_os_str().as_bytes());
    line.push(0);
    line
}

/// Whether following a symlink ends outside of the tree that it is in. An absolute one is of one machine.
fn leads_out(below: &Path, path: &Path) -> bool {
    let Ok(target) = fs::read_link(path) else { return true };
    let mut depth = below.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

/// Gives everything in `root` to the server's user.
pub(crate) fn give_to(root: &Path, account: Account) -> Result<()> {
    let Some((user, group)) = account.to_become() else { return Ok(()) };
    walk(root, &mut |path, found| {
        if (found.uid(), found.gid()) != (user, group) {
            std::os::unix::fs::lchown(path, Some(user), Some(group))
                .map_err(|error| Error::io("change the owner of", path, error))?;
        }
        Ok(())
    })
}

/// The names in a directory, in order.
pub(crate) fn names(directory: &Path) -> Result<Vec<OsString>> {
    let failed = |error| Error::io("list", directory, error);
    let listed: std::result::Result<Vec<_>, _> = fs::read_dir(directory).map_err(failed)?.collect();
    let mut names: Vec<OsString> = listed.map_err(failed)?.into_iter().map(|entry| entry.file_name()).collect();
    names.sort();
    Ok(names)
}

type Visit<'a> = dyn FnMut(&Path, &std::fs::Metadata) -> Result<()> + 'a;

/// Everything below `root`, in an order that is always the same.
fn walk(root: &Path, visit: &mut Visit<'_>) -> Result<()> {
    let mut waiting: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for name in names(&directory)? {
            let path = directory.join(name);
            let found = fs::symlink_metadata(&path).map_err(|error| Error::io("look at", &path, error))?;
            visit(&path, &found)?;
            if found.is_dir() {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_file_shows() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str| place.path().join("data/base").join(name);
        fs::create_dir_all(place.path().join("data/base")).unwrap();
        fs::write(file("1"), "one").unwrap();
        fs::write(file("2"), "two").unwrap();
        assert_eq!(write(place.path()).unwrap(), Size { files: 2, bytes: 6 });
        assert_eq!(difference(place.path()).unwrap(), None);
        fs::write(file("2"), "tw").unwrap();
        assert!(difference(place.path()).unwrap().unwrap().contains("base/2"));
        fs::remove_file(file("2")).unwrap();
        assert!(difference(place.path()).unwrap().unwrap().contains("missing"));
    }

    #[test]
    fn links_must_stay_inside() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("data/a")).unwrap();
        let link = |to: &str| {
            let at = place.path().join("data/a/link");
            let _ = fs::remove_file(&at);
            std::os::unix::fs::symlink(to, at).unwrap();
        };
        for (to, good) in [("x", true), ("../b", true), ("../../b", false), ("/etc", false)] {
            link(to);
            assert_eq!(write(place.path()).is_ok(), good, "{to}");
        }
    }
}
