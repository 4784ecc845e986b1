//! Real file systems for tests, on sparse images.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod scratch;

use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
pub(crate) use self::scratch::Scratch;
pub use self::scratch::isolate_mounts;
use crate::mounts::{BindMount, unmount_whole};
use crate::must::must;
use crate::skip::{find_program, skip};

const MIB: u64 = 1 << 20;

/// The file systems that a [`Volume`] can have. On macOS those that share extents are APFS, and the others HFS+.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FileSystem {
    /// No sharing of extents at all.
    Ext4,
    /// Made with `reflink=1`.
    Xfs,
    Btrfs,
    /// In memory, without a loop device.
    Tmpfs,
}

/// How a volume may be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Access {
    ReadOnly,
    Writable,
}

impl FileSystem {
    /// All of them, for tests that hold everywhere.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Those that share extents between files.
    pub const REFLINKING: [Self; 2] = [Self::Xfs, Self::Btrfs];

    /// Returns the name that `mount -t` knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }
}

/// A mounted file system of its own; unmounted and deleted when dropped, also by a panic.
///
/// What a killed test run leaves behind is removed by the next run's first volume.
#[derive(Debug)]
pub struct Volume {
    file_system: FileSystem,
    scratch: Scratch,
}

impl Volume {
    /// Mounts a volume of 1 GiB (sparse), or returns `None` with the reason on stderr; see [`skip`](crate::skip()).
    #[track_caller]
    pub fn new(file_system: FileSystem) -> Option<Self> {
        Self::builder(file_system).mount()
    }

    /// Mounts a volume of `bytes`, raised to the least that the file system can have.
    #[track_caller]
    pub fn with_size(file_system: FileSystem, bytes: u64) -> Option<Self> {
        Self::builder(file_system).size_bytes(bytes).mount()
    }

    /// Begins to build a volume with options.
    pub fn builder(file_system: FileSystem) -> VolumeBuilder {
        VolumeBuilder { file_system, bytes: 1024 * MIB, reflinks: true, mkfs: Vec::new(), mount: Vec::new() }
    }

    /// Returns the root directory, where everybody may write.
    pub fn path(&self) -> &Path {
        self.scratch.mount_point()
    }

    /// Returns what it is.
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }

    /// Returns when all that was written is on the disk, and all that was deleted is gone.
    pub fn settle(&self) {
        system::settle(self.path(), self.file_system);
    }

    /// Makes every write fail with EROFS from now on. Panics if a file is open for writing.
    pub fn remount_read_only(&self) {
        system::remount(self.path(), Access::ReadOnly);
    }

    pub fn remount_writable(&self) {
        system::remount(self.path(), Access::Writable);
    }

    /// Shows `what` at the directory `at` of this volume, which is made if it is not there. Drop the guard before the
    /// volume.
    pub fn bind(&self, what: impl AsRef<Path>, at: impl AsRef<Path>) -> BindMount {
        let at = self.path().join(at);
        must(fs::create_dir_all(&at), "create", &at);
        BindMount::new(what, at)
    }

    /// Mounts it anew, on a device with another number, as a restart of the machine may. Nothing of it may be open.
    pub fn restart(&self) {
        let device = || must(rustix::fs::stat(self.path()), "stat", self.path()).st_dev;
        let before = device();
        let builder = Self::builder(self.file_system);
        // Each takes a device that has just become free.
        let mut others = Vec::new();
        while device() == before {
            must(unmount_whole(self.path()), "unmount", self.path());
            others.extend(Self::with_size(self.file_system, 0));
            system::mount(&builder, &self.scratch);
        }
    }
}

/// Options of a [`Volume`] to be made.
#[derive(Clone, Debug)]
pub struct VolumeBuilder {
    file_system: FileSystem,
    bytes: u64,
    reflinks: bool,
    mkfs: Vec<String>,
    mount: Vec<String>,
}

impl VolumeBuilder {
    /// Sets the size, raised to the least that the file system can have. The image is sparse.
    pub fn size_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes.max(system::smallest_bytes(self.file_system));
        self
    }

    /// Adds arguments for mkfs, such as `["-N", "256"]` for an ext4 of few inodes. tmpfs has none: use `mount_option("nr_inodes=256")`.
    pub fn mkfs_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.mkfs.extend(args.into_iter().map(Into::into));
        self
    }

    /// Builds an XFS without the means to share blocks.
    pub fn without_reflinks(mut self) -> Self {
        self.reflinks = false;
        self
    }

    /// Adds a mount option, such as `user_subvol_rm_allowed`.
    pub fn mount_option(mut self, option: impl Into<String>) -> Self {
        self.mount.push(option.into());
        self
    }

    /// Makes and mounts it, or `None` with the reason on stderr; see [`skip`](crate::skip()).
    ///
    /// # Panics
    /// If mkfs or mount fail, or if what is mounted is not what was asked for.
    #[track_caller]
    pub fn mount(self) -> Option<Volume> {
        if let Some(reason) = system::obstacle(&self) {
            skip(&reason);
            return None;
        }
        let scratch = Scratch::new(self.file_system.name());
        let root = scratch.mount_point().to_path_buf();
        system::make(&self, &scratch);
        system::mount(&self, &scratch);
        let volume = Volume { file_system: self.file_system, scratch };
        let found = system::kind(&root);
        assert_eq!(found, system::kind_of(self.file_system), "`{}` is not {}", root.display(), self.file_system.name());
        must(rustix::fs::chmod(&root, 0o777.into()), "chmod", &root);
        Some(volume)
    }
}

fn program(name: &str) -> PathBuf {
    find_program(name).unwrap_or_else(|| panic!("the program `{name}` is not installed"))
}

fn run(command: &mut Command) {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot run {command:?}: {error}"),
    };
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
}
