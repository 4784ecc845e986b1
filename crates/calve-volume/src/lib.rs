//! Volumes: a btrfs file system in one file, mounted through a loop device: clones are snapshots on any file system.
//!
//! `store` keeps the images and their records, `plan` lists the commands for root, `mounted` reads the kernel's mounts,
//! and `doctor` compares them. A step that needs root is a [`RootCommand`] for a program of the system; nothing here
//! asks for a password. An image is mounted or grown only if its superblock has the UUID of its record.

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
