//! The tracked files of a new worktree: which are cloned, which git writes, and an index that knows them all.

pub(crate) mod conversion;
pub(crate) mod index;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use calve_core::internal::ShownPath;
use calve_core::internal::json::{As, Text};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use serde::Serialize;
use strum::Display;

use crate::directory::open_directory;
use crate::error::{Error, Result, failed};
use crate::git::Git;
use crate::remedy::Remedy;
use crate::repository::Repository;
use crate::worktree::status::{GitPath, Status, split};
use crate::worktree::tracked::conversion::Conversion;
use crate::worktree::tracked::index::{GITLINK, Index, IndexEntry, PLAIN, SYMLINK, low};

/// The commit's files, each with the way to make it.
pub(crate) struct TrackedFiles {
    pub(crate) index: Index,
    /// Cloned entries, with the mtime and size that the donor's index has.
    clean: Vec<usize>,
    by_git: Vec<(usize, NotClonedReason)>,
    /// The donor's ignore rules differ from the commit's.
    pub(crate) ignores_otherwise: bool,
    pub(crate) has_submodules: bool,
    /// Entries that the donor's sparse checkout leaves out, and so the new worktree's.
    left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[strum(serialize_all = "snake_case")]
pub enum NotClonedReason {
    /// The donor's index has another version, or none.
    OtherVersion,
    Uncommitted,
    /// git converts it on checkout: line endings, a filter, `ident`.
    Converted,
    /// The donor's index is split (`core.splitIndex`), and Calve reads one of its files.
    SplitIndex,
    /// A submodule, a symlink where git makes none, or a file that the donor's index hides.
    Special,
    StaleIndex,
}

/// The number of tracked files in a new worktree.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename = "TrackedFiles")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrackedCounts {
    /// Files that were cloned.
    pub cloned: u64,
    /// Files that git wrote.
    pub written_by_git: u64,
    /// Why files were not cloned.
    pub not_cloned: Vec<NotClonedFiles>,
    /// Output of git and its filters about the files that it wrote.
    #[serde(skip)]
    pub said: Option<String>,
}

/// Tracked files that were not cloned, for one reason.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotClonedFiles {
    /// A stable word for programs.
    #[serde(with = "As::<Text>")]
    pub reason: NotClonedReason,
    /// The number of files.
    pub files: u64,
}

impl TrackedFiles {
    /// Compares two indexes. A file is cloned if both have its object, git finds it unchanged, and nothing converts it.
    pub(crate) fn compare(
        repository: &Repository,
        index: Index,
        donor: &Index,
        status: &Status,
        conversions: &[Conversion],
    ) -> TrackedFiles {
        let has_symlinks = repository.setting("core.symlinks") != Some("false");
        let mut tracked = TrackedFiles {
            clean: Vec::with_capacity(index.entries.len()),
            by_git: Vec::new(),
            ignores_otherwise: false,
            left_out: 0,
            has_submodules: index.entries.iter().any(|entry| entry.mode == GITLINK),
            index,
        };
        // Both are ordered by path.
        let mut theirs = if donor.is_partial { &[][..] } else { donor.entries.as_slice() };
        let (mut in_both, mut left_out) = (0, 0);
        for (at, entry) in tracked.index.entries.iter_mut().enumerate() {
            theirs = &theirs[theirs.iter().take_while(|their| their.path < entry.path).count()..];
            let same = theirs.iter().take_while(|their| their.path == entry.path).last();
            if let Some(donor) = same {
                in_both += usize::from(is_ignore_file(&entry.path));
                left_out += u64::from(donor.is_skipped);
            }
            let is_converted = |donor: &IndexEntry| match conversions.get(at) {
                Some(Conversion::None) => false,
                Some(Conversion::Size(size)) => entry.mode != SYMLINK && donor.size != low(*size),
                Some(Conversion::ByGit) => entry.mode != SYMLINK,
                None => true,
            };
            let cloned = match same {
                None if donor.is_partial => Err(NotClonedReason::SplitIndex),
                _ if entry.mode == GITLINK => Err(NotClonedReason::Special),
                None => Err(NotClonedReason::OtherVersion),
                Some(donor) if donor.oid != entry.oid || donor.mode != entry.mode => Err(NotClonedReason::OtherVersion),
                Some(donor) if donor.stage != 0 || status.changed.contains(&entry.path) => {
                    Err(NotClonedReason::Uncommitted)
                }
                Some(donor) if donor.is_special || entry.mode == SYMLINK && !has_symlinks => {
                    Err(NotClonedReason::Special)
                }
                Some(donor) if is_converted(donor) => Err(NotClonedReason::Converted),
                Some(donor) => Ok(donor),
            };
            match cloned {
                Ok(donor) => {
                    (entry.mtime, entry.size) = (donor.mtime, donor.size);
                    tracked.clean.push(at);
                }
                Err(why) => {
                    tracked.ignores_otherwise |= is_ignore_file(&entry.path);
                    tracked.by_git.push((at, why));
                }
            }
        }
        tracked.left_out = left_out;
        let whole: HashSet<&[u8]> = donor.entries.iter().filter_map(IndexEntry::directory).collect();
        if !whole.is_empty() {
            let is_below = |path: &[u8]| (0..path.len()).any(|at| path[at] == b'/' && whole.contains(&path[..at]));
            tracked.left_out += tracked.index.entries.iter().filter(|entry| is_below(&entry.path)).count() as u64;
        }
        let in_donor = donor.entries.iter().filter(|entry| is_ignore_file(&entry.path)).count();
        tracked.ignores_otherwise |= in_donor != in_both;
        tracked
    }

