//! The kernel's loop devices and mounts, which any user may read.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use calve_core::internal::unescape;
use fs_err as fs;

use crate::error::{Error, IoContext as _, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) device: PathBuf,
    pub(crate) at: PathBuf,
    /// Options of the mount, its peer groups (`shared:1`, `master:1`), and options of the file system.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// Returns whether it has an option. The kernel lists only options that are on.
    pub(crate) fn has(&self, option: &str) -> bool {
        match option.strip_prefix("no").filter(|what| *what == "discard") {
            Some(what) => !self.options.iter().any(|found| found.starts_with(what)),
            None => self.options.iter().any(|found| found == option),
        }
    }
}

/// Returns the loop devices backed by `image`, a path without links, in any mount namespace. The kernel reports the
/// path by which a file was opened, which a bind mount can change, so inodes are compared too.
pub(crate) fn loops_of(image: &Path) -> Result<Vec<PathBuf>> {
    let wanted = identity(image);
    let block = Path::new("/sys/block");
    let mut loops = Vec::new();
    for entry in fs::read_dir(block).io("list", block)? {
        let name = entry.io("list", block)?.file_name();
        if !name.as_bytes().starts_with(b"loop") {
            continue;
        }
        // A device without a file has no such folder, and one that goes meanwhile loses it.
        let Ok(file) = fs::read(block.join(&name).join("loop/backing_file")) else { continue };
        let file = file.strip_suffix(b"\n").unwrap_or(&file);
        let deleted = file.strip_suffix(b" (deleted)");
        let has_its_path = [Some(file), deleted].contains(&Some(image.as_os_str().as_bytes()));
        if has_its_path || wanted.is_some() && identity(Path::new(OsStr::from_bytes(file))) == wanted {
            loops.push(Path::new("/dev").join(name));
        }
    }
    loops.sort();
    Ok(loops)
}

pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Waits until no device has the file: the kernel releases it a moment after the unmount. A device that was made by
/// hand keeps it (losetup(8), AUTOCLEAR).
fn wait_for_release(image: &Path) -> Result<Vec<PathBuf>> {
    let give_up = Instant::now() + Duration::from_secs(5);
    let clears_itself = |device: &PathBuf| {
        let block = Path::new("/sys/block").join(device.file_name().unwrap_or_default());
        // A device that has just gone has no such file.
        fs::read(block.join("loop/autoclear")).map_or(true, |flag| flag.starts_with(b"1"))
    };
    loop {
        let loops = loops_of(image)?;
        if !loops.iter().any(clears_itself) || Instant::now() > give_up {
            return Ok(loops);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the loop devices that have the image without a known mount. Fails if another mount namespace has one.
pub(crate) fn unused(name: &str, image: &Path) -> Result<Vec<PathBuf>> {
    let devices = wait_for_release(image)?;
    refuse_keepers(name, &devices, None)?;
    Ok(devices)
}

pub(crate) fn mounts() -> Result<Vec<Mount>> {
    let path = Path::new("/proc/self/mountinfo");
    let table = fs::read(path).io("read", path)?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

/// Fails if another mount namespace has one of these devices, and keeps it when `own` is unmounted: that goes only from a shared mount to its
/// peers and slaves (mount_namespaces(7)). Names a process of each namespace, if this user may see its mounts.
pub(crate) fn refuse_keepers(name: &str, devices: &[PathBuf], own: Option<&Mount>) -> Result<()> {
    let is_in = |mount: &Mount, group: &str| mount.options.iter().any(|found| found.starts_with(group));
    let is_shared = own.is_some_and(|own| is_in(own, "shared:"));
    let goes_too = |mount: &Mount| is_shared && (is_in(mount, "shared:") || is_in(mount, "master:"));
    let mut namespaces = BTreeSet::from_iter(fs::read_link("/proc/self/ns/mnt"));
    let mut users = Vec::new();
    for process in processes().filter(|_| !devices.is_empty()) {
        let Ok(namespace) = fs::read_link(process.join("ns/mnt")) else { continue };
        if !namespaces.insert(namespace) {
            continue;
        }
        let table = fs::read(process.join("mountinfo")).unwrap_or_default();
        let mut mounts = table.split(|byte| *byte == b'\n').filter_map(parse);
        if mounts.any(|mount| devices.contains(&mount.device) && !goes_too(&mount)) {
            users.push(shown(&process));
        }
    }
    if users.is_empty() { Ok(()) } else { Err(Error::Busy { name: name.into(), processes: users }) }
}

/// Parses one line of proc_pid_mountinfo(5).
fn parse(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let options = [fields.get(5..dash)?, &[fields.get(dash + 3)?]].concat();
    let options: Vec<_> = options.into_iter().map(String::from_utf8_lossy).collect();
    Some(Mount {
        device: unescape(fields.get(dash + 2)?),
        at: unescape(fields.get(4)?),
        options: options.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect(),
    })
}

/// Returns other processes with something open below `at`, as `name (number)`, if this user may see their descriptors.
pub(crate) fn users_of(at: &Path) -> Vec<String> {
    let uses = |path: &PathBuf| {
        let descriptors = fs::read_dir(path.join("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut links = ["cwd", "root", "exe"].map(|link| path.join(link)).into_iter().chain(descriptors);
        links.any(|link| fs::read_link(link).is_ok_and(|target| target.starts_with(at)))
    };
    let own = std::process::id().to_string();
    processes().filter(|path| !path.ends_with(&own) && uses(path)).map(|path| shown(&path)).collect()
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().as_bytes().iter().all(u8::is_ascii_digit)).map(|entry| entry.path())
}

fn shown(process: &Path) -> String {
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    format!("{} ({})", name.trim(), process.file_name().unwrap_or_default().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_all_its_options() {
        let line = br"44 27 0:41 / /a\040b rw,nosuid shared:1 - btrfs /dev/loop0 rw,discard=async";
        let options = ["rw", "nosuid", "shared:1", "rw", "discard=async"].map(String::from).to_vec();
        assert_eq!(parse(line), Some(Mount { device: "/dev/loop0".into(), at: "/a b".into(), options }));
        assert_eq!(parse(b""), None);
    }
}
