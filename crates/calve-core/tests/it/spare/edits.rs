//! Random edits of every kind, and claims in between: each spare equals the source when handed over.

use std::collections::HashMap;
use std::ffi::CString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use calve_core::Strategy;
use calve_testkit::{SplitMix64, few_rounds, node_modules_like, require_program, rounds};
use fs_err as fs;

use super::{DISKS, SpareFixture};
use crate::script::{Script, python};

/// A program that keeps every file mapped that it has ever written to, and writes through the mapping.
const MAPPER: &str = "\
import mmap, os, sys
maps = {}
for line in sys.stdin.buffer:
    path, at, value = line.rstrip(b'\\n').rsplit(b' ', 2)
    fd = os.open(path, os.O_RDWR)
    inode = os.fstat(fd).st_ino
    if inode not in maps:
        maps[inode] = mmap.mmap(fd, 0)
    os.close(fd)
    maps[inode][int(at) % len(maps[inode])] = int(value)
    sys.stdout.write('written\\n')
    sys.stdout.flush()
";

/// The kinds of edits that remove no name.
pub(crate) const IN_PLACE: [u64; 12] = [0, 2, 3, 4, 5, 6, 8, 9, 13, 14, 16, 18];

/// The source's entries now.
#[derive(Default)]
struct Inventory {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

fn inventory(root: &Path) -> Inventory {
    let mut found = Inventory { directories: vec![root.to_path_buf()], ..Inventory::default() };
    let mut next = 0;
    while next < found.directories.len() {
        for entry in fs::read_dir(&found.directories[next]).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                found.directories.push(path);
            } else if kind.is_file() {
                found.files.push(path);
            } else {
                found.others.push(path);
            }
        }
        next += 1;
    }
    found
}

pub(crate) struct Editor {
    root: PathBuf,
    pub(crate) random: SplitMix64,
    mapper: Script,
    /// The kinds of edits; `None` for all.
    pub(crate) only: Option<&'static [u64]>,
    next_name: u64,
    pub(crate) kinds: HashMap<&'static str, u32>,
}

impl Editor {
    pub(crate) fn of(root: PathBuf, seed: u64) -> Self {
        let (random, mapper) = (SplitMix64::new(seed), Script::start(&mut python(MAPPER)));
        Self { root, random, mapper, only: None, next_name: 0, kinds: HashMap::new() }
    }

    /// Stores a byte through a mapping.
    fn store(&mut self, path: &Path, at: u64, value: u8) {
        self.mapper.tell(&[path.as_os_str().as_bytes(), format!(" {at} {value}").as_bytes()].concat());
        self.mapper.wait_for("written");
    }

    fn name(&mut self) -> String {
        self.next_name += 1;
        format!("new-{}", self.next_name)
    }

    fn kind(&mut self) -> u64 {
        match self.only {
            Some(kinds) => *self.random.pick(kinds),
            None => self.random.below(20),
        }
    }

    /// One edit of a random kind.
    pub(crate) fn edit(&mut self) {
        let found = inventory(&self.root);
        let file = self.random.pick(&found.files).clone();
        let directory = self.random.pick(&found.directories).clone();
        let inner: Vec<&PathBuf> = found.directories.iter().filter(|path| **path != self.root).collect();
        let below = self.random.pick(&inner).to_path_buf();
        let name = self.name();
        let kind = match self.kind() {
            0 => {
                set_mtime_back(&file, |file| overwrite(file, &mut self.random));
                "same size, mtime set back"
            }
            1 => {
                let new = directory.join(&name);
                fs::write(&new, self.random.bytes(3000)).unwrap();
                fs::rename(&new, &file).unwrap();
                "rename over"
            }
            2 => {
                fs::hard_link(&file, directory.join(&name)).unwrap();
                "hard link"
            }
            3 => {
                let mode = fs::metadata(&file).unwrap().permissions().mode() ^ 0o110;
                fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                "mode of a file"
            }
            4 => {
                let mode = fs::metadata(&below).unwrap().permissions().mode() ^ 0o011;
                fs::set_permissions(&below, std::fs::Permissions::from_mode(mode)).unwrap();
                "mode of a directory"
            }
            5 => {
                set_xattr(if self.random.below(2) == 0 { &file } else { &below }, Some(&self.random.bytes(9)));
                "xattr"
            }
            6 => {
                set_xattr(&file, None);
                set_xattr(&below, None);
                "xattr removed"
            }
            7 => {
                self.swap(&inner);
                "directories swapped"
            }
            8 | 9 => {
                if fs::metadata(&file).unwrap().len() > 0 {
                    let (at, value) = (self.random.below(100_000), self.random.below(256) as u8);
                    self.store(&file, at, value);
                }
                "mapped store"
            }
            kind @ 10..=18 => self.edit_names(kind, &found, &file, &directory, &below),
            _ => {
                set_owner(&file, 7);
                "owner"
            }
        };
        *self.kinds.entry(kind).or_default() += 1;
    }

