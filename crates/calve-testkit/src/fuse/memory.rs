//! The inodes of the FUSE file system: a map, and the rules of a directory tree.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};

pub(super) type Result<T> = std::result::Result<T, Errno>;

pub(super) struct Node {
    pub(super) attr: FileAttr,
    /// The latest name; hard links give a node several.
    pub(super) name: OsString,
    /// A file's contents, or a symlink's target.
    pub(super) data: Vec<u8>,
    pub(super) entries: BTreeMap<OsString, Entry>,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    number: u64,
    /// Counts the entries made earlier, in any directory.
    pub(super) place: u64,
}

pub(super) struct Memory {
    nodes: HashMap<u64, Node>,
    last: u64,
    made: u64,
}

impl Memory {
    pub(super) fn new() -> Self {
        let root = node(1, OsStr::new("/"), attributes(FileType::Directory, (0, 0), 0o777, 0));
        Self { nodes: HashMap::from([(1, root)]), last: 1, made: 0 }
    }

    pub(super) fn node(&self, ino: INodeNo) -> Result<&Node> {
        self.nodes.get(&ino.0).ok_or(Errno::ENOENT)
    }

    pub(super) fn node_mut(&mut self, ino: INodeNo) -> Result<&mut Node> {
        self.nodes.get_mut(&ino.0).ok_or(Errno::ENOENT)
    }

    pub(super) fn lookup(&self, parent: INodeNo, name: &OsStr) -> Result<&Node> {
        let entry = self.node(parent)?.entries.get(name).ok_or(Errno::ENOENT)?;
        self.node(INodeNo(entry.number))
    }

    /// Lists a directory from a place on, in order of creation, so that a removal meanwhile hides no other entry.
    pub(super) fn list(&self, ino: INodeNo, from: u64) -> Result<Vec<(&OsStr, Entry, &FileAttr)>> {
        let entries = self.node(ino)?.entries.iter().filter(|(_, entry)| entry.place >= from);
        let listed =
            entries.map(|(name, entry)| Ok((name.as_os_str(), *entry, &self.node(INodeNo(entry.number))?.attr)));
        let mut listed = listed.collect::<Result<Vec<_>>>()?;
        listed.sort_by_key(|(_, entry, _)| entry.place);
        Ok(listed)
    }

    pub(super) fn read(&self, ino: INodeNo, offset: u64, length: u64) -> Result<&[u8]> {
        let data = &self.node(ino)?.data;
        let from = data.len().min(offset as usize);
        Ok(&data[from..data.len().min(from + length as usize)])
    }

    pub(super) fn write(&mut self, ino: INodeNo, offset: u64, bytes: &[u8]) -> Result<u32> {
        let node = self.node_mut(ino)?;
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if node.data.len() < end {
            resize(node, end)?;
        }
        node.data[start..end].copy_from_slice(bytes);
        touch(node);
        Ok(bytes.len() as u32)
    }

    pub(super) fn create(&mut self, parent: INodeNo, name: &OsStr, mut attr: FileAttr) -> Result<&mut Node> {
        if name.len() > 255 {
            return Err(Errno::ENAMETOOLONG);
        }
        let above = self.node(parent)?.attr;
        let is_directory = attr.kind == FileType::Directory;
        if above.perm & 0o2000 != 0 {
            attr.gid = above.gid;
            attr.perm |= if is_directory { 0o2000 } else { 0 };
        }
        self.insert(parent, name, self.last + 1)?;
        self.last += 1;
        self.node_mut(parent)?.attr.nlink += u32::from(is_directory);
        Ok(self.nodes.entry(self.last).or_insert(node(self.last, name, attr)))
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
        let ino = self.remove(parent, name)?;
        let node = self.node_mut(ino)?;
        // The node stays: it may be open, and its memory is freed when the test ends.
        node.attr.nlink -= 1;
        node.attr.ctime = SystemTime::now();
        Ok(())
    }

    pub(super) fn rmdir(&mut self, parent: INodeNo, name: &OsStr) -> Result<()> {
        if !self.lookup(parent, name)?.entries.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        let ino = self.remove(parent, name)?;
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
        node.attr.ctime = SystemTime::now();
        if node.attr.kind == FileType::Directory {
            self.node_mut(parent)?.attr.nlink -= 1;
            self.node_mut(to)?.attr.nlink += 1;
        }
        Ok(())
    }

    fn insert(&mut self, parent: INodeNo, name: &OsStr, number: u64) -> Result<()> {
        let entry = Entry { number, place: self.made };
        self.made += 1;
        let dir = self.node_mut(parent)?;
        if dir.entries.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        dir.entries.insert(name.to_owned(), entry);
        touch(dir);
        Ok(())
    }

    fn remove(&mut self, parent: INodeNo, name: &OsStr) -> Result<INodeNo> {
        let dir = self.node_mut(parent)?;
        let entry = dir.entries.remove(name).ok_or(Errno::ENOENT)?;
        touch(dir);
        Ok(INodeNo(entry.number))
    }
}

pub(super) fn touch(node: &mut Node) {
    let now = SystemTime::now();
    node.attr.mtime = now;
    node.attr.ctime = now;
}

/// Refuses a huge sparse file, because holes take memory here.
pub(super) fn resize(node: &mut Node, len: usize) -> Result<()> {
    const LARGEST_BYTES: usize = 256 << 20;
    if len > LARGEST_BYTES {
        return Err(Errno::EFBIG);
    }
    node.data.resize(len, 0);
    node.attr.size = len as u64;
    node.attr.blocks = node.attr.size.div_ceil(512);
    Ok(())
}

pub(super) fn attributes(kind: FileType, (uid, gid): (u32, u32), mode: u32, rdev: u32) -> FileAttr {
    let now = SystemTime::now();
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind,
        perm: (mode & 0o7777) as u16,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid,
        gid,
        rdev,
        blksize: 4096,
        flags: 0,
    }
}

fn node(number: u64, name: &OsStr, attr: FileAttr) -> Node {
    let attr = FileAttr { ino: INodeNo(number), ..attr };
    Node { attr, name: name.to_owned(), data: Vec::new(), entries: BTreeMap::new() }
}
