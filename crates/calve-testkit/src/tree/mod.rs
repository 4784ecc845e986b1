//! Trees to clone: a builder whose use reads as a story, and ready-made ones.

mod everything;
mod random;
mod shapes;

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};

pub use self::everything::everything;
pub use self::random::{for_each_seed, random};
pub use self::shapes::{Shape, deep, node_modules_like, remove_deep, wide};
use crate::must::{must, run};
use crate::sys;

/// Builds a tree step by step. Each step is done at once, and makes the directories above its path; so times and
/// restrictive modes of directories come last, because creating an entry in a directory changes its mtime.
///
/// ```no_run
/// # let dir = std::path::Path::new("/tmp/x");
/// calve_testkit::Tree::new(dir)
///     .file("bin/run", b"#!/bin/sh\n")
///     .mode("bin/run", 0o4755)
///     .symlink("latest", "bin/run")
///     .mtime("bin", 1_000_000_000, 5);
/// ```
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        must(fs::create_dir_all(&root), "create", &root);
        Self { root }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file with these bytes; replaces the contents of one that is there.
    pub fn file(self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Self {
        let at = self.place(path);
        must(fs::write(&at, bytes), "write", &at);
        self
    }

    pub fn dir(self, path: impl AsRef<Path>) -> Self {
        let at = self.place(path);
        must(fs::create_dir_all(&at), "create", &at);
        self
    }

    pub fn symlink(self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> Self {
        let at = self.place(path);
        must(symlink(target.as_ref(), &at), "link", &at);
        self
    }

    pub fn hard_link(self, path: impl AsRef<Path>, existing: impl AsRef<Path>) -> Self {
        let at = self.place(path);
        // Not `std::fs::hard_link`: whether it follows a symlink depends on the platform.
        let linked = rustix::fs::linkat(CWD, self.root.join(existing), CWD, &at, AtFlags::empty());
        must(linked, "link", &at);
        self
    }

    /// Makes a named pipe. Opening it to read without O_NONBLOCK hangs.
    pub fn fifo(self, path: impl AsRef<Path>) -> Self {
        self.device(path, FileType::Fifo, 0, 0)
    }

    /// Makes a device node: needs root.
    pub fn device(self, path: impl AsRef<Path>, kind: FileType, major: u32, minor: u32) -> Self {
        let at = self.place(path);
        must(sys::make_node(&at, kind, (major, minor)), "make the node", &at);
        self
    }

    /// Makes a socket without a listener. The path must be shorter than 108 bytes.
    pub fn socket(self, path: impl AsRef<Path>) -> Self {
        let at = self.place(path);
        must(UnixListener::bind(&at), "bind a socket to", &at);
        self
    }

    /// Makes a file of `size_bytes` that is a hole but for the given pieces of data.
    pub fn sparse(self, path: impl AsRef<Path>, size_bytes: u64, data: &[(u64, &[u8])]) -> Self {
        let at = self.place(path);
        let file = must(fs::File::create(&at), "create", &at);
        must(file.set_len(size_bytes), "set the size of", &at);
        for (offset, bytes) in data {
            must(std::os::unix::fs::FileExt::write_all_at(file.file(), bytes, *offset), "write", &at);
        }
        self
    }

    pub fn mode(self, path: impl AsRef<Path>, mode: u32) -> Self {
        let at = self.place(path);
        must(fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)), "chmod", &at);
        self
    }

    /// Sets user and group, of a symlink itself: needs root. Takes the set-user-ID bit away, so modes come after owners.
    pub fn owner(self, path: impl AsRef<Path>, uid: u32, gid: u32) -> Self {
        let at = self.place(path);
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        must(rustix::fs::chownat(CWD, &at, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW), "chown", &at);
        self
    }

    /// Sets the modification time, of a symlink itself.
    pub fn mtime(self, path: impl AsRef<Path>, seconds: i64, nanoseconds: u32) -> Self {
        let at = self.place(path);
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
        };
        must(rustix::fs::utimensat(CWD, &at, &times, AtFlags::SYMLINK_NOFOLLOW), "set the times of", &at);
        self
    }

    /// Sets an extended attribute, of a symlink itself.
    pub fn xattr(self, path: impl AsRef<Path>, name: impl AsRef<OsStr>, value: impl AsRef<[u8]>) -> Self {
        let at = self.place(path);
        let set = rustix::fs::lsetxattr(&at, name.as_ref(), value.as_ref(), XattrFlags::empty());
        must(set, "set an xattr of", &at);
        self
    }

    /// Adds ACL entries as `setfacl -m` reads them: `"u:12345:rwx"`, `"d:g::r-x"` for a directory's default.
    pub fn acl(self, path: impl AsRef<Path>, entries: &str) -> Self {
        let at = self.place(path);
        run(Command::new("setfacl").args(["-m", entries, "--"]).arg(&at));
        self
    }

    /// Sets a file capability, effective and permitted: needs root. Gone after the next change of owner.
    pub fn capability(self, path: impl AsRef<Path>, capability: Capability) -> Self {
        // struct vfs_cap_data of linux/capability.h, VFS_CAP_REVISION_2 with the effective flag: permitted and
        // inheritable bits, low halves first.
        let words = [0x0200_0001_u32, 1 << capability as u32, 0, 0, 0];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.xattr(path, "security.capability", value)
    }

    /// Returns where `path` is, with the directories above it made.
    fn place(&self, path: impl AsRef<Path>) -> PathBuf {
        let at = self.root.join(path);
        if let Some(above) = at.parent() {
            must(fs::create_dir_all(above), "create", above);
        }
        at
    }
}

/// Capabilities for [`Tree::capability`], by their numbers in linux/capability.h.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Capability {
    /// To send raw packets.
    NetRaw = 13,
    /// To bind to ports below 1024.
    NetBindService = 10,
}
