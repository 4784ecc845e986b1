//! The mounts that this process sees.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, OFlags, StatxAttributes, StatxFlags};
use rustix::io::{Errno, Result};

use super::magic::magic;
use crate::sys::unescape;

/// Returns the id of an open file's mount (statx(2), Linux 5.8), or the device number on older kernels.
pub(super) fn mount_id(fd: BorrowedFd<'_>) -> Result<u64> {
    let flags = StatxFlags::MNT_ID;
    match rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, flags) {
        Ok(stat) if stat.stx_mask & flags.bits() != 0 => Ok(stat.stx_mnt_id),
        Ok(_) | Err(Errno::NOSYS) => Ok(rustix::fs::fstat(fd)?.st_dev),
        Err(error) => Err(error),
    }
}

/// Returns a mount number never reused before a restart (statx(2), Linux 6.8), or the mount's id on older kernels.
pub(crate) fn mount_identity(fd: BorrowedFd<'_>) -> Result<u64> {
    /// STATX_MNT_ID_UNIQUE of linux/stat.h.
    const UNIQUE: u32 = 0x4000;
    match rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::from_bits_retain(UNIQUE)) {
        Ok(stat) if stat.stx_mask & UNIQUE != 0 => Ok(stat.stx_mnt_id),
        _ => mount_id(fd),
    }
}

pub(crate) fn is_mount_point(directory: BorrowedFd<'_>) -> Result<bool> {
    let stat = rustix::fs::statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    if stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) {
        return Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    let parent = crate::sys::open_at(directory, c"..", OFlags::PATH)?;
    Ok(mount_id(parent.as_fd())? != mount_id(directory)?)
}

pub(crate) fn real_path(directory: BorrowedFd<'_>) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let target = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

pub(crate) fn mount_point(directory: BorrowedFd<'_>) -> Option<PathBuf> {
    line_of(directory).map(|line| line.point)
}

/// Returns whether `inner` is in `outer` by another mount (a bind mount of a part), so that going up never meets
/// `outer`. Compares paths on the file system itself, from the mount table.
pub(crate) fn is_inside_by_another_mount(inner: BorrowedFd<'_>, outer: BorrowedFd<'_>) -> bool {
    // Nearly always one mount: nothing to read then.
    let same_mount = matches!((mount_id(inner), mount_id(outer)), (Ok(a), Ok(b)) if a == b);
    if same_mount {
        return false;
    }
    match (path_on_device(inner), path_on_device(outer)) {
        (Some((device, inner)), Some((other, outer))) => device == other && inner.starts_with(outer),
        _ => false,
    }
}

fn path_on_device(directory: BorrowedFd<'_>) -> Option<(Vec<u8>, PathBuf)> {
    let line = own_line(directory)?;
    let path = real_path(directory).ok()?;
    Some((line.device, line.root.join(path.strip_prefix(&line.point).ok()?)))
}

/// Returns the mount points below an open directory, without itself (/proc/self/mountinfo, proc(5)).
pub(crate) fn mounts_below(directory: BorrowedFd<'_>) -> Result<Vec<PathBuf>> {
    let root = real_path(directory)?;
    let mut below: Vec<PathBuf> = mount_lines()?
        .into_iter()
        .map(|line| line.point)
        .filter(|point| point != &root && point.starts_with(&root))
        .collect();
    below.sort();
    Ok(below)
}

/// Returns the file system's name as in /proc/self/mountinfo ("ext4"), else its magic number.
pub(crate) fn file_system_name(directory: BorrowedFd<'_>) -> String {
    line_of(directory).map(|line| line.file_system).unwrap_or_else(|| match magic(directory) {
        Ok(magic) => format!("magic {magic:#x}"),
        Err(_) => "unknown".into(),
    })
}

/// Returns the line of an open directory's mount, else the line with the longest prefix of its path.
fn line_of(directory: BorrowedFd<'_>) -> Option<MountLine> {
    mount_id(directory).ok()?;
    own_line(directory).or_else(|| {
        let path = real_path(directory).ok()?;
        let above = mount_lines().ok()?.into_iter().filter(|line| path.starts_with(&line.point));
        above.max_by_key(|line| line.point.as_os_str().len())
    })
}

fn own_line(directory: BorrowedFd<'_>) -> Option<MountLine> {
    let id = mount_id(directory).ok()?;
    mount_lines().ok()?.into_iter().find(|line| line.id == id)
}

pub(crate) fn mount_options(directory: BorrowedFd<'_>) -> String {
    line_of(directory).map(|line| line.options).unwrap_or_default()
}

struct MountLine {
    id: u64,
    /// Major and minor number.
    device: Vec<u8>,
    /// The mounted part of the file system.
    root: PathBuf,
    point: PathBuf,
    file_system: String,
    /// The options of the mount, then of the file system.
    options: String,
}

fn mount_lines() -> Result<Vec<MountLine>> {
    let file = crate::sys::open_at(CWD, c"/proc/self/mountinfo", OFlags::RDONLY)?;
    let text = crate::sys::read(file, u64::MAX)?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse_line).collect())
}

/// Parses a line like `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw`; blanks are octal escapes.
fn parse_line(line: &[u8]) -> Option<MountLine> {
    let mut fields = line.split(|&byte| byte == b' ');
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device = fields.nth(1)?.to_vec();
    let root = unescape(fields.next()?);
    let point = unescape(fields.next()?);
    let options = fields.next()?;
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let file_system = fields.next()?;
    let of_file_system = fields.nth(1).unwrap_or_default();
    let text = |bytes| String::from_utf8_lossy(bytes);
    Some(MountLine {
        id,
        device,
        root,
        point,
        file_system: text(file_system).into_owned(),
        options: format!("{};{}", text(options), text(of_file_system)),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_mountinfo_line_is_understood() {
        let line = parse_line(b"36 35 98:0 / /mnt/a\\040b rw shared:1 master:2 - ext4 /dev/root rw").unwrap();
        assert_eq!((line.id, line.file_system.as_str()), (36, "ext4"));
        assert_eq!(line.point, Path::new("/mnt/a b"));
        assert_eq!(line.options, "rw;rw");
    }

    #[test]
    fn the_root_is_a_mount_point_and_a_new_directory_is_not() {
        let root = crate::sys::open_at(CWD, c"/", OFlags::PATH).unwrap();
        assert!(is_mount_point(root.as_fd()).unwrap());
        let directory = tempfile::tempdir().unwrap();
        let fd = crate::sys::open_at(CWD, directory.path(), OFlags::PATH).unwrap();
        assert!(!is_mount_point(fd.as_fd()).unwrap());
    }
}
