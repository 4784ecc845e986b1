use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, OFlags};
use rustix::io::Result;

use super::record::{Record, Xattrs};
use crate::cursor::{Cursor, open_unnoticed};

/// Aspects that a comparison can leave out. Names, kinds and symlink targets are always compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Aspect {
    Contents,
    Modes,
    Owners,
    /// Modification times in nanoseconds, also of directories and symlinks.
    Times,
    /// Extended attributes, including ACLs and capabilities.
    Xattrs,
    /// Sparse files stay about as sparse in the second tree.
    Holes,
    HardLinks,
    Devices,
    /// Presence of sockets; when left out, either tree may lack them.
    Sockets,
}

/// Panics with up to twenty differences unless the trees are equal in every aspect.
#[track_caller]
pub fn assert_same(a: impl AsRef<Path>, b: impl AsRef<Path>) {
    assert_same_except(a, b, &[]);
}

#[track_caller]
pub fn assert_same_except(a: impl AsRef<Path>, b: impl AsRef<Path>, left_out: &[Aspect]) {
    let (a, b) = (a.as_ref(), b.as_ref());
    let found = differences(a, b, left_out);
    let shown = found.iter().take(20).map(|line| format!("\n  {line}")).collect::<String>();
    let more = if found.len() > 20 { format!("\n  … and {} more", found.len() - 20) } else { String::new() };
    assert!(found.is_empty(), "`{}` and `{}` differ:{shown}{more}", a.display(), b.display());
}

/// Returns the differences of tree `b` from `a`, one per line, in all but the given aspects; empty if there are none.
///
/// # Panics
/// If either is not a directory, or changes during the walk.
pub fn differences(a: &Path, b: &Path, left_out: &[Aspect]) -> Vec<String> {
    let (a, b) = (Record::read(a), Record::read(b));
    let ignored = left_out.contains(&Aspect::Sockets).then_some(FileType::Socket);
    let pairs = a.pair_with(&b, ignored);
    let missing = pairs.first_only.iter().map(|index| format!("`{}`: missing", a.shown(*index)));
    let added = pairs.second_only.iter().map(|index| format!("`{}`: should not be there", b.shown(*index)));
    let mut comparison = Comparison { a: &a, b: &b, left_out, found: missing.chain(added).collect() };
    for (of_a, of_b) in &pairs.both {
        comparison.entries(*of_a, *of_b);
    }
    if comparison.wants(Aspect::HardLinks) {
        comparison.hard_links(&pairs.both);
    }
    comparison.found
}

struct Comparison<'a> {
    a: &'a Record,
    b: &'a Record,
    left_out: &'a [Aspect],
    found: Vec<String>,
}

