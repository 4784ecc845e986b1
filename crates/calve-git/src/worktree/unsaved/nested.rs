//! Finds repositories and worktrees inside a worktree, which go with it. git does not look into ignored directories.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use calve_core::{CancelToken, Descent, EntryKind, Folder, ScanOptions, ShownPath, Visitor, is_trash, scan_tree};
use rustix::fs::{AtFlags, FileType};

use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{plain, pointed_to, real};
use crate::remedy::Remedy;
use crate::repository::Worktree;
use crate::repository::state::LinkedWorktree;
use crate::trust;
use crate::worktree::unsaved::hidden::check_hidden;
use crate::worktree::unsaved::unpushed::{careful, is_kept_by, only_here};
use crate::worktree::unsaved::{UNFINISHED, unfinished};

/// Something inside that git works on, by its path below the worktree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NestedFinding {
    /// A directory with files and a `.git`.
    Files(PathBuf),
    /// A repository: the `.git` of the former, or one without files.
    Repository(PathBuf),
}

#[derive(Default)]
struct Finder {
    found: Vec<NestedFinding>,
}

impl Visitor for Finder {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent {
        // Through a link too: some tools share what is in them.
        let is = |name: &CStr, expected: FileType| {
            rustix::fs::statat(folder.directory(), name, AtFlags::empty())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == expected)
        };
        match (name.to_bytes(), kind) {
            // A worktree that was removed just now.
            (name, EntryKind::Directory) if is_trash(name) => return Descent::No,
            (b".git", EntryKind::File | EntryKind::Directory | EntryKind::Symlink)
                if !folder.path().as_os_str().is_empty() =>
            {
                self.found.push(NestedFinding::Files(folder.path().to_path_buf()));
            }
            // The entries that make a directory a repository for git (`is_git_directory` in its setup.c).
            (b"HEAD", EntryKind::File | EntryKind::Symlink)
                if is(c"objects", FileType::Directory) && is(c"refs", FileType::Directory) =>
            {
                self.found.push(NestedFinding::Repository(folder.path().to_path_buf()));
            }
            // Large, and nothing else is in it.
            (b"objects", EntryKind::Directory)
                if is(c"HEAD", FileType::RegularFile) && is(c"refs", FileType::Directory) =>
            {
                return Descent::No;
            }
            _ => {}
        }
        Descent::Yes
    }
}

/// Refuses if a repository or worktree inside a worktree has work that exists nowhere outside, and names it.
///
/// Commits that a repository at the same path in another worktree keeps do not count: `calve worktree add` copied it from there.
pub(crate) fn check_kept(linked: &LinkedWorktree, worktrees: &[Worktree], cancel: &CancelToken) -> Result<()> {
    let mut options = ScanOptions::default();
    options.cancel = cancel.clone();
    let scanned = scan_tree(linked.path(), &options, Finder::default)?;
    let mut found: Vec<NestedFinding> = scanned.visitors.into_iter().flat_map(|visitor| visitor.found).collect();
    found.sort();
    let root = real(linked.path());
    let others = worktrees.iter().filter(|other| other.is_usable()).map(|other| real(&other.path));
    let others = others.filter(|other| !other.starts_with(&root)).collect();
    let outer = OuterWorktree { root, entry: real(linked.entry()), others, shown: linked.path() };
    for nested in found {
        match nested {
            NestedFinding::Files(path) => outer.check_files(&path)?,
            NestedFinding::Repository(path) => outer.check_repository(&path)?,
        }
    }
    Ok(())
}

/// The worktree that goes, and what git keeps for it.
struct OuterWorktree<'w> {
    root: PathBuf,
    entry: PathBuf,
    /// The roots of worktrees that stay.
    others: Vec<PathBuf>,
    shown: &'w Path,
}