    pub(crate) fn cloned(&self) -> impl Iterator<Item = &GitPath> {
        self.clean.iter().map(|at| &self.index.entries[*at].path)
    }

    pub(crate) fn at_or_below(&self, path: &[u8]) -> impl Iterator<Item = &GitPath> {
        let entries = &self.index.entries;
        let from = |end: u8| {
            let bound = [path, &[end]].concat();
            entries.partition_point(|entry| entry.path < bound)
        };
        let below = &entries[from(b'/')..from(b'/' + 1)];
        self.index_of(path).map(|at| &entries[at]).into_iter().chain(below).map(|entry| &entry.path)
    }

    pub(crate) fn is_cloned(&self, path: &[u8]) -> bool {
        self.index_of(path).is_some_and(|at| self.clean.binary_search(&at).is_ok())
    }

    /// Returns a path's position in the index, which is ordered by path.
    pub(crate) fn index_of(&self, path: &[u8]) -> Option<usize> {
        self.index.entries.binary_search_by(|entry| entry.path.as_slice().cmp(path)).ok()
    }

    /// Leaves files out of both lists: they come from the donor as they are there, and git is to find them changed.
    pub(crate) fn leave_changed(&mut self, is_changed: impl Fn(&GitPath) -> bool) {
        let entries = &self.index.entries;
        self.clean.retain(|at| !is_changed(&entries[*at].path));
        self.by_git.retain(|(at, _)| !is_changed(&entries[*at].path));
    }

