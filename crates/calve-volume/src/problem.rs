use std::path::PathBuf;

use calve_core::internal::ShownPath;
use strum::{IntoStaticStr, VariantNames};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Problem {
    /// `volume.json` is missing, or another program changed it.
    #[error("its record is missing or damaged")]
    RecordDamaged,
    #[error("its image is missing")]
    ImageMissing,
    #[error("its image is not a regular file")]
    ImageNotAFile,
    #[error("its image has no btrfs in it")]
    NoFileSystem,
    #[error("its image has another file system in it")]
    AnotherFileSystem,
    #[error("its image has {bytes} bytes, and its file system {needed}")]
    Truncated { bytes: u64, needed: u64 },
    /// A loop device has the image, but is not mounted here.
    #[error("{} has its image, but is not mounted where it should be", list(.devices))]
    AttachedElsewhere { devices: Vec<PathBuf> },
    #[error("{} have its image", list(.devices))]
    AttachedTwice { devices: Vec<PathBuf> },
    /// It is detached, and cannot be attached: its mount point is missing, in use, or not empty.
    #[error("cannot mount on `{}`: {why}", ShownPath(.path))]
    MountPoint { path: PathBuf, why: &'static str },
    #[strum(serialize = "mount_options")]
    #[error("it is mounted without {}", .0.join(", "))]
    Options(Vec<&'static str>),
    /// The kernel made it read-only after an error, or another user did.
    #[error("it is mounted read-only, which the kernel does after an error")]
    ReadOnly,
    #[error("its file system does not use the whole image yet")]
    NotResized,
    #[error("its top directory may still belong to root")]
    NotHandedOver,
    /// The host took back blocks of a preallocated image.
    #[error("a trim (fstrim) has given blocks of its image back to the host")]
    Trimmed,
    #[error("it could demand {demand} bytes of the host, which has {free} free")]
    HostShort { free: u64, demand: u64 },
    #[error("btrfs has counted {0} errors of its device")]
    DeviceErrors(u64),
}

impl Problem {
    pub const NAMES: &[&str] = Self::VARIANTS;

    /// Returns whether [`crate::Volumes::attach`] repairs it.
    pub fn is_repairable(&self) -> bool {
        matches!(self, Self::Options(_) | Self::NotResized | Self::NotHandedOver | Self::Trimmed)
    }

    /// Returns whether the volume is usable all the same.
    pub fn is_mild(&self) -> bool {
        matches!(self, Self::HostShort { .. } | Self::DeviceErrors(_))
    }

    pub fn code(&self) -> &'static str {
        self.into()
    }
}

fn list(devices: &[PathBuf]) -> String {
    devices.iter().map(|device| ShownPath(device).to_string()).collect::<Vec<_>>().join(" and ")
}
