//! The carried entries that git would show, by the rules of the new worktree.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::directory::LARGEST_BYTES;
use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{path_of, pointer_in};
use crate::worktree::add::ignored::rules::Rules;
use crate::worktree::add::report::{CarriedFiles, Dependency};
use crate::worktree::add::request::AddRequest;
use crate::worktree::add::survey::{Survey, nested};
use crate::worktree::status::UntrackedEntry;
use crate::worktree::tracked::index::SYMLINK;
use crate::worktree::tracked::is_ignore_file;

const RULES: &str = ".gitignore";

/// Returns the entries that `git status` would show as untracked in the tree. None of them is carried.
pub(super) fn shown(git: &Git) -> Result<Vec<PathBuf>> {
    // Programs in the settings need not look at the tree, which may be temporary.
    let settings = ["-c", "core.fsmonitor=false"];
    let asked = ["ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory"];
    let listed = UntrackedEntry::all(&git.run(&[&settings[..], &asked].concat())?);
    Ok(listed.into_iter().map(|entry| entry.path).collect())
}

/// Predicts [`shown`] before anything is carried, from a tree of empty files with the same names. `own` is git's directory of the new
/// worktree, with the commit's index. Leaves out directories whose rules are still on a server.
pub(super) fn planned(
    request: &AddRequest,
    survey: &Survey,
    untracked: &CarriedFiles,
    own: &Path,
) -> Result<Vec<PathBuf>> {
    if !survey.may_show || untracked.carried.is_empty() {
        return Ok(Vec::new());
    }
    let tree = tempfile::tempdir().or_else(|_| tempfile::tempdir_in(&request.repository.common))?;
    let git = Git::at(tree.path()).with("GIT_DIR", own).with("GIT_WORK_TREE", tree.path());
    // git follows no link to rules.
    let rules = survey.tracked.index.entries.iter().filter(|file| is_ignore_file(&file.path) && file.mode != SYMLINK);
    let (paths, oids): (Vec<_>, Vec<_>) = rules.map(|file| (path_of(&file.path), file.hex())).unzip();
    // git before 2.45 would fetch them, and fails offline.
    let texts = request.repository.git().blobs(&oids, LARGEST_BYTES).unwrap_or_else(|_| vec![None; oids.len()]);
    let mut unknown = Vec::new();
    for (path, text) in paths.iter().zip(texts) {
        match text {
            Some(text) => write(&tree.path().join(path), &text)?,
            None => unknown.extend(path.parent()),
        }
    }
    let sources = untracked.carried.iter().map(|path| (source(request, &untracked.dependencies, path), path));
    let sources: Vec<(PathBuf, &PathBuf)> = sources.collect();
    let outline = Outline { tree: tree.path(), rules: &survey.plan.rules, nested: &nested(request) };
    for (from, path) in &sources {
        outline.begin(from, path)?;
    }
    // An ignored directory need not be searched.
    let input: Vec<u8> = sources.iter().flat_map(|(_, path)| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
    let ignored = match git.fed(&["check-ignore", "--no-index", "-z", "--stdin"], &input) {
        // None is ignored.
        Err(Error::Git { code: Some(1), .. }) => Vec::new(),
        answered => answered?,
    };
    let ignored: HashSet<&[u8]> = ignored.split(|&byte| byte == 0).collect();
    for (from, path) in &sources {
        if !ignored.contains(path.as_os_str().as_bytes()) {
            outline.add(from, path)?;
        }
    }
    let mut shown = shown(&git)?;
    shown.retain(|path| !unknown.iter().any(|directory| path.starts_with(directory)));
    Ok(shown)
}

/// Returns the path that an entry is carried from: in the donor, or in the worktree that dependencies come from.
pub(super) fn source(request: &AddRequest, dependencies: &[Dependency], path: &Path) -> PathBuf {
    let foreign = dependencies.iter().find(|one| one.path == path && one.from != request.donor);
    foreign.map_or(&request.donor, |one| &one.from).join(path)
}

/// Returns whether this user may read a file or list a directory. Everything else is carried without being read.
pub(super) fn may_read(path: &Path) -> bool {
    let wanted = match fs_err::symlink_metadata(path).map(|found| found.file_type()) {
        Ok(kind) if kind.is_file() => Access::READ_OK,
        Ok(kind) if kind.is_dir() => Access::READ_OK | Access::EXEC_OK,
        _ => return true,
    };
    !matches!(rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS), Err(Errno::ACCESS))
}