impl OuterWorktree<'_> {
    fn refuse(&self, path: &Path, what: impl AsRef<str>, remedy: Remedy) -> Error {
        let (inside, outer) = (ShownPath(path), ShownPath(self.shown));
        Error::refused(format!("`{inside}` in the worktree `{outer}` {}", what.as_ref()), remedy)
    }

    /// Turns a failure of git into a refusal.
    fn judged<T>(&self, path: &Path, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error {
            Error::Git { said, .. } => {
                let said = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned();
                let what = format!("is a repository that git cannot read: {said}");
                self.refuse(path, what, Remedy::MoveNestedOrForce)
            }
            other => other,
        })
    }

    /// Refuses if there is uncommitted work.
    fn check_files(&self, path: &Path) -> Result<()> {
        let files = self.root.join(path);
        let Some(repository) = self.repository_of(path, &files)? else { return Ok(()) };
        if let Some(operation) = unfinished(&repository)
            && !self.is_unfinished_elsewhere(path, &repository)
        {
            let what = format!("has a {} that is not finished", operation.name());
            return Err(self.refuse(path, what, Remedy::FinishOrForce(operation)));
        }
        let git = careful(&files, &repository).with("GIT_WORK_TREE", &files).with(NOTHING, "");
        let harmless = harmless(&git)?;
        let others = self.others_at(path);
        // `calve worktree add` copied it from there.
        let is_kept = |name: &Path, contents: &[u8]| {
            others.iter().any(|other| fs_err::read(other.join(name)).is_ok_and(|there| there == contents))
        };
        self.judged(path, check_hidden(&git, &harmless, &files, &is_kept))?;
        // A submodule: git has looked at its files, and its commits are looked at with the entry.
        if repository.starts_with(&self.entry) {
            return Ok(());
        }
        let status =
            ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"];
        let arguments = [harmless, status.map(str::to_owned).to_vec()].concat();
        let said = self.judged(path, git.run(&arguments))?;
        if let Some(first) = said.split(|&byte| byte == 0).find(|record| record.len() > 3) {
            let first = OsStr::from_bytes(&first[3..]);
            let what = format!("has changes that are not committed (first: `{}`)", ShownPath(Path::new(first)));
            return Err(self.refuse(path, what, Remedy::CommitNestedOrForce));
        }
        if repository.starts_with(&self.root) || fs_err::symlink_metadata(repository.join("commondir")).is_err() {
            return Ok(());
        }
        self.check_registered(path, &git, &repository)
    }

    /// Returns whether git's own files of all operations are the same in a repository at that path in a worktree that stays, as far as they are
    /// single files.
    fn is_unfinished_elsewhere(&self, path: &Path, repository: &Path) -> bool {
        let same = |other: &PathBuf| {
            UNFINISHED.iter().all(|(name, _)| match fs_err::read(repository.join(name)) {
                Ok(text) => fs_err::read(other.join(".git").join(name)).is_ok_and(|there| there == text),
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            })
        };
        self.others_at(path).iter().any(same)
    }

    /// Checks a worktree of a repository that stays, this one or another. Its commits stay with that repository.
    fn check_registered(&self, path: &Path, git: &Git, entry: &Path) -> Result<()> {
        if fs_err::symlink_metadata(entry.join("locked")).is_ok() {
            return Err(self.refuse(path, "is a worktree that is locked", Remedy::UnlockNestedOrForce));
        }
        let loose = ["rev-list", "--max-count=1", "HEAD", "--not", "--branches", "--tags", "--remotes"];
        // A branch without a commit has nothing to lose.
        let loose = git.output(&loose)?;
        if !loose.stdout.is_empty() {
            let what = "is a worktree with commits that no branch or tag has";
            return Err(self.refuse(path, what, Remedy::BranchNestedOrForce));
        }
        Ok(())
    }

    /// Returns the repository of a directory with a `.git`; `None` if it has none.
    fn repository_of(&self, path: &Path, files: &Path) -> Result<Option<PathBuf>> {
        let pointer = files.join(".git");
        if pointer.is_dir() {
            let repository = real(&pointer);
            return Ok(fs_err::symlink_metadata(repository.join("HEAD")).is_ok().then_some(repository));
        }
        let Some(named) = fs_err::read(&pointer).ok().as_deref().and_then(pointed_to) else { return Ok(None) };
        let there = plain(&files.join(named));
        match fs_err::canonicalize(&there) {
            Ok(repository) => Ok(Some(repository)),
            Err(_) => {
                let what = format!("belongs to the repository `{}`, which is not there", ShownPath(&there));
                Err(self.refuse(path, what, Remedy::RepairNestedOrForce))
            }
        }
    }

    /// Returns whether a repository is itself committed, as in the tests of programs for git.
    fn is_tracked(&self, path: &Path) -> Result<bool> {
        let words = ["--literal-pathspecs", "ls-files", "--error-unmatch", "--"].map(OsStr::new);
        let git = Git::at(&self.root);
        Ok(git.output(&[&words[..], &[path.as_os_str()]].concat())?.status.success())
    }

    /// Returns the places of that path in worktrees that stay, as far as no link leads there.
    fn others_at(&self, path: &Path) -> Vec<PathBuf> {
        let places = self.others.iter().map(|other| other.join(path));
        places.filter(|place| fs_err::canonicalize(place).is_ok_and(|real| real == *place)).collect()
    }

    /// Refuses if a repository has commits that exist nowhere else, or worktrees elsewhere that would lose their repository.
    fn check_repository(&self, path: &Path) -> Result<()> {
        let repository = self.root.join(path);
        if self.is_tracked(&path.join("HEAD"))? {
            return Ok(());
        }
        let shown = if path.ends_with(".git") { path.parent().unwrap_or(path) } else { path };
        let git = careful(&repository, &repository);
        if let Some(commit) = self.judged(shown, only_here(&git, &repository))?
            && !self.judged(shown, is_kept_by(&git, &self.others_at(path)))?
        {
            let what = format!("has commits that none of its remotes has (first: {})", &commit[..commit.len().min(12)]);
            return Err(self.refuse(shown, what, Remedy::PushNestedOrForce));
        }
        for (at, entry) in crate::repository::entries::by_worktree(&repository)? {
            if LinkedWorktree::open(&entry, &at).is_ok() && !real(&at).starts_with(&self.root) {
                let what = format!("is the repository of the worktree `{}`", ShownPath(&at));
                return Err(self.refuse(shown, what, Remedy::RemoveOtherOrForce));
            }
        }
        Ok(())
    }
}

