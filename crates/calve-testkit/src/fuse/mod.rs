//! A file system that lacks common features, to test how the engine copes.

mod memory;
mod serve;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};

pub use self::serve::FuseOptions;
use self::serve::Server;
use crate::must::must;
use crate::skip::{is_root, skip};
use crate::volume::Scratch;

/// A file system in memory behind FUSE; unmounted when dropped.
///
/// It supports files, directories, symlinks, hard links, FIFOs, owners, modes and nanosecond times. It refuses extended
/// attributes (EOPNOTSUPP) and every rename flag (EINVAL, as on NFS); files have no holes.
#[derive(Debug)]
pub struct FuseVolume {
    session: Option<BackgroundSession>,
    scratch: Scratch,
}

impl FuseVolume {
    /// Mounts a volume, or returns `None` with the reason on stderr; see [`skip`](crate::skip()).
    #[track_caller]
    pub fn new() -> Option<Self> {
        Self::with_options(FuseOptions::default())
    }

    /// Mounts a volume where reading files called `name` fails with EIO. Returns `None` as [`new`](Self::new) does.
    #[track_caller]
    pub fn with_unreadable(name: impl Into<OsString>) -> Option<Self> {
        Self::with_options(FuseOptions { unreadable_name: Some(name.into()), ..FuseOptions::default() })
    }

    #[track_caller]
    pub fn with_options(options: FuseOptions) -> Option<Self> {
        if !is_root() || !Path::new("/dev/fuse").exists() {
            skip("mounting FUSE needs root and `/dev/fuse`");
            return None;
        }
        let scratch = Scratch::new("fuse");
        let root: PathBuf = scratch.mount_point().to_path_buf();
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("calve-test".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::Suid,
            MountOption::Dev,
        ];
        config.acl = SessionACL::All;
        let session = fuser::spawn_mount(Server::new(options), &root, &config);
        let volume = Self { session: Some(must(session, "mount FUSE at", &root)), scratch };
        let magic = must(rustix::fs::statfs(&root), "statfs", &root).f_type;
        // FUSE_SUPER_MAGIC of linux/magic.h
        assert_eq!(magic, 0x6573_5546, "`{}` is not FUSE", root.display());
        Some(volume)
    }

    pub fn path(&self) -> &Path {
        self.scratch.mount_point()
    }
}

impl Drop for FuseVolume {
    fn drop(&mut self) {
        // Unmount before waiting for the serving thread, which ends only with the mount.
        for point in crate::mounts::mounted_below(self.path()) {
            crate::mounts::unmount(&point);
        }
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}
