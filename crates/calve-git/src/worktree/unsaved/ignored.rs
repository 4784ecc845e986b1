//! Finds ignored files that neither the main worktree nor the worktree that this one was cloned from has.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io::{ErrorKind, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::is_trash;

use crate::environment::is_own_env_file;
use crate::paths::{path_of, plain, pointer_in};
use crate::unsaved_item::{IgnoredFile, UnsavedItem};
use crate::worktree::add::ignored::rules;
use crate::worktree::status::UntrackedEntry;

/// A worktree that may have the same files.
pub(super) struct Donor {
    pub(super) root: PathBuf,
    /// When files had been cloned from it, in seconds and nanoseconds. `None`: none were.
    pub(super) cloned: Option<(i64, i64)>,
}

pub(super) struct IgnoredSearch<'w> {
    root: &'w Path,
    donors: Vec<Donor>,
    /// Directories of donors, and whether they exist without a link on the way.
    is_real: HashMap<PathBuf, bool>,
    found: Vec<IgnoredFile>,
    /// Unreadable paths, with the reason.
    unread: BTreeMap<PathBuf, String>,
    /// Ends long comparisons. The caller discards what is found then.
    cancel: &'w CancelToken,
}

/// Names that both tools and people use, with marks inside or beside the directory that show that a tool made it.
const PLAIN_NAMES: &[(&str, &[&str], &[&str])] = &[
    ("bin", &[], BUILT_BESIDE),
    ("build", &[], BUILT_BESIDE),
    ("coverage", &["lcov.info", "coverage-final.json", "clover.xml"], &[]),
    ("dist", &[], &["package.json", "pyproject.toml", "setup.py"]),
    ("obj", &["project.assets.json"], &[]),
    ("out", &[], BUILT_BESIDE),
    ("target", &[], &["Cargo.toml", "pom.xml", "build.sbt"]),
    ("vendor", &["autoload.php", "modules.txt"], &["composer.json", "go.mod", "Gemfile", "Cargo.toml"]),
];

const BUILT_BESIDE: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "next.config.js",
    "next.config.mjs",
    "next.config.ts",
    "pubspec.yaml",
    "setup.py",
];

/// Entries that tools leave in build directories of any name.
const BUILT_INSIDE: &[&str] = &["CACHEDIR.TAG", "CMakeCache.txt", "build.ninja", "meson-info"];

impl<'w> IgnoredSearch<'w> {
    /// No path may have links in it.
    pub(super) fn new(root: &'w Path, donors: Vec<Donor>, cancel: &'w CancelToken) -> Self {
        Self { root, donors, is_real: HashMap::new(), found: Vec::new(), unread: BTreeMap::new(), cancel }
    }

    pub(super) fn add_all(&mut self, entries: &[UntrackedEntry], below: &Path) {
        for entry in entries {
            let path = below.join(&entry.path);
            // git lists the ignored entries of a directory that is not ignored as a whole.
            let mut above = path.ancestors();
            if !above.any(|above| self.is_made_again(above, above != path || entry.is_directory, above == path)) {
                self.add(path);
            }
        }
    }

    /// Adds a directory that cannot be listed: its contents, ignored or not, are unknown.
    pub(super) fn add_unread(&mut self, path: PathBuf, reason: &str) {
        if !path.ancestors().any(|above| self.is_made_again(above, true, false)) {
            self.unread.insert(path, reason.to_owned());
        }
    }

    pub(super) fn unread(&self) -> Vec<UnsavedItem> {
        let items = self.unread.iter();
        items.map(|(path, reason)| UnsavedItem::Unreadable(reason.clone()).inside(path)).collect()
    }

    pub(super) fn found(mut self) -> Vec<IgnoredFile> {
        self.found.sort();
        let others: Vec<PathBuf> = self.found.iter().flat_map(|file| belonging_to(&file.path)).collect();
        for path in others {
            let found = fs_err::symlink_metadata(self.root.join(&path));
            if let Some(found) = found.ok().filter(Metadata::is_file) {
                self.found.push(IgnoredFile { path, bytes: found.len() });
            }
        }
        self.found.sort();
        self.found.dedup();
        self.found
    }

    /// Returns whether an entry is a dependency or a build output. A directory whose name people also use counts only if git ignores all of
    /// it and a donor has it too, or if a tool left its mark inside or has its configuration beside it.
    fn is_made_again(&mut self, path: &Path, is_directory: bool, is_whole: bool) -> bool {
        if !rules::is_made_again(path, is_directory) {
            return false;
        }
        let plain = PLAIN_NAMES.iter().find(|(name, ..)| path.file_name() == Some(name.as_ref()));
        let Some((_, marks_inside, marks_beside)) = plain.filter(|_| is_directory) else { return true };
        let (there, beside) = (self.root.join(path), path.parent().map(|above| self.root.join(above)));
        let has = |directory: &Path, names: &[&str]| {
            names.iter().any(|name| fs_err::symlink_metadata(directory.join(name)).is_ok())
        };
        (is_whole && (0..self.donors.len()).any(|donor| self.is_really_in(donor, path)))
            || has(&there, BUILT_INSIDE)
            || has(&there, marks_inside)
            || beside.is_some_and(|beside| has(&beside, marks_beside))
    }

