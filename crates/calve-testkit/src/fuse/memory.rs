//! The inodes of the FUSE file system: a map, and the rules of a directory tree.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};

pub(super) type Result<T> = std::result::Result<T, Errno>;

pub(super) struct Node {
    pub(super) attr: FileAttr,
    /// The name it was last given; hard links make it one of several.
    pub(super) name: OsString,
    /// Of files the contents, of symlinks the target.
    pub(super) data: Vec<u8>,
    pub(super) entries: BTreeMap<OsString, u64>,
    pub(super) parent: u64,
}

/// Names, inode numbers and kinds.
pub(super) type Listing = Vec<(OsString, u64, FileType)>;

pub(super) struct Memory {
    nodes: HashMap<u64, Node>,
    last: u64,
}

/// Who makes something, and with which mode.
pub(super) struct Maker {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
    pub(super) rdev: u32,
}

impl Memory {
    pub(super) fn new() -> Self {
        let maker = Maker { uid: 0, gid: 0, mode: 0o777, rdev: 0 };
        let root = node(1, 1, OsStr::new("/"), FileType::Directory, &maker);
        Self { nodes: HashMap::from([(1, root)]), last: 1 }
    }

    pub(super) fn node(&self, ino: INodeNo) -> Result<&Node> {
        self.nodes.get(&ino.0).ok_or(Errno::ENOENT)
    }

    pub(super) fn node_mut(&mut self, ino: INodeNo) -> Result<&mut Node> {
        self.nodes.get_mut(&ino.0).ok_or(Errno::ENOENT)
    }

    pub(super) fn lookup(&self, parent: INodeNo, name: &OsStr) -> Result<&Node> {
        let number = self.node(parent)?.entries.get(name).ok_or(Errno::ENOENT)?;
        self.node(INodeNo(*number))
    }

    pub(super) fn list(&self, ino: INodeNo) -> Result<Listing> {
        let dir = self.node(ino)?;
        let mut listing = vec![
            (OsString::from("."), ino.0, FileType::Directory),
            (OsString::from(".."), dir.parent, FileType::Directory),
        ];
        for (name, number) in &dir.entries {
            listing.push((name.clone(), *number, self.node(INodeNo(*number))?.attr.kind));
        }
        Ok(listing)
    }

    /// Copies bytes from a place in one file to a place in another.
    pub(super) fn copy(&mut self, src: (INodeNo, u64), dst: (INodeNo, u64), length: u64) -> Result<usize> {
        let data = &self.node(src.0)?.data;
        let from = data.len().min(src.1 as usize);
        let bytes = data[from..data.len().min(from + length as usize)].to_vec();
        let node = self.node_mut(dst.0)?;
        let (start, end) = (dst.1 as usize, dst.1 as usize + bytes.len());
        if node.data.len() < end {
            resize(node, end);
        }
        node.data[start..end].copy_from_slice(&bytes);
        touch(node);
        Ok(bytes.len())
    }

    pub(super) fn create(&mut self, parent: INodeNo, name: &OsStr, kind: FileType, maker: Maker) -> Result<&mut Node> {
        if name.len() > 255 {
            return Err(Errno::ENAMETOOLONG);
        }
        let above = self.node(parent)?.attr;
        let inherits = above.perm & 0o2000 != 0;
        let mut made = node(self.last + 1, parent.0, name, kind, &maker);
        if inherits {
            made.attr.gid = above.gid;
            made.attr.perm |= if kind == FileType::Directory { 0o2000 } else { 0 };
        }
        self.insert(parent, name, self.last + 1)?;
        self.last += 1;
        if kind == FileType::Directory {
            self.node_mut(parent)?.attr.nlink += 1;
        }
        Ok(self.nodes.entry(self.last).or_insert(made))
    }

    pub(super) fn link(&mut self, ino: INodeNo, parent: INodeNo, name: &OsStr) -> Result<FileAttr> {
        self.insert(parent, name, ino.0)?;
        let node = self.node_mut(ino)?;
        node.attr.nlink += 1;
        node.attr.ctime = SystemTime::now();
        node.name = name.to_owned();
        Ok(node.attr)
    }

    pub(super) fn unlink(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let ino = self.lookup(parent, name)?.attr.ino;
        self.remove(parent, name)?;
        let node = self.node_mut(ino)?;
        // The node stays: it may be open, and a test's memory ends with the test.
        node.attr.nlink -= 1;
        node.attr.ctime = SystemTime::now();
        Ok(())
    }

    pub(super) fn rmdir(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let node = self.lookup(parent, name)?;
        if !node.entries.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        let ino = node.attr.ino;
        self.remove(parent, name)?;
        self.node_mut(parent)?.attr.nlink -= 1;
        self.node_mut(ino)?.attr.nlink = 0;
        Ok(())
    }

    pub(super) fn rename(&mut self, parent: INodeNo, name: &OsStr, to: INodeNo, new_name: &OsStr) -> Result<()> {
        let ino = self.lookup(parent, name)?.attr.ino;
        if let Ok(replaced) = self.lookup(to, new_name) {
            if replaced.attr.ino == ino {
                return Ok(());
            }
            match replaced.attr.kind {
                FileType::Directory => self.rmdir(to, new_name)?,
                _ => self.unlink(to, new_name)?,
            }
        }
        self.remove(parent, name)?;
        self.insert(to, new_name, ino.0)?;
        let node = self.node_mut(ino)?;
        node.name = new_name.to_owned();
        node.parent = to.0;
        node.attr.ctime = SystemTime::now();
        if node.attr.kind == FileType::Directory {
            self.node_mut(parent)?.attr.nlink -= 1;
            self.node_mut(to)?.attr.nlink += 1;
        }
        Ok(())
    }

    fn insert(&mut self, parent: INodeNo, name: &OsStr, number: u64) -> Result<()> {
        let dir = self.node_mut(parent)?;
        if dir.entries.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        dir.entries.insert(name.to_owned(), number);
        touch(dir);
        Ok(())
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        let dir = self.node_mut(parent)?;
        dir.entries.remove(name).ok_or(Errno::ENOENT)?;
        touch(dir);
        Ok(())
    }
}

pub(super) fn touch(node: &mut Node) {
    let now = SystemTime::now();
    node.attr.mtime = now;
    node.attr.ctime = now;
}

pub(super) fn resize(node: &mut Node, len: usize) {
    node.data.resize(len, 0);
    node.attr.size = len as u64;
    node.attr.blocks = node.attr.size.div_ceil(512);
}

fn node(number: u64, parent: u64, name: &OsStr, kind: FileType, maker: &Maker) -> Node {
    let now = SystemTime::now();
    let attr = FileAttr {
        ino: INodeNo(number),
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind,
        perm: (maker.mode & 0o7777) as u16,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid: maker.uid,
        gid: maker.gid,
        rdev: maker.rdev,
        blksize: 4096,
        flags: 0,
    };
    Node { attr, name: name.to_owned(), data: Vec::new(), entries: BTreeMap::new(), parent }
}
