//! Counts a tree, reads it once, detects its changes, and compares it with a copy.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use calve_core::internal::{ShownPath, if_there, open_source};
use calve_core::{CancelToken, Error};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;

use crate::error::BenchError;
use crate::remedy::Remedy;
use crate::scratch::Room;
use calve_receipt::human::{counted, size};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Census {
    pub(crate) files: u64,
    /// Includes the root.
    pub(crate) directories: u64,
    pub(crate) symlinks: u64,
    pub(crate) others: u64,
    /// Sum of the files' sizes.
    pub(crate) bytes: u64,
    /// The same in whole blocks.
    block_bytes: u64,
    /// Hash of all paths, modes, sizes and modification times.
    fingerprint: u64,
}

impl Census {
    pub(crate) fn entries(&self) -> u64 {
        self.files + self.directories + self.symlinks + self.others
    }

    /// Returns the largest need of a copy: contents without holes, and 2 KiB for each entry's inode and name.
    pub(crate) fn room(&self) -> Room {
        let bytes = self.block_bytes + self.entries() * 2048;
        // Block groups and logs: a file system is never filled to its last byte.
        Room { bytes: bytes + bytes / 20 + (16 << 20), inodes: self.entries() }
    }

    pub(crate) fn in_words(&self) -> String {
        let (files, directories) = (counted(self.files, "file"), counted(self.directories, "directory"));
        format!("{files}, {directories}, {}, {}", counted(self.symlinks, "symlink"), size(self.bytes))
    }
}

pub(crate) fn take(root: &Path, cancel: &CancelToken) -> Result<Census, BenchError> {
    let mut census = Census::default();
    walk(root, cancel, &mut |path, metadata| {
        let kind = metadata.file_type();
        let (number, size) = if kind.is_file() {
            census.bytes += metadata.len();
            census.block_bytes += metadata.len().next_multiple_of(4096);
            (&mut census.files, metadata.len())
        } else if kind.is_dir() {
            (&mut census.directories, 0)
        } else if kind.is_symlink() {
            (&mut census.symlinks, metadata.len())
        } else {
            (&mut census.others, 0)
        };
        *number += 1;
        let mut hasher = DefaultHasher::new();
        let relative = path.strip_prefix(root).unwrap_or(path);
        (relative.as_os_str(), metadata.mode(), size, metadata.mtime(), metadata.mtime_nsec()).hash(&mut hasher);
        // A sum, since directories are not listed in the same order every time.
        census.fingerprint = census.fingerprint.wrapping_add(hasher.finish());
        Ok(())
    })?;
    Ok(census)
}

/// Reads all files, which brings their contents into memory.
pub(crate) fn read_all(root: &Path, cancel: &CancelToken) -> Result<(), BenchError> {
    let mut buffer = vec![0; 256 * 1024];
    walk(root, cancel, &mut |path, metadata| if metadata.is_file() { read(path, &mut buffer) } else { Ok(()) })
}

/// Counts how the entries of a copy differ from those of its source, except for contents.
pub(crate) fn not_kept(
    source: &Path,
    copy: &Path,
    cancel: &CancelToken,
) -> Result<BTreeMap<&'static str, u64>, BenchError> {
    let mut lost = BTreeMap::new();
    walk(source, cancel, &mut |path, entry| {
        let twin_path = copy.join(path.strip_prefix(source).unwrap_or(path));
        let Ok(twin) = fs_err::symlink_metadata(&twin_path) else {
            *lost.entry("missing").or_default() += 1;
            return Ok(());
        };
        let differs = [
            ("type", entry.file_type() != twin.file_type()),
            ("size", !entry.is_dir() && entry.len() != twin.len()),
            ("mode", entry.mode() & 0o7777 != twin.mode() & 0o7777),
            ("time", (entry.mtime(), entry.mtime_nsec()) != (twin.mtime(), twin.mtime_nsec())),
            ("owner", (entry.uid(), entry.gid()) != (twin.uid(), twin.gid())),
        ];
        for (what, _) in differs.iter().filter(|(_, differs)| *differs) {
            *lost.entry(*what).or_default() += 1;
        }
        Ok(())
    })?;
    Ok(lost)
}

