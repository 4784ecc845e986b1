//! Volumes: a btrfs file system in one file, mounted through a loop device, so that clones are snapshots on any file system.
//!
//! `store` keeps the images and their records, `plan` says what root has to run, `mounted` reads what the kernel has mounted, `doctor`
//! compares all of them. Whatever needs root is a [`RootCommand`] for a program of the system; nothing here asks for a password.
//! Only an image whose superblock has the UUID of its record is ever mounted, unmounted, grown or deleted.

mod doctor;
mod error;
mod mounted;
mod plan;
mod problem;
mod programs;
mod remedy;
mod store;
mod superblock;

pub use error::Error;
pub use plan::VolumePlan;
pub use problem::Problem;
pub use programs::{RootCommand, WayToRoot, is_possible};
pub use remedy::{KernelFeature, Program, Remedy};
pub use store::{NewVolume, Volume, VolumeState, Volumes};
