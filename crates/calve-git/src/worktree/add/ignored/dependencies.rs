//! Which worktree each directory of dependencies comes from: the one whose lockfile is that of the new worktree.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::Result;
use crate::git::Git;
use crate::paths::path_of;
use crate::repository::Worktree;
use crate::worktree::add::ignored::CarriedRoot;
use crate::worktree::add::ignored::rules;
use crate::worktree::status::Status;
use crate::worktree::tracked::TrackedFiles;
use crate::worktree::tracked::index::{Index, IndexEntry};

/// Directories, and the lockfiles that say what belongs in them.
const KINDS: [(&[&str], &[&str]); 4] = [
    (
        &["node_modules"],
        &["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"],
    ),
    (&[".venv", "venv"], &["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"]),
    (&["target"], &["Cargo.lock"]),
    (&["vendor"], &["go.sum", "composer.lock", "Gemfile.lock"]),
];

/// A directory of dependencies in a new worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dependency {
    /// Relative to the worktree.
    pub path: PathBuf,
    /// The worktree that it was cloned from.
    pub from: PathBuf,
    /// The lockfile that it belongs to, relative to the worktree.
    pub lockfile: PathBuf,
    /// Whether that worktree's lockfile is the new one's. If not, an install is still needed.
    pub is_current: bool,
}

/// A worktree that things can be taken from.
struct Candidate<'w> {
    path: &'w Path,
    is_current: bool,
    changed: Option<SystemTime>,
}

/// Decides for every lockfile of the commit. `roots` is what the donor has to give; `wanted` says whether a directory of
/// dependencies is to be carried at all.
pub(crate) fn choose(
    tracked: &TrackedFiles,
    donor: &Path,
    roots: &[CarriedRoot],
    worktrees: &[Worktree],
    wanted: &dyn Fn(&Path) -> bool,
) -> Result<Vec<Dependency>> {
    let lockfiles = lockfiles(&tracked.index);
    let mut groups: BTreeMap<&Path, Vec<PathBuf>> = BTreeMap::new();
    for (path, _) in lockfiles.values() {
        groups.entry(path).or_default();
    }
    for found in dependencies(roots.iter().map(|root| root.path.as_path())) {
        if let Some(lockfile) = governing(&found, &lockfiles) {
            groups.entry(lockfile).or_default().push(found);
        }
    }
    let mut chosen = Vec::new();
    let mut ignored: HashMap<&Path, HashSet<PathBuf>> = HashMap::new();
    for (lockfile, present) in groups {
        let Some((_, entry)) = lockfiles.values().find(|(path, _)| path == lockfile) else { continue };
        let mut candidates = Vec::new();
        if !present.is_empty() {
            let is_known = tracked.is_cloned(lockfile.as_os_str().as_bytes());
            candidates.push(candidate(donor, lockfile, entry, &present, is_known)?);
        }
        if !candidates.iter().any(|candidate| candidate.is_current) {
            let others = worktrees.iter().filter(|other| other.is_usable() && other.path != donor);
            // Files that a pull request has put there would run in the new worktree.
            for other in others.filter(|other| !other.provenance.is_untrusted()) {
                let likely = likely(&other.path, lockfile);
                if likely.iter().any(|path| wanted(path)) {
                    candidates.push(candidate(&other.path, lockfile, entry, &likely, false)?);
                }
            }
        }
        // The one that fits, and of several the newest.
        let Some(best) = candidates.iter().max_by_key(|candidate| (candidate.is_current, candidate.changed)) else {
            continue;
        };
        let found = if best.path == donor {
            present
        } else {
            if !ignored.contains_key(best.path) {
                let status = Status::of(&Git::at(best.path))?;
                let paths: Vec<PathBuf> = status.ignored.iter().map(|found| path_of(&found.path)).collect();
                ignored.insert(best.path, dependencies(paths.iter().map(PathBuf::as_path)));
            }
            let all = ignored.get(best.path).into_iter().flatten();
            all.filter(|path| governing(path, &lockfiles) == Some(lockfile) && wanted(path)).cloned().collect()
        };
        for path in found {
            let (from, lockfile) = (best.path.to_path_buf(), lockfile.to_path_buf());
            chosen.push(Dependency { path, from, lockfile, is_current: best.is_current });
        }
    }
    chosen.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(chosen)
}

/// Returns, by directory and kind, the lockfile that the commit has there. The first of a kind counts.
fn lockfiles(target: &Index) -> HashMap<(PathBuf, usize), (PathBuf, &IndexEntry)> {
    let mut found: HashMap<(PathBuf, usize), (PathBuf, &IndexEntry)> = HashMap::new();
    for entry in &target.entries {
        let path = path_of(&entry.path);
        let (Some(name), Some(directory)) = (path.file_name(), path.parent()) else { continue };
        let Some(kind) = KINDS.iter().position(|(_, names)| names.iter().any(|known| OsStr::new(known) == name)) else {
            continue;
        };
        if rules::dependency(&path).is_none() {
            found.entry((directory.to_path_buf(), kind)).or_insert_with(|| (path.clone(), entry));
        }
    }
    found
}

/// Returns the outermost directories of dependencies among these paths and above them.
fn dependencies<'p>(paths: impl Iterator<Item = &'p Path>) -> HashSet<PathBuf> {
    paths.filter_map(rules::dependency).map(Path::to_path_buf).collect()
}

/// Finds the nearest lockfile beside a directory of dependencies, or above it.
fn governing<'l>(
    dependency: &Path,
    lockfiles: &'l HashMap<(PathBuf, usize), (PathBuf, &IndexEntry)>,
) -> Option<&'l Path> {
    let name = dependency.file_name()?;
    let kind = KINDS.iter().position(|(names, _)| names.iter().any(|known| OsStr::new(known) == name))?;
    let mut above = dependency.ancestors().skip(1);
    above.find_map(|directory| lockfiles.get(&(directory.to_path_buf(), kind)).map(|(path, _)| path.as_path()))
}

/// Lists the directories that a lockfile's kind has beside it, as far as they are there.
fn likely(worktree: &Path, lockfile: &Path) -> Vec<PathBuf> {
    let kinds = KINDS.iter().filter(|(_, names)| {
        lockfile.file_name().is_some_and(|name| names.iter().any(|known| OsStr::new(known) == name))
    });
    let beside = lockfile.parent().unwrap_or(Path::new(""));
    let all = kinds.flat_map(|(directories, _)| directories.iter().map(|name| beside.join(name)));
    all.filter(|path| fs_err::symlink_metadata(worktree.join(path)).is_ok_and(|found| found.is_dir())).collect()
}

/// Describes the dependencies of a worktree as a choice. `is_known`: git has just said that its lockfile is the wanted one.
fn candidate<'w>(
    worktree: &'w Path,
    lockfile: &Path,
    wanted: &IndexEntry,
    present: &[PathBuf],
    is_known: bool,
) -> Result<Candidate<'w>> {
    let newest =
        present.iter().filter_map(|path| fs_err::symlink_metadata(worktree.join(path)).ok()?.modified().ok()).max();
    let is_file = fs_err::symlink_metadata(worktree.join(lockfile)).is_ok_and(|found| found.is_file());
    let arguments = [OsStr::new("hash-object"), OsStr::new("--"), OsStr::from_bytes(lockfile.as_os_str().as_bytes())];
    let is_current = is_file && (is_known || Git::at(worktree).line(&arguments)? == OsStr::new(&wanted.hex()));
    Ok(Candidate { path: worktree, is_current, changed: newest })
}
