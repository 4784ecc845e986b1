use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fs_err as fs;
use rustix::fs::{FileType, XattrFlags};
use rustix::io::{Errno, Result};

use super::{Capability, Tree};
use crate::must::must;
use crate::skip::{find_program, is_root};

const MIB: u64 = 1 << 20;
/// APFS and HFS+ refuse file names, and macOS refuses xattr names, that are not UTF-8.
const HAS_ANY_NAMES: bool = cfg!(not(target_os = "macos"));

/// Builds a tree at `dir` with everything that a clone must preserve: names that are not UTF-8, empty files and
/// directories, modes up to set-user-ID, read-only directories, holes at the start, in the middle and at the end, hard
/// links across directories, symlinks of all sorts, a FIFO, nanosecond times, xattrs and ACLs, and for root also
/// owners, devices, capabilities and `trusted.` attributes. It has no sockets.
///
/// Returns one line for each feature that the file system or the user rules out, with the reason; empty for root on
/// ext4, XFS, btrfs and tmpfs, and on the file systems of macOS.
pub fn everything(dir: impl AsRef<Path>) -> Vec<String> {
    let mut left_out = Vec::new();
    let mut tree = links(sparse_files(names(Tree::new(dir.as_ref()))));
    tree = tree.fifo("special/fifo").mode("special/fifo", 0o620);
    match is_root() {
        true => tree = privileged(tree),
        false => left_out.push("owners and devices: not root".to_owned()),
    }
    match refused(tree.path(), |path| rustix::fs::lsetxattr(path, "user.probe", b"1", XattrFlags::empty())) {
        None => tree = xattrs(tree),
        Some(reason) => left_out.push(format!("xattrs: {reason}")),
    }
    match refused_acl(tree.path()) {
        _ if cfg!(target_os = "macos") => {}
        None => tree = acls(tree),
        Some(reason) => left_out.push(format!("ACLs: {reason}")),
    }
    times(modes(tree));
    left_out
}

fn names(mut tree: Tree) -> Tree {
    let longest = "n".repeat(255);
    if HAS_ANY_NAMES {
        tree = tree
            .file(OsStr::from_bytes(b"names/caf\xe9 in latin-1"), b"not UTF-8")
            .file(OsStr::from_bytes(b"names/\xff\xfe/\x80"), b"nothing of it UTF-8")
            .symlink("links/not UTF-8", OsStr::from_bytes(b"\xc3\x28"));
    }
    tree.file("names/new\nline and\ttab", b"1")
        .file("names/-rf", b"2")
        .file("names/back\\slash 'quote' \"quotes\" $HOME *", b"3")
        .file("names/.hidden/.git", b"gitdir: elsewhere\n")
        .file("names/...", b"4")
        .file("names/ü composed", b"5")
        .file("names/u\u{308} decomposed", b"6")
        .file(Path::new("names").join(longest), b"7")
        .dir("empty/directory/in/directories")
        .file("empty/file", b"")
        .file("plain/one byte", b"1")
        .file("plain/4096 bytes", vec![b'x'; 4096])
        .file("plain/4097 bytes", vec![b'y'; 4097])
        .file("plain/some extents", (0..MIB).map(|index| (index % 251) as u8).collect::<Vec<_>>())
}

fn sparse_files(tree: Tree) -> Tree {
    let data = vec![b'd'; 128 * 1024];
    tree.sparse("sparse/only a hole", 8 * MIB, &[])
        .sparse("sparse/hole at the start", 4 * MIB, &[(4 * MIB - 131_072, &data)])
        .sparse("sparse/hole in the middle", 4 * MIB, &[(0, &data), (4 * MIB - 131_072, &data)])
        .sparse("sparse/hole at the end", 4 * MIB + 1, &[(0, &data)])
        .sparse("sparse/islands", 16 * MIB + 77, &[(MIB, b"a"), (5 * MIB + 3, b"bc"), (16 * MIB + 76, b"z")])
}

fn links(tree: Tree) -> Tree {
    tree.file("links/a/first name", b"three names")
        .hard_link("links/b/second name", "links/a/first name")
        .hard_link("links/z", "links/a/first name")
        .file("links/other", b"three names")
        .hard_link("links/same contents, another file", "links/other")
        .symlink("links/relative", "a/first name")
        .symlink("links/up and down", "../links/./a/../z")
        .symlink("links/absolute", "/etc/passwd")
        .symlink("links/dangling", "nowhere")
        .symlink("links/to a directory", "b")
        .symlink("links/to itself", "to itself")
        .symlink("links/long", "l/".repeat(500))
        .hard_link("links/second name of a symlink", "links/dangling")
}

fn privileged(tree: Tree) -> Tree {
    tree.file("owned/by somebody", b"1")
        .owner("owned/by somebody", 12345, 23456)
        .file("owned/by a group", b"2")
        .owner("owned/by a group", 0, 23456)
        .dir("owned/directory")
        .owner("owned/directory", 12345, 12345)
        .symlink("owned/symlink", "by somebody")
        .owner("owned/symlink", 12345, 23456)
        .file("owned/and set-user-ID", b"3")
        .owner("owned/and set-user-ID", 12345, 23456)
        .mode("owned/and set-user-ID", 0o6751)
        .fifo("owned/fifo")
        .owner("owned/fifo", 12345, 23456)
        .file("owned/unreadable", b"not for everybody")
        .mode("owned/unreadable", 0o000)
        .device("special/like dev-null", FileType::CharacterDevice, 1, 3)
        .device("special/block", FileType::BlockDevice, 7, 200)
        .mode("special/block", 0o660)
}

