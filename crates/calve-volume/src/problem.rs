//! Faults of a volume.

use std::fmt::{self, Display};
use std::path::PathBuf;

use calve_core::ShownPath;

/// Something that is wrong with a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// `volume.json` is missing, or was changed by somebody else.
    RecordDamaged,
    ImageMissing,
    /// The image is a symlink, a directory or a device.
    ImageNotAFile,
    /// There is no btrfs in the image.
    NoFileSystem,
    /// The btrfs in the image is not the one that was made for this volume.
    AnotherFileSystem,
    /// The image is shorter than its file system.
    Truncated {
        bytes: u64,
        needed: u64,
    },
    /// A loop device has the image, and is not mounted here.
    AttachedElsewhere {
        devices: Vec<PathBuf>,
    },
    /// Several loop devices have the image.
    AttachedTwice {
        devices: Vec<PathBuf>,
    },
    /// Mount options are missing.
    Options(Vec<&'static str>),
    /// The kernel made it read-only after an error, or somebody else did.
    ReadOnly,
    /// The file system does not use the whole image.
    NotResized,
    /// The top directory was not given to its owner yet.
    NotHandedOver,
    /// The host has got back blocks that belong to a preallocated image.
    Trimmed,
    /// The volume could demand more than is free on the host.
    HostShort {
        free: u64,
        /// The space that it could demand.
        demand: u64,
    },
    /// btrfs has counted errors of its device.
    DeviceErrors(u64),
}

impl Problem {
    /// Returns whether [`crate::Volumes::attach`] puts it right.
    pub fn is_repairable(&self) -> bool {
        matches!(self, Self::Options(_) | Self::NotResized | Self::NotHandedOver | Self::Trimmed)
    }

    /// Returns whether the volume can be used all the same.
    pub fn is_mild(&self) -> bool {
        matches!(self, Self::HostShort { .. } | Self::DeviceErrors(_))
    }

    /// Returns its name in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::RecordDamaged => "record_damaged",
            Self::ImageMissing => "image_missing",
            Self::ImageNotAFile => "image_not_a_file",
            Self::NoFileSystem => "no_file_system",
            Self::AnotherFileSystem => "another_file_system",
            Self::Truncated { .. } => "truncated",
            Self::AttachedElsewhere { .. } => "attached_elsewhere",
            Self::AttachedTwice { .. } => "attached_twice",
            Self::Options(_) => "mount_options",
            Self::ReadOnly => "read_only",
            Self::NotResized => "not_resized",
            Self::NotHandedOver => "not_handed_over",
            Self::Trimmed => "trimmed",
            Self::HostShort { .. } => "host_short",
            Self::DeviceErrors(_) => "device_errors",
        }
    }
}

impl Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |devices: &[PathBuf]| {
            devices.iter().map(|device| ShownPath(device).to_string()).collect::<Vec<_>>().join(" and ")
        };
        let fixed = match self {
            Self::RecordDamaged => "its record is missing or damaged",
            Self::ImageMissing => "its image is missing",
            Self::ImageNotAFile => "its image is not a regular file",
            Self::NoFileSystem => "its image has no btrfs in it",
            Self::AnotherFileSystem => "its image has another file system in it",
            Self::Truncated { bytes, needed } => {
                return write!(formatter, "its image has {bytes} bytes, and its file system {needed}");
            }
            Self::AttachedElsewhere { devices } => {
                return write!(formatter, "{} has its image, but is not mounted where it should be", list(devices));
            }
            Self::AttachedTwice { devices } => return write!(formatter, "{} have its image", list(devices)),
            Self::Options(missing) => {
                return write!(formatter, "it is mounted without {}", missing.join(", "));
            }
            Self::ReadOnly => "it is mounted read-only, which the kernel does after an error",
            Self::NotResized => "its file system does not use the whole image yet",
            Self::NotHandedOver => "its top directory may still belong to root",
            Self::Trimmed => "a trim (fstrim) has given blocks of its image back to the host",
            Self::HostShort { free, demand } => {
                return write!(formatter, "it could demand {demand} bytes of the host, which has {free} free");
            }
            Self::DeviceErrors(count) => return write!(formatter, "btrfs has counted {count} errors of its device"),
        };
        formatter.write_str(fixed)
    }
}
