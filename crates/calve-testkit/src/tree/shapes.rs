//! Trees that are large in one way: many files, one huge directory, great depth.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use fs_err::os::unix::fs::symlink;
use rustix::fs::{Mode, OFlags};

use crate::cursor::Cursor;
use crate::must::{must, run};
use crate::prng::SplitMix64;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    pub files: u64,
    /// Without the root.
    pub directories: u64,
    pub symlinks: u64,
    /// Total size of the files.
    pub bytes: u64,
}

/// Makes a tree like a `node_modules`, the same each time: about ten files in a directory, three directories and a
/// symlink in `.bin` for each package. Most files are below 4 KiB, none above 64 KiB, the average is about 7 KiB.
pub fn node_modules_like(dir: impl AsRef<Path>, files: u64) -> Shape {
    const IN_A_DIRECTORY: u64 = 10;
    const IN_A_PACKAGE: u64 = 30;
    let dir = dir.as_ref();
    let mut random = SplitMix64::new(files);
    // Pieces of one page of text, each headed by the file's number, serve as well as texts and are much faster.
    let text: Vec<u8> = random.bytes(128 * 1024).iter().map(|byte| b' ' + byte % 95).collect();
    let mut shape = Shape::default();
    let bin = dir.join(".bin");
    must(fs::create_dir_all(&bin), "create", &bin);
    shape.directories += 1;
    let mut current = PathBuf::new();
    for number in 0..files {
        let package = number / IN_A_PACKAGE;
        if number % IN_A_PACKAGE == 0 {
            let link = bin.join(format!("run-{package}"));
            must(symlink(format!("../package-{package}/module-0.js"), &link), "link", &link);
            shape.symlinks += 1;
        }
        if number % IN_A_DIRECTORY == 0 {
            let inside = ["", "lib", "lib/parts"][(number % IN_A_PACKAGE / IN_A_DIRECTORY) as usize];
            current = dir.join(format!("package-{package}")).join(inside);
            must(fs::create_dir(&current), "create", &current);
            shape.directories += 1;
        }
        let size = file_size(&mut random);
        let start = random.below(64 * 1024) as usize;
        let mut bytes = format!("// {number}\n").into_bytes();
        bytes.extend_from_slice(&text[start..start + size]);
        bytes.truncate(size);
        let path = current.join(format!("module-{}.js", number % IN_A_PACKAGE));
        must(fs::write(&path, &bytes), "write", &path);
        if number % IN_A_PACKAGE == 0 {
            must(rustix::fs::chmod(&path, Mode::from_raw_mode(0o755)), "chmod", &path);
        }
        shape.files += 1;
        shape.bytes += size as u64;
    }
    shape
}

fn file_size(random: &mut SplitMix64) -> usize {
    let (from, to) = match random.below(100) {
        0..=1 => (0, 1),
        2..=44 => (64, 1024),
        45..=74 => (1024, 4096),
        75..=90 => (4096, 16 * 1024),
        91..=97 => (16 * 1024, 40 * 1024),
        _ => (40 * 1024, 64 * 1024),
    };
    (from + random.below(to - from)) as usize
}

pub fn wide(dir: impl AsRef<Path>, entries: u64) -> Shape {
    let dir = dir.as_ref();
    must(fs::create_dir_all(dir), "create", dir);
    let mut shape = Shape { files: entries, ..Shape::default() };
    for number in 0..entries {
        let path = dir.join(format!("entry-{number:07}"));
        let text = format!("{number}");
        must(fs::write(&path, &text), "write", &path);
        shape.bytes += text.len() as u64;
    }
    shape
}

/// Makes a chain of `levels` directories with names of 100 bytes, and a small file at every hundredth level and at the
/// end. From 41 levels on no path reaches the end: walk it by descriptors, and remove it with [`remove_deep`].
pub fn deep(dir: impl AsRef<Path>, levels: u64) -> Shape {
    let dir = dir.as_ref();
    must(fs::create_dir_all(dir), "create", dir);
    let mut cursor = Cursor::open(dir);
    let mut shape = Shape::default();
    for level in 1..=levels {
        let name = format!("level-{level:05}-{}", "d".repeat(88));
        let made = rustix::fs::mkdirat(cursor.fd(), name.as_str(), Mode::from_raw_mode(0o755));
        must(made, "create", Path::new(&name));
        must(cursor.enter(OsStr::new(&name)), "enter", Path::new(&name));
        shape.directories += 1;
        if level % 100 == 0 || level == levels {
            shape.bytes += note(&cursor, level);
            shape.files += 1;
        }
    }
    shape
}

fn note(cursor: &Cursor, level: u64) -> u64 {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let name = Path::new("note");
    let file = must(rustix::fs::openat(cursor.fd(), name, flags, Mode::from_raw_mode(0o644)), "create", name);
    let text = format!("level {level}");
    must(rustix::io::write(&file, text.as_bytes()), "write", name) as u64
}

/// Removes a tree of any depth with rm(1), because `remove_dir_all` needs a descriptor for each level.
pub fn remove_deep(dir: impl AsRef<Path>) {
    run(Command::new("rm").args(["-r", "--"]).arg(dir.as_ref()));
}