impl Comparison<'_> {
    fn wants(&self, aspect: Aspect) -> bool {
        !self.left_out.contains(&aspect)
    }

    fn entries(&mut self, of_a: usize, of_b: usize) {
        let (a, b) = (&self.a.entries[of_a], &self.b.entries[of_b]);
        if a.kind != b.kind {
            return self.report(of_a, format!("is a {:?} and became a {:?}", a.kind, b.kind));
        }
        if self.wants(Aspect::Contents) {
            self.contents(of_a, of_b);
        }
        // Linux gives all symlinks the same mode.
        if self.wants(Aspect::Modes) && a.mode != b.mode && a.kind != FileType::Symlink {
            self.report(of_a, format!("mode {:04o} became {:04o}", a.mode, b.mode));
        }
        if self.wants(Aspect::Owners) && a.owner != b.owner {
            self.report(of_a, format!("owner {}:{} became {}:{}", a.owner.0, a.owner.1, b.owner.0, b.owner.1));
        }
        if self.wants(Aspect::Times) && a.mtime != b.mtime {
            self.report(of_a, format!("mtime {}.{:09} became {}.{:09}", a.mtime.0, a.mtime.1, b.mtime.0, b.mtime.1));
        }
        if self.wants(Aspect::Devices) && a.device != b.device {
            self.report(of_a, format!("device {:?} became {:?}", a.device, b.device));
        }
        if a.target != b.target {
            self.report(of_a, format!("target {:?} became {:?}", a.target, b.target));
        }
        if self.wants(Aspect::Holes) {
            self.holes(of_a, of_b);
        }
        if self.wants(Aspect::Xattrs) {
            self.xattrs(of_a, of_b);
        }
    }

    fn contents(&mut self, of_a: usize, of_b: usize) {
        let (a, b) = (&self.a.entries[of_a], &self.b.entries[of_b]);
        let what = match (&a.content, &b.content) {
            (Err(error), _) => format!("cannot be read in the first tree: {error}"),
            (_, Err(error)) => format!("cannot be read in the second tree: {error}"),
            _ if a.size_bytes != b.size_bytes => format!("size {} became {}", a.size_bytes, b.size_bytes),
            (Ok(left), Ok(right)) if left == right => return,
            _ => match first_difference(self.a, of_a, self.b, of_b) {
                Ok(Some(at)) => format!("contents differ, first at byte {at}"),
                Ok(None) => "contents differ, but not when read again".to_owned(),
                Err(error) => format!("contents differ, {error}"),
            },
        };
        self.report(of_a, what);
    }

    /// Compares the space taken, because maps of holes differ between file systems.
    fn holes(&mut self, of_a: usize, of_b: usize) {
        const SLACK: u64 = 64 * 1024;
        let (a, b) = (&self.a.entries[of_a], &self.b.entries[of_b]);
        let is_sparse = a.allocated_bytes + SLACK < a.size_bytes;
        let most = a.allocated_bytes + a.allocated_bytes / 10 + SLACK;
        if !is_sparse || b.allocated_bytes <= most {
            return;
        }
        // A file system may reserve more than it needs until the data is on disk.
        let settled = settled_bytes(self.b, of_b).unwrap_or(b.allocated_bytes);
        if settled > most {
            self.report(of_a, format!("{} bytes allocated became {settled}", a.allocated_bytes));
        }
    }

    fn xattrs(&mut self, of_a: usize, of_b: usize) {
        match (&self.a.entries[of_a].xattrs, &self.b.entries[of_b].xattrs) {
            (Ok(left), Ok(right)) => {
                let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
                for name in names.filter(|name| left.get(*name) != right.get(*name)) {
                    let (left, right) = (shown(left, name), shown(right, name));
                    self.report(of_a, format!("xattr {name:?} {left} became {right}"));
                }
            }
            (left, right) => {
                let error = left.as_ref().err().or(right.as_ref().err());
                self.report(of_a, format!("xattrs cannot be read: {error:?}"));
            }
        }
    }

    /// Compares hard links: the first name of each file must be the same in both trees.
    fn hard_links(&mut self, pairs: &[(usize, usize)]) {
        let (mut first_in_a, mut first_in_b) = (HashMap::new(), HashMap::new());
        for (of_a, of_b) in pairs {
            let (a, b) = (&self.a.entries[*of_a], &self.b.entries[*of_b]);
            if a.kind == FileType::Directory || a.kind != b.kind {
                continue;
            }
            let in_a = *first_in_a.entry(a.inode).or_insert(*of_a);
            let in_b = *first_in_b.entry(b.inode).or_insert(*of_a);
            if in_a != in_b {
                let (in_a, in_b) = (self.partner(*of_a, in_a), self.partner(*of_a, in_b));
                self.report(*of_a, format!("{in_a}, became {in_b}"));
            }
        }
    }

    fn partner(&self, of_a: usize, first: usize) -> String {
        if of_a == first {
            "not a link to an earlier name".to_owned()
        } else {
            format!("a hard link to `{}`", self.a.shown(first))
        }
    }

    fn report(&mut self, of_a: usize, what: String) {
        self.found.push(format!("`{}`: {what}", self.a.shown(of_a)));
    }
}

fn shown(xattrs: &Xattrs, name: &OsString) -> String {
    match xattrs.get(name) {
        None => "(none)".to_owned(),
        Some(value) if value.len() <= 64 => format!("\"{}\"", value.escape_ascii()),
        Some(value) => format!("\"{}…\" ({} bytes)", value[..64].escape_ascii(), value.len()),
    }
}

fn first_difference(a: &Record, of_a: usize, b: &Record, of_b: usize) -> std::io::Result<Option<usize>> {
    let [a, b] = [open(a, of_a)?, open(b, of_b)?].map(|file| BufReader::new(File::from(file)).bytes());
    for (at, (left, right)) in a.zip(b).enumerate() {
        if left? != right? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

fn settled_bytes(record: &Record, index: usize) -> Result<u64> {
    rustix::fs::fsync(open(record, index)?)?;
    Ok(rustix::fs::fstat(open(record, index)?)?.st_blocks as u64 * 512)
}

fn open(record: &Record, index: usize) -> Result<OwnedFd> {
    let mut names = record.names_to(index);
    let file: &OsStr = names.pop().unwrap_or(OsStr::new("."));
    let mut cursor = Cursor::open(&record.root);
    for name in names {
        cursor.enter(name)?;
    }
    open_unnoticed(cursor.fd(), file, OFlags::RDONLY)
}
