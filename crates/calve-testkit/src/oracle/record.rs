use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::{Errno, Result};

use super::content::digest;
use crate::cursor::{Cursor, identity};
use crate::must::must;
use crate::sys::path_of;

pub(crate) type Xattrs = BTreeMap<OsString, Vec<u8>>;

/// XATTR_LIST_MAX and XATTR_SIZE_MAX of linux/limits.h.
const XATTR_MAX: usize = 64 * 1024;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RecordedEntry {
    /// Index of the containing directory; the root's is its own.
    pub(crate) parent: usize,
    pub(crate) name: OsString,
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: (i64, u32),
    pub(crate) ctime: (i64, u32),
    pub(crate) inode: (u64, u64),
    pub(crate) links: u64,
    pub(crate) device: (u32, u32),
    pub(crate) size_bytes: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) target: OsString,
    pub(crate) xattrs: std::result::Result<Xattrs, Errno>,
    /// The digest of a file's contents; for a directory, the error if it cannot be listed.
    pub(crate) content: std::result::Result<u64, Errno>,
}

/// The entries of a tree: the root first, each directory before its entries, names in byte order.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) root: PathBuf,
    pub(crate) entries: Vec<RecordedEntry>,
}

impl Record {
    /// Reads the tree `root`, recording unreadable entries as such.
    ///
    /// # Panics
    /// If `root` is not a directory.
    pub(crate) fn read(root: &Path) -> Self {
        let mut cursor = Cursor::open(root);
        let mut entries = vec![must(describe(cursor.fd(), OsStr::new("."), 0), "examine", root)];
        let mut levels = vec![(0, must(names(cursor.fd()), "list", root).into_iter())];
        while let Some((parent, waiting)) = levels.last_mut() {
            let parent = *parent;
            let Some(name) = waiting.next() else {
                levels.pop();
                if !levels.is_empty() {
                    must(cursor.leave(), "walk back up in", root);
                }
                continue;
            };
            let mut entry = must(describe(cursor.fd(), &name, parent), "examine", Path::new(&name));
            let index = entries.len();
            if entry.kind == FileType::Directory {
                match cursor.enter(&name) {
                    Ok(()) => levels.push((index, must(names(cursor.fd()), "list", Path::new(&name)).into_iter())),
                    Err(error) => entry.content = Err(error),
                }
            }
            entries.push(entry);
        }
        Self { root: root.to_path_buf(), entries }
    }

    pub(crate) fn names_to(&self, mut index: usize) -> Vec<&OsStr> {
        let mut names = Vec::new();
        while index != 0 {
            names.push(self.entries[index].name.as_os_str());
            index = self.entries[index].parent;
        }
        names.reverse();
        names
    }

    /// Formats an entry's path for messages, eliding the middle of a very long one.
    pub(crate) fn shown(&self, index: usize) -> String {
        let path: PathBuf =
            std::iter::once(OsStr::new(".")).chain(self.names_to(index)).skip(usize::from(index != 0)).collect();
        let text = path.as_os_str().as_bytes().escape_ascii().to_string();
        if text.len() <= 200 { text } else { format!("{} … {}", &text[..100], &text[text.len() - 90..]) }
    }

    /// Pairs the entries of equal paths, without those of kind `ignored` and those below an unpaired directory.
    pub(crate) fn pair_with(&self, other: &Self, ignored: Option<FileType>) -> Pairs {
        let counts = |entry: &RecordedEntry| Some(entry.kind) != ignored;
        let below_root = other.entries.iter().enumerate().skip(1);
        let places: HashMap<_, _> =
            below_root.map(|(index, entry)| ((entry.parent, entry.name.as_os_str()), index)).collect();
        let mut counterpart = HashMap::from([(0, 0)]);
        let mut seen = vec![false; other.entries.len()];
        seen[0] = true;
        let mut pairs = Pairs { both: vec![(0, 0)], first_only: Vec::new(), second_only: Vec::new() };
        for (index, entry) in self.entries.iter().enumerate().skip(1).filter(|(_, entry)| counts(entry)) {
            let Some(parent) = counterpart.get(&entry.parent) else {
                continue;
            };
            if let Some(&found) = places.get(&(*parent, entry.name.as_os_str())) {
                seen[found] = true;
                counterpart.insert(index, found);
                pairs.both.push((index, found));
            } else {
                pairs.first_only.push(index);
            }
        }
        let unseen = other
            .entries
            .iter()
            .enumerate()
            .filter(|(index, entry)| !seen[*index] && seen[entry.parent] && counts(entry));
        pairs.second_only.extend(unseen.map(|(index, _)| index));
        pairs
    }
}

pub(crate) struct Pairs {
    pub(crate) both: Vec<(usize, usize)>,
    pub(crate) first_only: Vec<usize>,
    pub(crate) second_only: Vec<usize>,
}

#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between systems")]
fn describe(dir: BorrowedFd<'_>, name: &OsStr, parent: usize) -> Result<RecordedEntry> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_file = kind == FileType::RegularFile;
    let is_link = kind == FileType::Symlink;
    let target = if is_link { rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes() } else { Vec::new() };
    let content = if is_file { digest(dir, name) } else { Ok(0) };
    let xattrs = xattrs(dir, name);
    let is_device = matches!(kind, FileType::BlockDevice | FileType::CharacterDevice);
    let device = if is_device { (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)) } else { (0, 0) };
    Ok(RecordedEntry {
        parent,
        name: name.to_owned(),
        kind,
        mode: stat.st_mode as u32 & 0o7777,
        owner: (stat.st_uid, stat.st_gid),
        mtime: (stat.st_mtime, stat.st_mtime_nsec as u32),
        ctime: (stat.st_ctime, stat.st_ctime_nsec as u32),
        inode: identity(&stat),
        links: stat.st_nlink as u64,
        device,
        // Sizes and blocks of directories differ between file systems.
        size_bytes: if is_file { stat.st_size as u64 } else { 0 },
        allocated_bytes: if is_file { stat.st_blocks as u64 * 512 } else { 0 },
        target: OsString::from_vec(target),
        xattrs,
        content,
    })
}

fn names(dir: BorrowedFd<'_>) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn xattrs(dir: BorrowedFd<'_>, name: &OsStr) -> std::result::Result<Xattrs, Errno> {
    let mut list = [0_u8; XATTR_MAX];
    let listed = path_of(dir, name).and_then(|path| Ok((rustix::fs::llistxattr(&path, &mut list[..])?, path)));
    let (len, path) = match listed {
        // A path is too long on macOS only, which has no such call relative to a directory.
        Ok((0, _)) | Err(Errno::OPNOTSUPP | Errno::NAMETOOLONG) => return Ok(Xattrs::new()),
        other => other?,
    };
    let mut value = [0_u8; XATTR_MAX];
    let mut found = Xattrs::new();
    // XFS shows root each ACL a second time, in its own format. SELinux labels follow a policy based on paths.
    let is_derived = |name: &[u8]| name.starts_with(b"trusted.SGI_ACL_") || name == b"security.selinux";
    for name in list[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty() && !is_derived(name)) {
        let name = OsStr::from_bytes(name);
        let len = rustix::fs::lgetxattr(&path, name, &mut value[..])?;
        found.insert(name.to_owned(), value[..len].to_vec());
    }
    Ok(found)
}