    /// Completes the files at `git`: checks the cloned ones, has git write the rest (if sparse, a part), saves the index.
    pub(crate) fn check_out(
        mut self,
        git: &Git,
        index_path: &Path,
        (commit, is_sparse): (&str, bool),
        repository: &Repository,
        threads: Option<NonZeroUsize>,
    ) -> Result<TrackedCounts> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(CWD, git.directory(), flags, Mode::empty()).map_err(std::io::Error::from)?;
        let created = CreatedModes::read(index_path)?;
        let keeps_modes = repository.setting("core.filemode") != Some("false");
        let paths: Vec<&[u8]> = self.cloned().map(Vec::as_slice).collect();
        let mut stats = stat_all(root.as_fd(), &paths, threads.map_or(2, NonZeroUsize::get));
        for (at, stat) in self.clean.iter().zip(&mut stats) {
            let entry = &self.index.entries[*at];
            created.correct_file(root.as_fd(), &entry.path, entry.mode, stat, keeps_modes);
        }
        created.limit_directories(root.as_fd(), &paths);
        let clean = std::mem::take(&mut self.clean);
        let mut cloned = 0;
        for (at, stat) in clean.into_iter().zip(stats) {
            let entry = &self.index.entries[at];
            let kind = if entry.mode == SYMLINK { FileType::Symlink } else { FileType::RegularFile };
            match stat.filter(|stat| entry.is_of(stat) && FileType::from_raw_mode(stat.st_mode) == kind) {
                Some(stat) => {
                    self.index.set_stat(at, &stat);
                    cloned += 1;
                }
                // It has changed since git looked at it, or the donor's index is stale.
                None => self.by_git.push((at, NotClonedReason::StaleIndex)),
            }
        }
        let mut said = None;
        let entries = &self.index.entries;
        let mut by_git: Vec<(GitPath, String, NotClonedReason)> =
            self.by_git.iter().map(|&(at, why)| (entries[at].path.clone(), entries[at].hex(), why)).collect();
        let hash_bytes = self.index.hash_bytes;
        if !self.index.save(index_path)? && cloned > 0 {
            git.output(&["update-index", "-q", "--refresh"])?;
        }
        if is_sparse {
            // git decides which files belong there. It writes none: the index has the commit already.
            git.run(&[&PLAIN[..], &["read-tree", "-m", "-u", commit]].concat())?;
            let entries = Index::read(index_path, hash_bytes)?.entries;
            let left_out: HashSet<GitPath> =
                entries.into_iter().filter(|entry| entry.is_skipped).map(|entry| entry.path).collect();
            by_git.retain(|(path, ..)| !left_out.contains(path));
        }
        if !by_git.is_empty() {
            let mut missing = None;
            if let Some(remote) = repository.promisor() {
                let wanted = by_git.iter().map(|(_, oid, _)| oid.as_str()).collect();
                missing = fetch_missing(&repository.git_to_fetch(), remote, commit, wanted)?;
            }
            let list: Vec<u8> = by_git.iter().flat_map(|(path, ..)| [&path[..], b"\0"].concat()).collect();
            // An optional filter that fails says so, and its files are as stored.
            let written = git.fed_online(&["checkout-index", "--force", "--index", "-z", "--stdin"], &list);
            let heard = match (written, missing) {
                (Err(Error::Git { .. }), Some(missing)) => return Err(missing),
                (written, _) => written?,
            };
            said = Some(heard).filter(|heard| !heard.is_empty());
        }
        let (written_by_git, mut not_cloned) = (by_git.len() as u64, BTreeMap::new());
        for (.., why) in by_git {
            *not_cloned.entry(why).or_default() += 1;
        }
        let not_cloned = not_cloned.into_iter().map(|(reason, files)| NotClonedFiles { reason, files }).collect();
        Ok(TrackedCounts { cloned, written_by_git, not_cloned, said })
    }

    /// Returns how many files will be cloned, and how many git will write, without reasons.
    pub(crate) fn counts(&self, is_sparse: bool) -> TrackedCounts {
        let left_out = if is_sparse { self.left_out } else { 0 };
        let written_by_git = (self.by_git.len() as u64).saturating_sub(left_out);
        TrackedCounts { cloned: self.clean.len() as u64, written_by_git, ..TrackedCounts::default() }
    }
}

pub(crate) fn is_ignore_file(path: &[u8]) -> bool {
    path == b".gitignore" || path.ends_with(b"/.gitignore")
}

/// Permissions that the umask leaves to git's checkout.
struct CreatedModes {
    file: u32,
    directory: u32,
}

impl CreatedModes {
    /// Reads them from the entry's directory and its `HEAD`, which were made a moment ago.
    fn read(index_path: &Path) -> Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let directory = index_path.parent().unwrap_or(index_path);
        Ok(Self {
            file: fs_err::metadata(index_path.with_file_name("HEAD"))?.mode() & 0o666,
            directory: fs_err::metadata(directory)?.mode() & 0o777,
        })
    }

    /// Sets the mode that git's checkout would: executable by the index, everything else by the umask. Where `core.fileMode` is off, the file
    /// system may have no modes to set: then the file is right as it is.
    fn correct_file(&self, root: BorrowedFd<'_>, path: &[u8], mode: u32, stat: &mut Option<Stat>, keeps_modes: bool) {
        let Some(found) = stat.filter(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile) else {
            return;
        };
        let executable = if mode & 0o100 != 0 { (self.file & 0o444) >> 2 } else { 0 };
        #[allow(clippy::useless_conversion, reason = "the types differ between systems")]
        let (wanted, present): (u32, u32) = (self.file | executable, (found.st_mode & 0o7777).into());
        if wanted == present || mode == SYMLINK {
            return;
        }
        let changed = rustix::fs::chmodat(root, path, Mode::from_bits_truncate(wanted as _), AtFlags::empty());
        if changed.is_ok() || keeps_modes {
            *stat = changed.and_then(|()| rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW)).ok();
        }
    }

    /// Applies the umask to directories of tracked files. They get no more than in the donor: it may hide files there.
    fn limit_directories(&self, root: BorrowedFd<'_>, files: &[&[u8]]) {
        let mut done: HashSet<&[u8]> = HashSet::new();
        for file in files {
            let mut path = *file;
            while let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
                path = &path[..slash];
                if !done.insert(path) {
                    break;
                }
                // Usually nothing has to be taken, which one call shows.
                let found = rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW);
                if found.is_ok_and(|found| limited(found.st_mode, self.directory).is_none()) {
                    continue;
                }
                // An entry that is no longer a directory has no mode to limit: git's checkout makes its own.
                if let Ok(directory) = open_directory(root, path) {
                    let _ = limit_mode(directory.as_fd(), self.directory);
                }
            }
        }
    }
}

