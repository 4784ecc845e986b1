//! Tests the hints whose situations no other test creates, and that a command named in a hint helps when run as printed. The other hints
//! are asserted by the tests of their situations, which `list` checks.

mod bench;
mod case;
mod core;
mod db;
mod git;
mod list;

use calve_testkit::{FileSystem, Volume};

use crate::program::calve;

#[test]
fn what_the_engine_advises_helps() {
    case::check(core::CASES);
}

#[test]
fn what_is_advised_about_git_helps() {
    case::check(git::CASES);
}

#[test]
fn what_is_advised_about_servers_helps() {
    case::check(db::CASES);
}

#[test]
fn what_is_advised_about_benches_helps() {
    case::check(bench::CASES);
}

#[test]
fn a_mount_point_is_to_be_unmounted() {
    let Some(volume) = Volume::new(FileSystem::Tmpfs) else { return };
    let hint = format!("hint: unmount it first: umount {}\n", volume.path().display());
    calve(["rm"]).arg(volume.path()).fails(1).says(&[&hint]);
}
