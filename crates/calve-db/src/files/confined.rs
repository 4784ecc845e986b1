//! Checks that no link leads out of a data directory, because a server would write there.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use calve_core::internal::ShownPath;
use rustix::fs::FileType;

use crate::error::{Error, Result, UnusableData};
use crate::files::directory::{Directory, DirectoryEntry};

type Visit<'a> = dyn FnMut(&Directory, &DirectoryEntry, &Path) -> Result<()> + 'a;

/// Visits everything below `root` in a fixed order, with its path from there. Follows no link.
pub(crate) fn walk(root: &Directory, visit: &mut Visit<'_>) -> Result<()> {
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let opened;
        let directory = if below.as_os_str().is_empty() {
            root
        } else {
            // It was removed meanwhile.
            let Some(found) = root.subdirectory(&below)? else { continue };
            opened = found;
            &opened
        };
        for entry in directory.entries()? {
            let path = below.join(&entry.name);
            visit(directory, &entry, &path)?;
            if entry.kind == FileType::Directory {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

/// Refuses symlinks that lead out of a data directory, and files ending in `pointers`, which the engine reads as paths.
pub(crate) fn check(data: &Directory, pointers: &[&str]) -> Result<()> {
    walk(data, &mut |directory, entry, below| {
        let refuse = |what: &str| {
            let reason = format!("{what}: `{}`, which leads to `{}`", ShownPath(below), target(directory, entry));
            Err(Error::not_usable(&data.path, UnusableData::LeadsOut(reason)))
        };
        match entry.kind {
            FileType::Symlink if leads_out(directory, entry, below)? => refuse("a symlink leads out of it"),
            FileType::RegularFile if pointers.iter().any(|end| entry.name.as_bytes().ends_with(end.as_bytes())) => {
                refuse("it has a table outside")
            }
            _ => Ok(()),
        }
    })
}

/// Returns whether a symlink leads out of its tree. `below`: its path there. An absolute link always counts as leading
/// out. A relative one may go up only at its beginning: after a name, which may be a link, the parents are unknown.
pub(crate) fn leads_out(directory: &Directory, entry: &DirectoryEntry, below: &Path) -> Result<bool> {
    let mut above = below.components().count().saturating_sub(1);
    let mut named = false;
    for part in directory.target(&entry.name)?.components() {
        match part {
            Component::Normal(_) => named = true,
            Component::CurDir => {}
            Component::ParentDir if above > 0 && !named => above -= 1,
            _ => return Ok(true),
        }
    }
    Ok(false)
}

fn target(directory: &Directory, entry: &DirectoryEntry) -> String {
    let text = match entry.kind {
        FileType::Symlink => directory.target(&entry.name).ok(),
        _ => directory.read_to_string(&entry.name, 4096).ok().flatten().map(|text| text.trim().into()),
    };
    ShownPath(&text.unwrap_or_default()).to_string()
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[test]
    fn links_must_stay_inside() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("a/b")).unwrap();
        let root = Directory::open(place.path()).unwrap();
        let at = place.path().join("a/link");
        for (to, stays) in [
            ("x", true),
            ("../c", true),
            ("./b/../b", false),
            ("b", true),
            ("..", true),
            ("../..", false),
            ("../../c", false),
            // `b` may be a link to the top.
            ("b/../..", false),
            ("/etc", false),
        ] {
            let _ = fs::remove_file(&at);
            std::os::unix::fs::symlink(to, &at).unwrap();
            assert_eq!(check(&root, &[]).is_ok(), stays, "{to}");
        }
    }
}
