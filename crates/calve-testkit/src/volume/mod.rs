//! Real file systems for tests, on sparse images.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod scratch;
mod wanted;

use std::path::Path;

use fs_err as fs;

#[cfg(target_os = "linux")]
use self::linux as system;
#[cfg(target_os = "macos")]
use self::macos as system;
pub(crate) use self::scratch::Scratch;
pub use self::scratch::isolate_mounts;
use self::wanted::MIB;
pub use self::wanted::{FileSystem, VolumeBuilder};
use crate::mounts::{BindMount, unmount_whole};
use crate::must::must;
use crate::skip::skip;

/// A mounted file system, unmounted and deleted when dropped. A test run's first volume removes killed runs' leftovers.
#[derive(Debug)]
pub struct Volume {
    builder: VolumeBuilder,
    scratch: Scratch,
}

impl Volume {
    /// Mounts a volume of 1 GiB (sparse), or returns `None` with the reason on stderr; see [`skip`](crate::skip()).
    #[track_caller]
    pub fn new(file_system: FileSystem) -> Option<Self> {
        Self::builder(file_system).mount()
    }

    /// Mounts a volume of `bytes`, raised to the file system's minimum.
    #[track_caller]
    pub fn with_size(file_system: FileSystem, bytes: u64) -> Option<Self> {
        Self::builder(file_system).size_bytes(bytes).mount()
    }

    pub fn builder(file_system: FileSystem) -> VolumeBuilder {
        VolumeBuilder { file_system, bytes: 1024 * MIB, mkfs: Vec::new(), mount: Vec::new() }
    }

    /// Returns the root directory, which every user may write to.
    pub fn path(&self) -> &Path {
        self.scratch.mount_point()
    }

    pub fn file_system(&self) -> FileSystem {
        self.builder.file_system
    }

    /// Waits until all written data is on disk and deleted files have freed their space.
    pub fn settle(&self) {
        system::settle(self.path(), self.file_system());
    }

    /// Makes every write fail with EROFS. Panics if a file is open for writing.
    pub fn remount_read_only(&self) {
        system::remount(self.path(), true);
    }

    pub fn remount_writable(&self) {
        system::remount(self.path(), false);
    }

    /// Shows `what` at the directory `at` of this volume, created if missing. Drop the guard before the volume.
    pub fn bind(&self, what: impl AsRef<Path>, at: impl AsRef<Path>) -> BindMount {
        let at = self.path().join(at);
        must(fs::create_dir_all(&at), "create", &at);
        BindMount::new(what, at)
    }

    /// Mounts it again with another device number, as after a reboot. No file in it may be open.
    pub fn restart(&self) {
        let device = || must(rustix::fs::stat(self.path()), "stat", self.path()).st_dev;
        let before = device();
        // Each one occupies a device that has just become free.
        let mut others = Vec::new();
        while device() == before {
            must(unmount_whole(self.path()), "unmount", self.path());
            others.extend(Self::with_size(self.file_system(), 0));
            system::mount(&self.builder, &self.scratch);
        }
    }
}

impl VolumeBuilder {
    /// Makes and mounts the volume, or returns `None` with the reason on stderr; see [`skip`](crate::skip()).
    ///
    /// # Panics
    /// If mkfs or mount fails, or if the mounted file system has another type.
    #[track_caller]
    pub fn mount(mut self) -> Option<Volume> {
        self.bytes = self.bytes.max(system::smallest_bytes(self.file_system));
        if let Some(reason) = system::obstacle(&self) {
            skip(&reason);
            return None;
        }
        let scratch = Scratch::new(self.file_system.name());
        system::make(&self, &scratch);
        system::mount(&self, &scratch);
        let volume = Volume { builder: self, scratch };
        let (root, file_system) = (volume.path(), volume.file_system());
        let found = system::kind(root);
        assert_eq!(found, system::kind_of(file_system), "`{}` is not {}", root.display(), file_system.name());
        must(rustix::fs::chmod(root, 0o777.into()), "chmod", root);
        Some(volume)
    }
}