    /// An edit after which there are other names, or files of another kind.
    fn edit_names(
        &mut self,
        kind: u64,
        found: &Inventory,
        file: &PathBuf,
        directory: &Path,
        below: &Path,
    ) -> &'static str {
        let name = self.name();
        match kind {
            10 => {
                fs::remove_file(file).unwrap();
                fs::create_dir(file).unwrap();
                fs::write(file.join(&name), "inside").unwrap();
                "file to directory"
            }
            11 => {
                fs::remove_dir_all(below).unwrap();
                fs::write(below, "a file now").unwrap();
                "directory to file"
            }
            12 => {
                fs::remove_file(file).unwrap();
                "deletion"
            }
            13 => {
                node_modules_like(directory.join(&name), 12);
                "new tree"
            }
            14 => {
                fs_err::os::unix::fs::symlink(&name, directory.join(&name)).unwrap();
                "new symlink"
            }
            15 => {
                if let Some(link) = found.others.first() {
                    fs::remove_file(link).unwrap();
                    fs_err::os::unix::fs::symlink("elsewhere", link).unwrap();
                }
                "symlink changed"
            }
            16 => {
                let mut opened = fs::OpenOptions::new().append(true).open(file).unwrap();
                opened.write_all(b"more").unwrap();
                "appended"
            }
            17 => {
                let other = self.random.pick(&found.files).clone();
                if *file != other {
                    fs::rename(file, &other).unwrap();
                }
                "file renamed over another"
            }
            _ => {
                fs::write(directory.join(&name), self.random.bytes(20)).unwrap();
                "new file"
            }
        }
    }

    /// Exchanges two directories of which neither contains the other.
    fn swap(&mut self, inner: &[&PathBuf]) {
        let (one, other) = (self.random.pick(inner).to_path_buf(), self.random.pick(inner).to_path_buf());
        if one.starts_with(&other) || other.starts_with(&one) {
            return;
        }
        let away = self.root.join("away");
        fs::rename(&one, &away).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(&away, &other).unwrap();
    }
}

fn overwrite(file: &Path, random: &mut SplitMix64) {
    let length = fs::metadata(file).unwrap().len() as usize;
    let opened = fs::OpenOptions::new().write(true).open(file).unwrap();
    std::os::unix::fs::FileExt::write_all_at(opened.file(), &random.bytes(length.min(64)), 0).unwrap();
}

/// Does something to a file, and then sets its times as they were.
fn set_mtime_back(file: &Path, change: impl FnOnce(&Path)) {
    let before = fs::metadata(file).unwrap();
    change(file);
    let times = std::fs::FileTimes::new().set_modified(before.modified().unwrap());
    fs::OpenOptions::new().write(true).open(file).unwrap().file().set_times(times).unwrap();
    assert_eq!(fs::metadata(file).unwrap().mtime_nsec(), before.mtime_nsec());
}

fn set_xattr(path: &Path, value: Option<&[u8]>) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    match value {
        Some(value) => {
            rustix::fs::setxattr(&*path, c"user.edit", value, rustix::fs::XattrFlags::empty()).unwrap();
        }
        None => {
            let _ = rustix::fs::removexattr(&*path, c"user.edit");
        }
    }
}

fn set_owner(path: &Path, group: u32) {
    // Who is not root may not; then it is no edit.
    let _ = std::os::unix::fs::lchown(path, None, Some(group));
}

/// Returns how many edits a tree on each of [`DISKS`] gets.
pub(crate) fn edits() -> usize {
    rounds(400 / DISKS.len())
}

#[test]
fn no_spare_differs_after_random_edits() {
    if !require_program("python3") {
        return;
    }
    for file_system in DISKS {
        let Some(fixture) = SpareFixture::new(file_system) else { return };
        node_modules_like(fixture.src(), 300);
        let mut editor = Editor::of(fixture.src(), 7);
        fixture.add(1);
        let (mut done, mut round, mut handed_over, mut updated) = (0, 0, 0, 0);
        while done < edits() {
            for _ in 0..editor.random.below(12) {
                editor.edit();
                done += 1;
            }
            round += 1;
            let name = format!("clone-{round}");
            // Fails if anything differs.
            let report = fixture.clone(&name);
            handed_over += u64::from(report.strategy == Strategy::Spare);
            updated += report.spare.map_or(0, |spare| spare.entries_updated);
            fs::remove_dir_all(fixture.path("place").join(&name)).unwrap();
            // Sometimes there is trouble right before the next one is built, and right after.
            editor.edit();
            let report = fixture.spares.refill(&super::foreground()).unwrap();
            assert!(report.failures.is_empty(), "{:?}", report.failures);
            editor.edit();
            done += 2;
        }
        if !few_rounds() {
            assert!(handed_over * 2 > round, "{handed_over} of {round} were spares");
            assert!(updated > 0 && editor.kinds.len() == 19, "{:?}", editor.kinds);
        }
    }
}