/// Visits every entry, the root first, and skips those that vanish meanwhile.
fn walk(
    root: &Path,
    cancel: &CancelToken,
    visit: &mut dyn FnMut(&Path, &Metadata) -> io::Result<()>,
) -> Result<(), BenchError> {
    let mut visit_all = || -> io::Result<()> {
        visit(root, &fs_err::symlink_metadata(root)?)?;
        let mut waiting = vec![root.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            if cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            for entry in if_there(fs_err::read_dir(&directory))?.into_iter().flatten() {
                let entry = entry?;
                let Some(metadata) = if_there(entry.metadata())? else { continue };
                let path = entry.path();
                if_there(visit(&path, &metadata))?;
                if metadata.is_dir() {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    };
    visit_all().map_err(|error| match cancel.is_cancelled() {
        true => Error::Interrupted.into(),
        false => BenchError::failed(error.to_string(), Remedy::MakeTreeReadable),
    })
}

fn read(path: &Path, buffer: &mut [u8]) -> io::Result<()> {
    let failed = |errno: Errno| {
        let reason = io::Error::from(errno);
        io::Error::new(reason.kind(), format!("read `{}`: {reason}", ShownPath(path)))
    };
    let file = open_source(CWD, path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK).map_err(failed)?;
    while rustix::io::read(&file, &mut *buffer).map_err(failed)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs_err::create_dir_all(root.join("sub")).unwrap();
        fs_err::write(root.join("a"), vec![1; 5000]).unwrap();
        fs_err::write(root.join("sub/b"), "1").unwrap();
        symlink("a", root.join("link")).unwrap();
        (folder, root)
    }

    fn census(root: &Path) -> Census {
        take(root, &CancelToken::default()).unwrap()
    }

    #[test]
    fn everything_is_counted_once() {
        let (_folder, root) = tree();
        let census = census(&root);
        let counts = (census.files, census.directories, census.symlinks, census.others, census.bytes);
        assert_eq!(counts, (2, 2, 1, 0, 5001));
        // Two blocks and one, five entries, a twentieth, and 16 MiB.
        let expected = 3 * 4096 + 5 * 2048;
        assert_eq!(census.room(), Room { bytes: expected + expected / 20 + (16 << 20), inodes: 5 });
    }

    #[test]
    fn a_change_of_any_kind_changes_the_fingerprint() {
        let (_folder, root) = tree();
        let before = census(&root);
        assert_eq!(before, census(&root));
        let time = std::fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        fs_err::OpenOptions::new().write(true).open(root.join("sub/b")).unwrap().file().set_times(time).unwrap();
        let older = census(&root);
        assert_ne!(before, older);
        std::fs::set_permissions(root.join("sub/b"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let closed = census(&root);
        assert_ne!(older, closed);
        // A further name of a file changes nothing that belongs to the tree.
        fs_err::hard_link(root.join("a"), root.parent().unwrap().join("outside")).unwrap();
        assert_eq!(closed, census(&root));
    }

    #[test]
    fn what_a_copy_lacks_is_counted() {
        let (folder, root) = tree();
        let copy = folder.path().join("copy");
        fs_err::create_dir(&copy).unwrap();
        fs_err::write(copy.join("a"), vec![1; 4999]).unwrap();
        fs_err::write(copy.join("link"), "not a link").unwrap();
        let old = std::fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        for path in [root.join("a"), root.clone()] {
            std::fs::OpenOptions::new().read(true).open(path).unwrap().set_times(old).unwrap();
        }
        let lost = not_kept(&root, &copy, &CancelToken::default()).unwrap();
        assert_eq!((lost["missing"], lost["type"]), (2, 1));
        // The root and the file; the link may have been made at the same tick of the clock.
        assert!((2..=3).contains(&lost["time"]), "{lost:?}");
        assert_eq!(lost["size"], 2);
        assert!(!lost.contains_key("owner"));
        assert!(not_kept(&root, &root, &CancelToken::default()).unwrap().is_empty());
    }
}
