use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use fs_err as fs;
use rustix::mount::MountFlags;

use super::scratch::Scratch;
use super::wanted::{FileSystem, MIB, VolumeBuilder, program};
use crate::mounts::retry_while_busy;
use crate::must::{must, run};
use crate::skip::{find_program, is_root};

/// Returns the number that statfs(2) reports, from linux/magic.h.
pub(super) fn kind_of(file_system: FileSystem) -> i64 {
    match file_system {
        FileSystem::Ext4 => 0xEF53,
        FileSystem::Xfs => 0x5846_5342,
        FileSystem::Btrfs => 0x9123_683E,
        FileSystem::Tmpfs => 0x0102_1994,
    }
}

pub(super) fn kind(root: &Path) -> i64 {
    must(rustix::fs::statfs(root), "statfs", root).f_type
}

/// Returns the smallest size to use: mkfs.xfs refuses less than 300 MB, btrfs is fragile below 128 MiB.
pub(super) fn smallest_bytes(file_system: FileSystem) -> u64 {
    match file_system {
        FileSystem::Ext4 => 8 * MIB,
        FileSystem::Xfs => 300 * MIB,
        FileSystem::Btrfs => 128 * MIB,
        FileSystem::Tmpfs => MIB,
    }
}

/// Returns the mkfs program, with options that keep a sparse image small.
fn mkfs(file_system: FileSystem) -> Option<(&'static str, &'static [&'static str])> {
    match file_system {
        FileSystem::Ext4 => {
            Some(("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]))
        }
        FileSystem::Xfs => Some(("mkfs.xfs", &["-q", "-f", "-K"])),
        FileSystem::Btrfs => Some(("mkfs.btrfs", &["-q", "-f", "-K"])),
        FileSystem::Tmpfs => None,
    }
}

pub(super) fn obstacle(builder: &VolumeBuilder) -> Option<String> {
    let name = builder.file_system.name();
    if !is_root() {
        return Some(format!("mounting {name} needs root"));
    }
    let (mkfs, _) = mkfs(builder.file_system)?;
    if let Some(missing) = [mkfs, "losetup"].into_iter().find(|program| find_program(program).is_none()) {
        return Some(format!("the program `{missing}` is not installed"));
    }
    (!*HAS_LOOP_DEVICES).then(|| format!("mounting {name} needs loop devices"))
}

/// Many containers have no loop devices.
static HAS_LOOP_DEVICES: LazyLock<bool> = LazyLock::new(|| {
    let found = find_program("losetup").and_then(|losetup| Command::new(losetup).arg("--find").output().ok());
    found.is_some_and(|found| found.status.success())
});

pub(super) fn make(builder: &VolumeBuilder, scratch: &Scratch) {
    let Some((mkfs, args)) = mkfs(builder.file_system) else { return };
    let image = scratch.image();
    let file = must(fs::File::create(&image), "create", &image);
    must(file.set_len(builder.bytes), "set the size of", &image);
    // mkfs.btrfs queries each loop device for its file, and fails if one disappears meanwhile, such as another test's.
    despite_others(Command::new(program(mkfs)).args(args).args(&builder.mkfs).arg(&image), "cannot check mount status");
}

pub(super) fn mount(builder: &VolumeBuilder, scratch: &Scratch) {
    let mut options = builder.mount.clone();
    let source = if builder.file_system == FileSystem::Tmpfs {
        options.push(format!("size={}", builder.bytes));
        PathBuf::from("calve-test")
    } else {
        options.push("loop".to_owned());
        scratch.image()
    };
    let mut command = Command::new(program("mount"));
    command.args(["-t", builder.file_system.name(), "-o", &options.join(",")]).arg(source).arg(scratch.mount_point());
    // Finding a free loop device and claiming it are two steps, so concurrent mounts collide.
    despite_others(&mut command, "loop device");
}

/// Retries a command for up to 30 seconds while it fails with `complaint`, because others are changing loop devices.
fn despite_others(command: &mut Command, complaint: &str) {
    let started = Instant::now();
    loop {
        let output = must(command.output(), "run", Path::new(command.get_program()));
        if output.status.success() {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(complaint) && started.elapsed() < Duration::from_secs(30), "{command:?} failed: {said}");
        thread::sleep(Duration::from_millis(50));
    }
}

pub(super) fn remount(root: &Path, read_only: bool) {
    let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    must(retry_while_busy(|| rustix::mount::mount_remount(root, flags, "")), "remount", root);
}

pub(super) fn settle(root: &Path, file_system: FileSystem) {
    if file_system == FileSystem::Xfs {
        // XFS frees inodes some time after unlink (xfs_icache.c, inodegc). Only a freeze waits for that.
        run(Command::new(program("fsfreeze")).arg("--freeze").arg(root));
        run(Command::new(program("fsfreeze")).arg("--unfreeze").arg(root));
    } else {
        let file = must(fs::File::open(root), "open", root);
        must(rustix::fs::syncfs(file), "sync", root);
    }
}