/// A variable that has no value, which for git is also `false`.
const NOTHING: &str = "CALVE_NOTHING";

/// Returns options that keep git from running programs of a repository's own configuration while it compares files. [`NOTHING`] must
/// be set.
fn harmless(git: &Git) -> Result<Vec<String>> {
    let mut options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"].map(str::to_owned).to_vec();
    let scoped =
        ["config", "-z", "--show-scope", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$"];
    // It fails where there are none.
    let said = git.output(&scoped)?.stdout;
    let mut fields = said.split(|&byte| byte == 0);
    while let (Some(scope), Some(name)) = (fields.next(), fields.next()) {
        if scope != b"local" && scope != b"worktree" {
            continue;
        }
        let name = String::from_utf8_lossy(name);
        let Some(filter) = name.rfind('.').map(|end| &name[..end]) else { continue };
        let names = ["clean", "smudge", "process", "required"].map(|key| format!("{filter}.{key}"));
        options.extend(names.iter().flat_map(|name| trust::setting(name, "", NOTHING)));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_found_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| fs_err::create_dir_all(folder.path().join(path)).unwrap();
        let write = |path: &str| fs_err::write(folder.path().join(path), "").unwrap();
        make("a/.git/modules/m/objects/aa");
        make("a/.git/modules/m/refs");
        make("b.git/objects/bb");
        make("b.git/refs");
        make("no/objects/HEAD");
        make("shared/objects");
        make("linked.git");
        fs_err::os::unix::fs::symlink("../shared/objects", folder.path().join("linked.git/objects")).unwrap();
        fs_err::os::unix::fs::symlink("../b.git/refs", folder.path().join("linked.git/refs")).unwrap();
        for file in [".git", "a/.git/modules/m/HEAD", "b.git/HEAD", "linked.git/HEAD", "no/HEAD"] {
            write(file);
        }
        let scanned = scan_tree(folder.path(), &ScanOptions::default(), Finder::default).unwrap();
        let mut found: Vec<NestedFinding> = scanned.visitors.into_iter().flat_map(|visitor| visitor.found).collect();
        found.sort();
        let repositories =
            ["a/.git/modules/m", "b.git", "linked.git"].map(|path| NestedFinding::Repository(path.into()));
        assert_eq!(found, [&[NestedFinding::Files("a".into())][..], &repositories].concat());
    }
}
