use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::error::Result;
use crate::git::Git;
use crate::paths::path_of;

/// A path as git prints it: bytes, relative to the worktree's root, without a trailing slash.
pub(crate) type GitPath = Vec<u8>;

/// Returns a path's directory, empty for the root, and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'/', path) {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// Tracked files that differ from the index.
    pub(crate) changed: HashSet<GitPath>,
    /// Tracked files whose index entry differs from the commit.
    pub(crate) staged: Vec<GitPath>,
    pub(crate) has_conflicts: bool,
    /// Untracked files, and directories without tracked files.
    pub(crate) untracked: Vec<UntrackedEntry>,
    /// Ignored files, and wholly ignored directories.
    pub(crate) ignored: Vec<UntrackedEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UntrackedEntry {
    pub(crate) path: PathBuf,
    pub(crate) is_directory: bool,
}

impl UntrackedEntry {
    /// Parses a path of git's lists, in which a directory ends in a slash.
    pub(crate) fn listed(path: &[u8]) -> UntrackedEntry {
        let directory = path.strip_suffix(b"/");
        UntrackedEntry { path: path_of(directory.unwrap_or(path)), is_directory: directory.is_some() }
    }

    pub(crate) fn all(list: &[u8]) -> Vec<UntrackedEntry> {
        list.split(|&byte| byte == 0).filter(|path| !path.is_empty()).map(UntrackedEntry::listed).collect()
    }
}

impl Status {
    pub(crate) fn read(git: &Git) -> Result<Status> {
        Status::asked(git, &STATUS)
    }

    /// Reads the status with that of submodules, whose changes are changed paths.
    pub(crate) fn with_submodules(git: &Git) -> Result<Status> {
        // The last of repeated options counts.
        Status::asked(git, &[&STATUS[..], &["--no-ahead-behind", "--ignore-submodules=none"]].concat())
    }

    /// Reads the status of these paths, relative to git's directory, and of their descendants.
    pub(crate) fn of_paths(git: &Git, paths: &[GitPath]) -> Result<Status> {
        // Threads would have next to no files to look at.
        const FEW: [&str; 3] = ["--literal-pathspecs", "-c", "core.preloadIndex=false"];
        let all = [&FEW[..], &STATUS, &["--"]].concat();
        let arguments = all.into_iter().map(OsStr::new).chain(paths.iter().map(|path| OsStr::from_bytes(path)));
        Status::asked(git, &arguments.collect::<Vec<_>>())
    }

    pub(crate) fn uncommitted(&self) -> Vec<PathBuf> {
        let changed = self.changed.iter().chain(&self.staged).map(|path| path_of(path));
        let all: BTreeSet<PathBuf> = changed.chain(self.untracked.iter().map(|found| found.path.clone())).collect();
        all.into_iter().collect()
    }

    fn asked<A: AsRef<OsStr>>(git: &Git, arguments: &[A]) -> Result<Status> {
        let mut status = parse(&git.clone().heeding_change_times().run(arguments)?);
        let inside = in_place_of(git, status.changed.iter().map(Vec::as_slice))?;
        status.untracked.extend(inside);
        Ok(status)
    }
}

/// Returns the untracked entries of directories in place of tracked files: `git status` needs `--untracked-files=all`.
pub(crate) fn in_place_of<'p>(git: &Git, files: impl Iterator<Item = &'p [u8]>) -> Result<Vec<UntrackedEntry>> {
    let is_directory =
        |path: &&[u8]| fs_err::symlink_metadata(git.directory().join(path_of(path))).is_ok_and(|found| found.is_dir());
    let directories: Vec<&OsStr> = files.filter(is_directory).map(OsStr::from_bytes).collect();
    if directories.is_empty() {
        return Ok(Vec::new());
    }
    let words = ["--literal-pathspecs", "ls-files", "-z", "--others", "--exclude-standard", "--"].map(OsStr::new);
    Ok(UntrackedEntry::all(&git.run(&[&words[..], &directories].concat())?))
}

const STATUS: [&str; 7] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--no-renames",
    "--untracked-files=normal",
    "--ignored=matching",
    "--ignore-submodules=all",
];

/// Parses `1 XY sub mH mI mW hH hI path`, `u XY sub m1 m2 m3 mW h1 h2 h3 path`, `? path`, `! path`, each ended by a NUL.
fn parse(said: &[u8]) -> Status {
    let mut status = Status::default();
    for record in said.split(|&byte| byte == 0) {
        let (Some(&kind), Some(rest)) = (record.first(), record.get(2..)) else { continue };
        match kind {
            b'?' => status.untracked.push(UntrackedEntry::listed(rest)),
            b'!' => status.ignored.push(UntrackedEntry::listed(rest)),
            b'1' => {
                let Some(path) = rest.splitn(8, |&byte| byte == b' ').nth(7) else { continue };
                if rest.first() != Some(&b'.') {
                    status.staged.push(path.to_vec());
                }
                if rest.get(1) != Some(&b'.') {
                    status.changed.insert(path.to_vec());
                }
            }
            b'u' => {
                status.has_conflicts = true;
                status.changed.extend(rest.splitn(10, |&byte| byte == b' ').nth(9).map(<[u8]>::to_vec));
            }
            _ => {}
        }
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_taken_apart() {
        let said = b"1 .M N... 100644 100644 100644 aa bb a file\0\
            1 A. N... 000000 100644 100644 00 bb new\0\
            u UU N... 100644 100644 100644 100644 a b c conflict\0? some dir/\0? x\0! node_modules/\0";
        let status = parse(said);
        assert!(status.changed.contains(&b"a file"[..]) && status.changed.contains(&b"conflict"[..]));
        assert_eq!(status.staged, [b"new".to_vec()]);
        assert!(status.has_conflicts);
        assert_eq!(status.untracked[0], UntrackedEntry { path: "some dir".into(), is_directory: true });
        assert_eq!(status.untracked[1], UntrackedEntry { path: "x".into(), is_directory: false });
        assert_eq!(status.ignored, [UntrackedEntry { path: "node_modules".into(), is_directory: true }]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn fuzz_status() {
        let said = b"1 .M N... 100644 100644 100644 aa bb a file\0\
            u UU N... 100644 100644 100644 100644 a b c conflict\0? some dir/\0! node_modules/\0";
        calve_testkit::fuzz(&[said], |input| drop(parse(input)));
    }
}
