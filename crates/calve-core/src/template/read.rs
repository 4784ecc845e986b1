//! Reads everything in a tree for its manifest, on several threads.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::manifest::{ManifestEntry, escape};
use crate::error::Error;
use crate::progress::CancelToken;
use crate::sys::{self, XattrTarget};
use crate::tree::fill::contents::open_contents;
use crate::tree::location::identity;
use crate::tree::pool::thread_count;
use crate::tree::stable::Moment;
use crate::tree::walk::{Descent, Folder, Walker, walk, whole_tree};

#[derive(Default)]
pub(super) struct TreeListing {
    pub(super) entries: Vec<ManifestEntry>,
    /// The latest change of any entry.
    pub(super) latest: Option<Moment>,
    pub(super) unreadable: Vec<(PathBuf, Errno)>,
}

/// Returns the hash of a file's contents if it is known, to save reading them.
pub(super) type KnownContents<'a> = &'a (dyn Fn(&Stat) -> Option<blake3::Hash> + Sync);

pub(super) fn read(
    root: BorrowedFd<'_>,
    known: Option<KnownContents<'_>>,
    threads: Option<NonZeroUsize>,
    cancel: &CancelToken,
) -> Result<TreeListing, Error> {
    let reader = || Reader {
        found: TreeListing::default(),
        known,
        cancel,
        buffer: vec![0; BUFFER],
        names: Vec::new(),
        value: Vec::new(),
    };
    let mut all = TreeListing::default();
    for Reader { found, .. } in walk(&[root], vec![whole_tree(0)], thread_count(threads), cancel, reader)? {
        all.entries.extend(found.entries);
        all.latest = all.latest.max(found.latest);
        all.unreadable.extend(found.unreadable);
    }
    cancel.check()?;
    all.unreadable.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

const BUFFER: usize = 256 * 1024;

struct Reader<'a> {
    found: TreeListing,
    known: Option<KnownContents<'a>>,
    cancel: &'a CancelToken,
    buffer: Vec<u8>,
    names: Vec<u8>,
    value: Vec<u8>,
}

impl Walker for Reader<'_> {
    fn directory(&mut self, folder: &Folder<'_>) -> sys::Result<()> {
        let stat = rustix::fs::fstat(folder.directory)?;
        let mut keywords = common("dir", &stat);
        self.xattrs(XattrTarget::Open(folder.directory), &mut keywords)?;
        self.add(folder.path, &stat, keywords);
        Ok(())
    }

    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: FileType) -> Descent {
        if kind == FileType::Directory {
            return Descent::Yes;
        }
        let read = match kind {
            FileType::RegularFile => self.file(folder.directory, name),
            _ => self.special(folder.directory, name),
        };
        let path = folder.path.join(sys::path(name));
        match read {
            Ok((stat, keywords)) => self.add(&path, &stat, keywords),
            Err(errno) => self.found.unreadable.push((path, errno)),
        }
        Descent::No
    }

    fn failed(&mut self, _tree: usize, path: PathBuf, errno: Errno) {
        self.found.unreadable.push((path, errno));
    }
}

impl Reader<'_> {
    fn add(&mut self, path: &Path, stat: &Stat, keywords: String) {
        self.found.latest = self.found.latest.max(Some(Moment::of_change(stat)));
        let kind = sys::kind(stat);
        let may_be_linked = stat.st_nlink > 1 && kind != FileType::Directory;
        self.found.entries.push(ManifestEntry {
            path: path.as_os_str().as_bytes().to_vec(),
            keywords: keywords.into(),
            linked: may_be_linked.then(|| identity(stat)),
            size: if kind == FileType::RegularFile { stat.st_size.unsigned_abs() } else { 0 },
        });
    }

    fn file(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> sys::Result<(Stat, String)> {
        if let Some(known) = self.known {
            let stat = sys::stat_at(directory, name)?;
            if let Some(hash) = known(&stat) {
                return Ok((stat, self.keywords(&stat, hash, XattrTarget::Named(directory, name))?));
            }
        }
        let file = open_contents(directory, name, || self.cancel.is_cancelled())?;
        let stat = rustix::fs::fstat(&file)?;
        if sys::kind(stat) != FileType::RegularFile {
            return Err(Errno::STALE);
        }
        let hash = self.hash(file.as_fd())?;
        Ok((stat, self.keywords(&stat, hash, XattrTarget::Open(file.as_fd()))?))
    }

    fn keywords(&mut self, stat: &Stat, hash: blake3::Hash, target: XattrTarget<'_>) -> sys::Result<String> {
        let mut keywords = common("file", stat);
        let _ = write!(keywords, " size={} blake3digest={}", stat.st_size, hash.to_hex());
        self.xattrs(target, &mut keywords)?;
        Ok(keywords)
    }

    fn hash(&mut self, file: BorrowedFd<'_>) -> sys::Result<blake3::Hash> {
        let mut hasher = blake3::Hasher::new();
        loop {
            match sys::retry(|| rustix::io::read(file, &mut self.buffer[..]))? {
                0 => return Ok(hasher.finalize()),
                length => hasher.update(&self.buffer[..length]),
            };
            if self.cancel.is_cancelled() {
                return Err(Errno::CANCELED);
            }
        }
    }

    /// Reads a symlink, FIFO, device or socket without opening it.
    fn special(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> sys::Result<(Stat, String)> {
        let stat = sys::stat_at(directory, name)?;
        let device = |kind| {
            let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
            format!("{} device=native,{major},{minor}", common(kind, &stat))
        };
        let mut keywords = match sys::kind(stat) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())?;
                let mut keywords = common("link", &stat);
                keywords.push_str(" link=");
                escape(target.to_bytes(), &mut keywords);
                keywords
            }
            FileType::Fifo => common("fifo", &stat),
            FileType::CharacterDevice => device("char"),
            FileType::BlockDevice => device("block"),
            FileType::Socket => common("socket", &stat),
            _ => return Err(Errno::STALE),
        };
        self.xattrs(XattrTarget::Named(directory, name), &mut keywords)?;
        Ok((stat, keywords))
    }

    fn xattrs(&mut self, target: XattrTarget<'_>, keywords: &mut String) -> sys::Result<()> {
        let listed = sys::list_xattrs(target, &mut self.names)?;
        let mut names: Vec<&CStr> = sys::xattr_names(listed).collect();
        names.sort_unstable();
        for name in names {
            let length = target.read(name, &mut self.value)?;
            keywords.push_str(" xattr.");
            escape(name.to_bytes(), keywords);
            keywords.push('=');
            self.value[..length].iter().for_each(|byte| {
                let _ = write!(keywords, "{byte:02x}");
            });
        }
        Ok(())
    }
}

/// Returns the keywords of every entry. A symlink's mode means nothing.
fn common(kind: &str, stat: &Stat) -> String {
    let mut keywords = format!(" type={kind}");
    if kind != "link" {
        let _ = write!(keywords, " mode={:04o}", stat.st_mode & 0o7777);
    }
    let (seconds, nanoseconds) = (stat.st_mtime, stat.st_mtime_nsec);
    let _ = write!(keywords, " uid={} gid={} time={seconds}.{nanoseconds:09}", stat.st_uid, stat.st_gid);
    keywords
}