fn limit_mode(directory: BorrowedFd<'_>, permitted: u32) -> rustix::io::Result<()> {
    match limited(rustix::fs::fstat(directory)?.st_mode, permitted) {
        Some(mode) => rustix::fs::fchmod(directory, mode),
        None => Ok(()),
    }
}

/// Returns a mode without the permissions outside `permitted`, or `None` if it has no others.
fn limited(mode: rustix::fs::RawMode, permitted: u32) -> Option<Mode> {
    let present = mode & 0o7777;
    let limited = present & (permitted as rustix::fs::RawMode | 0o7000);
    (limited != present).then(|| Mode::from_bits_truncate(limited))
}

/// Applies the umask to the root of a new worktree, which has the donor's mode.
pub(crate) fn limit_root(worktree: &Path, index_path: &Path) -> Result<()> {
    let permitted = CreatedModes::read(index_path)?.directory;
    let limited = open_directory(CWD, worktree).and_then(|directory| limit_mode(directory.as_fd(), permitted));
    Ok(limited.map_err(|errno| failed("failed to set the mode of", worktree, errno))?)
}

fn stat_all(root: BorrowedFd<'_>, paths: &[&[u8]], threads: usize) -> Vec<Option<Stat>> {
    let share = paths.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = paths.chunks(share).map(|part| scope.spawn(move || stat_some(root, part))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

/// Looks at the files of one directory by their names alone, which takes half of the time.
fn stat_some<'p>(root: BorrowedFd<'_>, paths: &[&'p [u8]]) -> Vec<Option<Stat>> {
    let (mut last, mut directory): (&[u8], Option<File>) = (b"", None);
    let stat = |path: &&'p [u8]| {
        let (above, name) = split(path);
        if above != last {
            last = above;
            directory = if above.is_empty() { None } else { open_directory(root, above).ok() };
        }
        let found = match &directory {
            Some(directory) => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW),
            // The root, a link, or a directory that may not be listed.
            None => rustix::fs::statat(root, *path, AtFlags::SYMLINK_NOFOLLOW),
        };
        found.ok()
    };
    paths.iter().map(stat).collect()
}

/// Fetches the objects that a partial clone lacks in one request, as `git checkout` does (git's promisor-remote.c). `git checkout-index` would
/// open a connection for each. Returns the error about objects that the remote did not send.
fn fetch_missing(git: &Git, remote: &str, commit: &str, wanted: HashSet<&str>) -> Result<Option<Error>> {
    let objects = git.run(&["rev-list", "--objects", "--no-object-names", "--missing=print", "--no-walk", commit])?;
    let missing =
        objects.split(|&byte| byte == b'\n').filter_map(|line| std::str::from_utf8(line.strip_prefix(b"?")?).ok());
    let missing: Vec<&str> = missing.filter(|oid| wanted.contains(oid)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let without_negotiation = ["-c", "fetch.negotiationAlgorithm=noop", "fetch", remote];
    let only_these = ["--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none"];
    let list = missing.join("\n") + "\n";
    match git.fed_online(&[&without_negotiation[..], &only_these, &["--stdin"]].concat(), list.as_bytes()) {
        // Another remote may have them: `checkout-index` goes on, and reports those that it does not get.
        Ok(_) => Ok(None),
        Err(Error::Git { said, .. }) => {
            let (remote, said) = (ShownPath(remote), said.trim());
            let of = if missing.len() == 1 { "1 file are" } else { &format!("{} files are", missing.len()) };
            let text = format!("the contents of {of} still on `{remote}`, which did not send them: {said}");
            Ok(Some(Error::refused(text, Remedy::GoOnline)))
        }
        Err(other) => Err(other),
    }
}