/// A tree with the names of the carried entries, and the ignore rules among them.
struct Outline<'a> {
    tree: &'a Path,
    rules: &'a Rules,
    nested: &'a HashSet<PathBuf>,
}

impl Outline<'_> {
    /// Adds rules, which may be ignored themselves, and directories: git needs both to judge an entry.
    fn begin(&self, from: &Path, path: &Path) -> Result<()> {
        let to = self.tree.join(path);
        match is_directory(from) {
            true if fs_err::symlink_metadata(&to).is_err() => Ok(fs_err::create_dir_all(to)?),
            false if is_ignore_file(path.as_os_str().as_bytes()) => self.add(from, path),
            _ => Ok(()),
        }
    }

    fn add(&self, from: &Path, path: &Path) -> Result<()> {
        let to = self.tree.join(path);
        let Ok(found) = fs_err::symlink_metadata(from) else { return Ok(()) };
        if !may_read(from) || self.nested.contains(path) {
            return Ok(());
        }
        if !found.is_dir() {
            // A file of the commit takes its place.
            if fs_err::symlink_metadata(&to).is_err() && (found.is_file() || found.is_symlink()) {
                let is_rules = found.is_file() && is_ignore_file(path.as_os_str().as_bytes());
                write(&to, &if is_rules { fs_err::read(from).unwrap_or_default() } else { Vec::new() })?;
            }
            return Ok(());
        }
        if is_worktree(&from.join(".git")) || ignores_itself(from) && fs_err::symlink_metadata(to.join(RULES)).is_err()
        {
            return Ok(());
        }
        let Ok(entries) = fs_err::read_dir(from) else { return Ok(()) };
        for entry in entries {
            let name = entry?.file_name();
            let (from, path) = (from.join(&name), path.join(&name));
            if name != ".git" && self.rules.leave(&path, is_directory(&from)).is_none() {
                self.add(&from, &path)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a directory's own rules hide all of it from git, as in virtual environments and caches.
fn ignores_itself(directory: &Path) -> bool {
    let rules = directory.join(RULES);
    let is_file = fs_err::symlink_metadata(&rules).is_ok_and(|found| found.is_file());
    let text = if is_file { fs_err::read_to_string(rules).unwrap_or_default() } else { String::new() };
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next() == Some("*") && lines.next().is_none()
}

/// Returns whether a `.git` file points to a worktree's entry, not a submodule's.
pub(super) fn is_worktree(pointer: &Path) -> bool {
    pointer_in(pointer).is_some_and(|entry| entry.parent().is_some_and(|all| all.ends_with("worktrees")))
}

fn is_directory(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

fn write(path: &Path, text: &[u8]) -> Result<()> {
    if let Some(above) = path.parent() {
        fs_err::create_dir_all(above)?;
    }
    Ok(fs_err::write(path, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_is_told_from_a_submodule_by_its_pointer() {
        let folder = tempfile::tempdir().unwrap();
        let pointer = folder.path().join(".git");
        for (text, expected) in [
            ("gitdir: /a/.git/worktrees/x\n", true),
            ("gitdir: ../.git/modules/sub/worktrees/x\n", true),
            ("gitdir: ../.git/modules/worktrees\n", false),
            ("gitdir:/a/.git/worktrees/x\n", false),
        ] {
            fs_err::write(&pointer, text).unwrap();
            assert_eq!(is_worktree(&pointer), expected, "{text}");
        }
    }
}
