use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::XattrFlags;

use super::Tree;
use crate::prng::SplitMix64;

/// Builds a random tree of about `entries` entries, reproducible from `seed` (and from the support for xattrs), of all
/// kinds that a user can make, with odd names, modes and times.
pub fn random(dir: impl AsRef<Path>, seed: u64, entries: u64) {
    let mut builder = Builder {
        root: dir.as_ref().to_path_buf(),
        random: SplitMix64::new(seed),
        directories: vec![PathBuf::new()],
        files: Vec::new(),
    };
    for _ in 0..entries {
        builder.step();
    }
    builder.finish();
}

struct Builder {
    root: PathBuf,
    random: SplitMix64,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Builder {
    fn step(&mut self) {
        let path = self.new_path();
        let tree = Tree::new(&self.root);
        match self.random.below(100) {
            0..20 => {
                tree.dir(&path);
                self.directories.push(path);
            }
            20..65 => {
                let size = self.size();
                let bytes = self.random.bytes(size);
                tree.file(&path, bytes);
                self.files.push(path);
            }
            65..73 => {
                let bytes = self.random.bytes(5000);
                let (size, at) = (self.random.below(1 << 22) + 8192, self.random.below(1 << 20));
                tree.sparse(&path, size, &[(at, &bytes)]);
                self.files.push(path);
            }
            73..85 => {
                let target = self.new_path();
                tree.symlink(&path, target);
            }
            85..95 if !self.files.is_empty() => {
                let existing = self.random.pick(&self.files).clone();
                tree.hard_link(&path, existing);
            }
            _ => {
                tree.fifo(&path);
            }
        }
    }

    /// Returns a new path in an existing directory.
    fn new_path(&mut self) -> PathBuf {
        let dir = self.random.pick(&self.directories).clone();
        let number = self.random.next_u64();
        dir.join(self.name(number))
    }

    fn name(&mut self, number: u64) -> OsString {
        // macOS refuses the last four, which are not valid UTF-8 alone.
        const LETTERS: &[u8] = match b"aZ09 .-_'\"\\\n\t*?$\x01\x7f\x80\xc3\xff\xe9" {
            all if cfg!(target_os = "macos") => all.split_at(all.len() - 4).0,
            all => all,
        };
        let len = *self.random.pick(&[1, 2, 5, 10, 100, 230]);
        let mut name: Vec<u8> = (0..len).map(|_| *self.random.pick(LETTERS)).collect();
        // Makes the name unique, and never `.` or `..`.
        name.extend_from_slice(format!("{:x}", number >> 32).as_bytes());
        OsString::from_vec(name)
    }

    fn size(&mut self) -> usize {
        let limit = *self.random.pick(&[1, 2, 100, 4095, 4097, 16_384, 70_000, 300_000]);
        self.random.below(limit) as usize
    }

    /// Sets attributes last, deepest first, so that no later step changes them.
    fn finish(mut self) {
        for path in std::mem::take(&mut self.files) {
            self.attribute(&path, 0o400);
        }
        for path in std::mem::take(&mut self.directories).into_iter().rev() {
            self.attribute(&path, 0o500);
        }
    }

    fn attribute(&mut self, path: &Path, least_mode: u32) {
        let at = self.root.join(path);
        if self.random.below(4) == 0 {
            let len = self.random.below(200) as usize;
            let value = self.random.bytes(len);
            // Ignore an error: the file system may not support xattrs.
            let _ = rustix::fs::lsetxattr(&at, OsStr::new("user.random"), &value, XattrFlags::empty());
        }
        let mode = least_mode | (self.random.next_u64() & 0o7777) as u32;
        let (seconds, nanoseconds) = (self.random.below(4_000_000_000) as i64, self.random.below(1_000_000_000) as u32);
        Tree::new(&self.root).mode(path, mode).mtime(path, seconds, nanoseconds);
    }
}
