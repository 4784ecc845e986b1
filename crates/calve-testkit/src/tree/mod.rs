pub(crate) mod everything;
pub(crate) mod random;
pub(crate) mod shapes;

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use rustix::fs::{AtFlags, CWD, FileType, Gid, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};

use crate::must::{must, run};
use crate::sys;

/// Builds a tree step by step. Each step runs at once and creates missing parent directories. Set times and restrictive
/// modes of directories last, because a new entry changes its directory's mtime.
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

    /// Writes a file, replacing existing contents.
    pub fn file(self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Self {
        self.step(path, "write", |at| fs::write(at, bytes))
    }

    pub fn dir(self, path: impl AsRef<Path>) -> Self {
        self.step(path, "create", |at| fs::create_dir_all(at))
    }

    pub fn symlink(self, path: impl AsRef<Path>, target: impl AsRef<Path>) -> Self {
        self.step(path, "link", |at| symlink(target.as_ref(), at))
    }

    pub fn hard_link(self, path: impl AsRef<Path>, existing: impl AsRef<Path>) -> Self {
        let existing = self.root.join(existing);
        // Not `std::fs::hard_link`, which follows symlinks on some platforms.
        self.step(path, "link", |at| rustix::fs::linkat(CWD, existing, CWD, at, AtFlags::empty()))
    }

    /// Makes a named pipe. Opening it for reading without O_NONBLOCK hangs.
    pub fn fifo(self, path: impl AsRef<Path>) -> Self {
        self.device(path, FileType::Fifo, 0, 0)
    }

    /// Makes a device node. Needs root.
    pub fn device(self, path: impl AsRef<Path>, kind: FileType, major: u32, minor: u32) -> Self {
        self.step(path, "make the node", |at| sys::make_node(at, kind, (major, minor)))
    }

    /// Makes a socket without a listener. The path must be shorter than 108 bytes.
    pub fn socket(self, path: impl AsRef<Path>) -> Self {
        self.step(path, "bind a socket to", |at| UnixListener::bind(at))
    }

    /// Makes a file of `size_bytes`: a hole except for the given pieces of data.
    pub fn sparse(self, path: impl AsRef<Path>, size_bytes: u64, data: &[(u64, &[u8])]) -> Self {
        self.step(path, "write", |at| {
            let file = fs::File::create(at)?;
            file.set_len(size_bytes)?;
            data.iter().try_for_each(|(offset, bytes)| file.file().write_all_at(bytes, *offset))
        })
    }

    pub fn mode(self, path: impl AsRef<Path>, mode: u32) -> Self {
        self.step(path, "chmod", |at| fs::set_permissions(at, std::fs::Permissions::from_mode(mode)))
    }

    /// Sets user and group, also of a symlink itself. Needs root. Clears the set-user-ID bit: set modes after owners.
    pub fn owner(self, path: impl AsRef<Path>, uid: u32, gid: u32) -> Self {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        self.step(path, "chown", |at| rustix::fs::chownat(CWD, at, uid, gid, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Sets the modification time, also of a symlink itself.
    pub fn mtime(self, path: impl AsRef<Path>, seconds: i64, nanoseconds: u32) -> Self {
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
        };
        let set = |at: &Path| rustix::fs::utimensat(CWD, at, &times, AtFlags::SYMLINK_NOFOLLOW);
        self.step(path, "set the times of", set)
    }

    /// Sets an extended attribute, also of a symlink itself.
    pub fn xattr(self, path: impl AsRef<Path>, name: impl AsRef<OsStr>, value: impl AsRef<[u8]>) -> Self {
        let set = |at: &Path| rustix::fs::lsetxattr(at, name.as_ref(), value.as_ref(), XattrFlags::empty());
        self.step(path, "set an xattr of", set)
    }

    /// Adds ACL entries in `setfacl -m` syntax: `"u:12345:rwx"`, `"d:g::r-x"` for a directory's default.
    pub fn acl(self, path: impl AsRef<Path>, entries: &str) -> Self {
        run(Command::new("setfacl").args(["-m", entries, "--"]).arg(self.root.join(path)));
        self
    }

    /// Sets a file capability, effective and permitted. Needs root. A later change of owner clears it.
    pub fn capability(self, path: impl AsRef<Path>, capability: Capability) -> Self {
        // struct vfs_cap_data of linux/capability.h: VFS_CAP_REVISION_2 with the effective flag, then permitted and
        // inheritable bits, low halves first.
        let words = [0x0200_0001_u32, 1 << capability as u32, 0, 0, 0];
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.xattr(path, "security.capability", value)
    }

    fn step<T, E: Display>(
        self,
        path: impl AsRef<Path>,
        action: &str,
        work: impl FnOnce(&Path) -> Result<T, E>,
    ) -> Self {
        let at = self.root.join(path);
        if let Some(above) = at.parent() {
            must(fs::create_dir_all(above), "create", above);
        }
        must(work(&at), action, &at);
        self
    }
}

/// Capabilities for [`Tree::capability`], with their numbers from linux/capability.h.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Capability {
    /// Send raw packets.
    NetRaw = 13,
    /// Bind to ports below 1024.
    NetBindService = 10,
}
