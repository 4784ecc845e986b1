//! Real file systems for tests: sparse images, mounted on loop devices.

mod scratch;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::mount::MountFlags;

pub(crate) use self::scratch::{Scratch, is_scratch};
use crate::mounts::unmount_whole;
use crate::must::must;
use crate::skip::{find_program, is_root, skip};

const MIB: u64 = 1 << 20;

/// The file systems that a [`Volume`] can have.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum FileSystem {
    /// No sharing of extents at all.
    Ext4,
    /// Made with `reflink=1`.
    Xfs,
    /// Reflinks and snapshots.
    Btrfs,
    /// In memory, without a loop device.
    Tmpfs,
}

impl FileSystem {
    /// All of them, for tests that hold everywhere.
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Xfs, Self::Btrfs, Self::Tmpfs];

    /// Those that share extents between files.
    pub const REFLINKING: [Self; 2] = [Self::Xfs, Self::Btrfs];

    /// The name that `mount -t` knows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
        }
    }

    /// What statfs(2) answers, from linux/magic.h.
    fn magic(self) -> i64 {
        match self {
            Self::Ext4 => 0xEF53,
            Self::Xfs => 0x5846_5342,
            Self::Btrfs => 0x9123_683E,
            Self::Tmpfs => 0x0102_1994,
        }
    }

    /// What mkfs accepts at the least: XFS refuses below 300 MB, btrfs is fragile below 128 MiB.
    fn smallest_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 8 * MIB,
            Self::Xfs => 300 * MIB,
            Self::Btrfs => 128 * MIB,
            Self::Tmpfs => MIB,
        }
    }

    /// The program that makes it and the options that make a sparse image cheap.
    fn mkfs(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Ext4 => Some(("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"])),
            Self::Xfs => Some(("mkfs.xfs", &["-q", "-f", "-K", "-m", "reflink=1"])),
            Self::Btrfs => Some(("mkfs.btrfs", &["-q", "-f", "-K"])),
            Self::Tmpfs => None,
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
    /// A volume of 1 GiB (sparse), or `None` with the reason on stderr; see [`skip`](crate::skip()).
    #[track_caller]
    pub fn new(file_system: FileSystem) -> Option<Self> {
        Self::builder(file_system).mount()
    }

    /// A volume of `bytes`, raised to the least that the file system can have.
    #[track_caller]
    pub fn with_size(file_system: FileSystem, bytes: u64) -> Option<Self> {
        Self::builder(file_system).size_bytes(bytes).mount()
    }

    /// A volume with options.
    pub fn builder(file_system: FileSystem) -> VolumeBuilder {
        VolumeBuilder { file_system, bytes: 1024 * MIB, reflinks: true, mkfs: Vec::new(), mount: Vec::new() }
    }

    /// Its root directory, where everybody may write.
    pub fn path(&self) -> &Path {
        self.scratch.mount_point()
    }

    /// What it is.
    pub fn file_system(&self) -> FileSystem {
        self.file_system
    }

    /// Returns when all that was written is on the disk, and all that was deleted is gone.
    pub fn settle(&self) {
        if self.file_system == FileSystem::Xfs {
            // It frees inodes some time after they were unlinked (xfs_icache.c, inodegc). Nothing but a freeze waits for that.
            run(Command::new(program("fsfreeze")).arg("--freeze").arg(self.path()));
            run(Command::new(program("fsfreeze")).arg("--unfreeze").arg(self.path()));
        } else {
            let root = must(fs_err::File::open(self.path()), "open", self.path());
            must(rustix::fs::syncfs(root), "sync", self.path());
        }
    }

    /// From now on every write fails with EROFS. Files open for writing make this panic.
    pub fn remount_read_only(&self) {
        self.remount(MountFlags::RDONLY, "remount read-only");
    }

    /// Undoes [`remount_read_only`](Self::remount_read_only).
    pub fn remount_writable(&self) {
        self.remount(MountFlags::empty(), "remount writable");
    }

    /// Shows `what` at the directory `at` of this volume, which is made if it is not there. Drop the guard before the
    /// volume.
    pub fn bind(&self, what: impl AsRef<Path>, at: impl AsRef<Path>) -> crate::BindMount {
        let at = self.path().join(at);
        must(fs::create_dir_all(&at), "create", &at);
        crate::BindMount::new(what, at)
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
            builder.mount_at(&self.scratch);
        }
    }

    fn remount(&self, flags: MountFlags, action: &str) {
        must(rustix::mount::mount_remount(self.path(), flags, ""), action, self.path());
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
    /// The size, raised to the least that the file system can have. The image is sparse.
    pub fn size_bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes.max(self.file_system.smallest_bytes());
        self
    }

    /// More arguments for mkfs, such as `["-N", "256"]` for an ext4 of few inodes. tmpfs has none: use
    /// `mount_option("nr_inodes=256")`.
    pub fn mkfs_args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.mkfs.extend(args.into_iter().map(Into::into));
        self
    }

    /// An XFS that was made without the means to share blocks.
    pub fn without_reflinks(mut self) -> Self {
        self.reflinks = false;
        self
    }

    /// One more mount option, such as `user_subvol_rm_allowed`.
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
        if let Some(reason) = self.obstacle() {
            skip(&reason);
            return None;
        }
        let scratch = Scratch::new(self.file_system.name());
        let root = scratch.mount_point().to_path_buf();
        if let Some((mkfs, args)) = self.file_system.mkfs() {
            let image = scratch.image();
            let file = must(fs::File::create(&image), "create", &image);
            must(file.set_len(self.bytes), "set the size of", &image);
            let args = args
                .iter()
                .map(|arg| if self.reflinks { arg } else { arg.strip_suffix("=1").map_or(*arg, |_| "reflink=0") });
            run(Command::new(program(mkfs)).args(args).args(&self.mkfs).arg(&image));
        }
        self.mount_at(&scratch);
        let volume = Volume { file_system: self.file_system, scratch };
        let magic = must(rustix::fs::statfs(&root), "statfs", &root).f_type;
        assert_eq!(magic, self.file_system.magic(), "`{}` is not {}", root.display(), self.file_system.name());
        must(rustix::fs::chmod(&root, 0o777.into()), "chmod", &root);
        Some(volume)
    }

    fn obstacle(&self) -> Option<String> {
        let name = self.file_system.name();
        if !is_root() {
            return Some(format!("mounting {name} needs root"));
        }
        let (mkfs, _) = self.file_system.mkfs()?;
        find_program(mkfs).is_none().then(|| format!("the program `{mkfs}` is not installed"))
    }

    fn mount_at(&self, scratch: &Scratch) {
        let mut options = self.mount.clone();
        let source = if self.file_system == FileSystem::Tmpfs {
            options.push(format!("size={}", self.bytes));
            PathBuf::from("calve-test")
        } else {
            options.push("loop".to_owned());
            scratch.image()
        };
        let mut command = Command::new(program("mount"));
        command.args(["-t", self.file_system.name(), "-o", &options.join(",")]).arg(source).arg(scratch.mount_point());
        // Finding a free loop device and claiming it are two steps, so tests that mount at the same time collide.
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            let output = must(command.output(), "run", Path::new("mount"));
            if output.status.success() {
                return;
            }
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(complaint.contains("loop device"), "{command:?} failed: {complaint}");
            thread::sleep(Duration::from_millis(50));
        }
        panic!("{command:?} found no free loop device in 30 seconds");
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