    fn add(&mut self, path: PathBuf) {
        if let Err(error) = self.looked_at(&path)
            && error.kind() != ErrorKind::NotFound
        {
            self.unread.entry(path).or_insert_with(|| error.to_string());
        }
    }

    fn looked_at(&mut self, path: &Path) -> std::io::Result<()> {
        let there = self.root.join(path);
        let found = fs_err::symlink_metadata(&there)?;
        if found.is_dir() {
            return self.add_directory(path, &there);
        }
        let is_kept = (!found.is_file() && !found.is_symlink())
            || is_own_env_file(self.root, path)
            || (0..self.donors.len()).any(|donor| self.has_same(donor, path, &there, &found));
        if !is_kept {
            self.found.push(IgnoredFile { path: path.to_path_buf(), bytes: found.len() });
        }
        Ok(())
    }

    fn add_directory(&mut self, path: &Path, there: &Path) -> std::io::Result<()> {
        // A repository of its own has a list of its own.
        if is_repository(there) {
            return Ok(());
        }
        for entry in fs_err::read_dir(there)? {
            let entry = entry?;
            let (name, path) = (entry.file_name(), path.join(entry.file_name()));
            let is_directory = entry.file_type()?.is_dir();
            let is_trash = is_directory && is_trash(name.as_encoded_bytes());
            if !is_trash && !self.is_made_again(&path, is_directory, true) {
                self.add(path);
            }
        }
        Ok(())
    }

    /// Returns whether a donor has the same file. Size and time suffice if neither file has changed since one was cloned from the other.
    fn has_same(&mut self, donor: usize, path: &Path, there: &Path, found: &Metadata) -> bool {
        if !self.is_really_in(donor, path.parent().unwrap_or(Path::new(""))) {
            return false;
        }
        let Donor { root, cloned } = &self.donors[donor];
        let other = root.join(path);
        let Ok(kept) = fs_err::symlink_metadata(&other) else { return false };
        if found.is_symlink() || kept.is_symlink() {
            let (Ok(ours), Ok(theirs)) = (fs_err::read_link(there), fs_err::read_link(&other)) else { return false };
            return ours == theirs || leads_alike((there, &ours, self.root), (&other, &theirs, root));
        }
        // A program can set any other time.
        let is_older = |file: &Metadata| {
            cloned.is_some_and(|cloned| match file.ctime_nsec() {
                // On some file systems a time stands for its whole second.
                0 => file.ctime() < cloned.0,
                nanoseconds => (file.ctime(), nanoseconds) < cloned,
            })
        };
        let modified = |file: &Metadata| (file.mtime(), file.mtime_nsec());
        let is_unchanged = is_older(found) && is_older(&kept) && modified(found) == modified(&kept);
        kept.is_file()
            && kept.len() == found.len()
            && (is_unchanged || have_same_contents(there, &other, self.cancel).unwrap_or(false))
    }

    /// Returns whether a donor really has a directory: a link could lead back to the worktree that goes.
    fn is_really_in(&mut self, donor: usize, directory: &Path) -> bool {
        let is_real = |at: &PathBuf| at.is_dir() && fs_err::canonicalize(at).is_ok_and(|real| real == *at);
        *self.is_real.entry(self.donors[donor].root.join(directory)).or_insert_with_key(is_real)
    }
}

/// Returns whether a directory has a repository's `.git`, or is a repository.
pub(super) fn is_repository(directory: &Path) -> bool {
    let is_there = |name: &str| fs_err::metadata(directory.join(name)).is_ok();
    let has_pointer = || pointer_in(&directory.join(".git")).is_some();
    is_there(".git/HEAD") || has_pointer() || is_there("HEAD") && is_there("objects") && is_there("refs")
}

/// Compares where two links (path, target, root) lead, also within their worktrees: adding a worktree redirects links.
fn leads_alike(ours: (&Path, &Path, &Path), theirs: (&Path, &Path, &Path)) -> bool {
    let leads_to = |(link, target, _): (&Path, &Path, &Path)| plain(&link.parent().unwrap_or(link).join(target));
    let (here, there) = (leads_to(ours), leads_to(theirs));
    here == there || here.strip_prefix(ours.2).is_ok_and(|below| there.strip_prefix(theirs.2) == Ok(below))
}

/// Returns the files that are useless without each other: an SQLite database and its journals.
fn belonging_to(path: &Path) -> Vec<PathBuf> {
    const ENDINGS: [&str; 4] = ["-wal", "-journal", "-shm", ""];
    let name = path.as_os_str().as_bytes();
    let base = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending.as_bytes())).unwrap_or(name);
    ENDINGS.iter().map(|ending| path_of(&[base, ending.as_bytes()].concat())).collect()
}

fn have_same_contents(a: &Path, b: &Path, cancel: &CancelToken) -> std::io::Result<bool> {
    let (mut a, mut b) = (fs_err::File::open(a)?, fs_err::File::open(b)?);
    let (mut ours, mut theirs) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = a.read(&mut ours)?;
        b.read_exact(&mut theirs[..length])?;
        if length == 0 || ours[..length] != theirs[..length] || cancel.is_cancelled() {
            return Ok(length == 0);
        }
    }
}
