//! Disk images of hdiutil(1).

use std::ffi::CStr;
use std::path::Path;
use std::process::Command;

use super::scratch::Scratch;
use super::wanted::{FileSystem, MIB, VolumeBuilder, program};
use crate::must::{must, run};

pub(super) fn kind_of(file_system: FileSystem) -> String {
    if FileSystem::REFLINKING.contains(&file_system) { "apfs" } else { "hfs" }.to_owned()
}

pub(super) fn kind(root: &Path) -> String {
    let name = must(rustix::fs::statfs(root), "statfs", root).f_fstypename.map(|byte| byte as u8);
    CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a size that suits APFS and HFS+.
pub(super) fn smallest_bytes(_file_system: FileSystem) -> u64 {
    16 * MIB
}

/// Returns the name for `hdiutil create -fs`: case-sensitive, because trees have names that differ only by case.
fn format(file_system: FileSystem) -> &'static str {
    if FileSystem::REFLINKING.contains(&file_system) { "Case-sensitive APFS" } else { "Case-sensitive HFS+" }
}

pub(super) fn obstacle(builder: &VolumeBuilder) -> Option<String> {
    let has_options = !builder.mkfs.is_empty() || !builder.mount.is_empty();
    has_options.then(|| format!("macOS has no such options of {}", builder.file_system.name()))
}

/// Makes the image. `hdiutil` refuses to overwrite one, and adds a suffix to any other name.
pub(super) fn make(builder: &VolumeBuilder, scratch: &Scratch) {
    let image = scratch.image();
    let size = format!("{}b", builder.bytes.div_ceil(512));
    let mut command = Command::new(program("hdiutil"));
    command.args(["create", "-quiet", "-type", "SPARSE", "-volname", "calve-test"]);
    run(command.args(["-size", &size, "-fs", format(builder.file_system)]).arg(image));
}

/// Mounts the image. Without `-owners` every file would belong to the caller.
pub(super) fn mount(_builder: &VolumeBuilder, scratch: &Scratch) {
    let mut command = Command::new(program("hdiutil"));
    command.args(["attach", "-quiet", "-nobrowse", "-owners", "on", "-mountpoint"]);
    run(command.arg(scratch.mount_point()).arg(scratch.image()));
}

pub(super) fn remount(root: &Path, read_only: bool) {
    let access = if read_only { "-ur" } else { "-uw" };
    run(Command::new(program("mount")).arg(access).arg(root));
}

pub(super) fn settle(_root: &Path, _file_system: FileSystem) {
    rustix::fs::sync();
}