fn xattrs(mut tree: Tree) -> Tree {
    tree = tree
        .file("xattrs/a hundred", b"1")
        .file("xattrs/binary and empty", b"2")
        .xattr("xattrs/binary and empty", "user.binary", b"\x00\xff\n\x00")
        .xattr("xattrs/binary and empty", "user.empty", b"")
        .dir("xattrs/directory")
        .xattr("xattrs/directory", "user.on a directory", b"yes")
        .file("xattrs/read-only", b"3")
        .xattr("xattrs/read-only", "user.kept", b"although it cannot be written")
        .mode("xattrs/read-only", 0o444);
    if HAS_ANY_NAMES {
        tree = tree.xattr("xattrs/binary and empty", OsStr::from_bytes(b"user.caf\xe9"), b"1");
    }
    for index in 0..100 {
        // Short values, because ext4 keeps all xattrs of a file in one block of 4 KiB.
        tree = tree.xattr("xattrs/a hundred", format!("user.n{index:02}"), format!("value {index:02}"));
    }
    if is_root() {
        tree = tree
            .xattr("xattrs/a hundred", "trusted.calve", b"root only")
            .symlink("xattrs/symlink", "a hundred")
            .xattr("xattrs/symlink", "trusted.calve", b"on the link")
            .file("xattrs/capable", b"#!/bin/true\n")
            .owner("xattrs/capable", 12345, 12345)
            .mode("xattrs/capable", 0o755)
            .capability("xattrs/capable", Capability::NetBindService)
            .file("xattrs/capable of root's", b"")
            .capability("xattrs/capable of root's", Capability::NetRaw);
    }
    tree
}

fn acls(tree: Tree) -> Tree {
    tree.file("acls/file", b"1")
        .mode("acls/file", 0o640)
        .acl("acls/file", "u:12345:rwx,g:23456:r--")
        // Older than the default ACL: a clone that makes it later inherits an ACL that it must not have.
        .file("acls/inheriting/older than the default", b"2")
        .mode("acls/inheriting/older than the default", 0o600)
        .dir("acls/inheriting/older directory")
        .acl("acls/inheriting", "u:23456:rx,d:u:12345:rwx,d:o::---")
        .file("acls/inheriting/younger", b"3")
        .dir("acls/inheriting/younger directory")
}

fn modes(mut tree: Tree) -> Tree {
    for mode in [0o400, 0o440, 0o444, 0o600, 0o640, 0o666, 0o700, 0o755, 0o777, 0o1644, 0o2755, 0o4755, 0o6711, 0o7777]
    {
        let path = format!("modes/{mode:04o}");
        tree = tree.file(&path, format!("mode {mode:04o}")).mode(&path, mode);
    }
    for mode in [0o500, 0o555, 0o700, 0o711, 0o1777, 0o2775, 0o3777] {
        let path = format!("modes/directory {mode:04o}");
        tree = tree.file(format!("{path}/inside"), b"1").dir(format!("{path}/deeper")).mode(&path, mode);
    }
    tree.dir("modes/read-only/all/the/way")
        .file("modes/read-only/all/the/way/down", b"1")
        .mode("modes/read-only/all/the/way", 0o555)
        .mode("modes/read-only/all/the", 0o555)
        .mode("modes/read-only/all", 0o555)
        .mode("modes/read-only", 0o555)
}

fn times(tree: Tree) -> Tree {
    tree.file("times/nanoseconds", b"1")
        .mtime("times/nanoseconds", 1_234_567_890, 123_456_789)
        .file("times/the end of a second", b"2")
        .mtime("times/the end of a second", 1_600_000_000, 999_999_999)
        .file("times/epoch", b"3")
        .mtime("times/epoch", 0, 0)
        .file("times/before the epoch", b"4")
        .mtime("times/before the epoch", -1, 5)
        .file("times/after 2038", b"5")
        .mtime("times/after 2038", 4_000_000_000, 1)
        .file("times/directory/younger than it", b"6")
        .mtime("times/directory", 999_999_999, 7)
        .symlink("times/symlink", "nanoseconds")
        .mtime("times/symlink", 1_111_111_111, 11)
        .fifo("times/fifo")
        .mtime("times/fifo", 1_111_111_112, 12)
        .mtime("modes/read-only/all/the", 1_000_000_000, 1)
        .mtime("modes/read-only", 1_000_000_001, 2)
        .mtime("links/z", 1_000_000_002, 3)
        .mtime("empty", 1_000_000_003, 4)
        .mtime("times", 1_000_000_004, 5)
        .mtime("", 1_000_000_005, 6)
}

/// Makes a call on a new file in `dir`, and returns the error.
fn refused(dir: &Path, call: impl Fn(&Path) -> Result<()>) -> Option<Errno> {
    let path = dir.join("probe for xattrs");
    must(fs::write(&path, b""), "write", &path);
    let refused = call(&path).err();
    must(fs::remove_file(&path), "remove", &path);
    refused
}

fn refused_acl(dir: &Path) -> Option<String> {
    if find_program("setfacl").is_none() {
        return Some("the program `setfacl` is not installed".to_owned());
    }
    // Reading proves support as well as setting does, and needs no valid value.
    let read = |path: &Path| rustix::fs::getxattr(path, "system.posix_acl_access", &mut [0; 256][..]).map(drop);
    refused(dir, read).filter(|error| *error != Errno::NODATA).map(|error| error.to_string())
}
