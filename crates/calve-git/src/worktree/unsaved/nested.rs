//! Finds repositories and worktrees inside a worktree, which go with it. git does not look into ignored directories.

use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};

use calve_core::CancelToken;
use calve_core::internal::{Descent, EntryKind, Folder, ScanOptions, Visitor, is_trash, scan_tree};
use calve_core::report::SkippedEntry;
use rustix::fs::{AtFlags, FileType};

use crate::error::{Error, Result};
use crate::git::Git;
use crate::paths::{is_missing, plain, pointer_in, real};
use crate::repository::operation::{UNFINISHED, unfinished};
use crate::repository::state::LinkedWorktree;
use crate::unsaved_item::{LooseCommits, UnsavedItem};
use crate::worktree::status::{Status, UntrackedEntry};
use crate::worktree::unsaved::hidden;
use crate::worktree::unsaved::unpushed::{careful, only_here, without_kept};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NestedFinding {
    /// A directory with files and a `.git`.
    Files(PathBuf),
    /// A repository: the `.git` of such a directory, or one without files.
    Repository(PathBuf),
}

#[derive(Default)]
struct Finder(Vec<NestedFinding>);

impl Visitor for Finder {
    fn entry(&mut self, folder: &Folder<'_>, name: &CStr, kind: EntryKind) -> Descent {
        // Through a link too: some tools share their contents.
        let is = |name: &CStr, expected: FileType| {
            rustix::fs::statat(folder.directory, name, AtFlags::empty())
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == expected)
        };
        match (name.to_bytes(), kind) {
            // A worktree that was removed just now.
            (name, EntryKind::Directory) if is_trash(name) => return Descent::No,
            (b".git", EntryKind::File | EntryKind::Directory | EntryKind::Symlink)
                if !folder.path.as_os_str().is_empty() =>
            {
                self.0.push(NestedFinding::Files(folder.path.to_path_buf()));
            }
            // The entries that make a directory a repository for git (`is_git_directory` in its setup.c).
            (b"HEAD", EntryKind::File | EntryKind::Symlink)
                if is(c"objects", FileType::Directory) && is(c"refs", FileType::Directory) =>
            {
                self.0.push(NestedFinding::Repository(folder.path.to_path_buf()));
            }
            // Large, and contains only objects.
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

#[derive(Default)]
pub(super) struct Nested {
    /// Work that exists nowhere outside, nor in the repository at the same path of a worktree that it was copied from.
    pub(super) items: Vec<UnsavedItem>,
    /// Ignored entries, relative to the path before them.
    pub(super) ignored: Vec<(PathBuf, Vec<UntrackedEntry>)>,
    /// Unreadable directories, which may hide more.
    pub(super) unread: Vec<SkippedEntry>,
}

impl Nested {
    /// Searches the worktree. `root` and `others`: the roots of this one and of those that stay, without links.
    pub(super) fn find(
        linked: &LinkedWorktree,
        root: &Path,
        others: &[PathBuf],
        cancel: &CancelToken,
    ) -> Result<Nested> {
        let options = ScanOptions { cancel: cancel.clone(), ..ScanOptions::default() };
        let scanned = scan_tree(&linked.path, &options, Finder::default)?;
        let mut found: Vec<NestedFinding> = scanned.visitors.into_iter().flat_map(|finder| finder.0).collect();
        found.sort();
        let outer = OuterWorktree { root, entry: real(&linked.entry), others };
        let mut nested = Nested { items: Vec::new(), ignored: Vec::new(), unread: scanned.skipped };
        for finding in found {
            let (path, items) = match finding {
                NestedFinding::Files(path) => (path.clone(), outer.files(&path, &mut nested.ignored)),
                NestedFinding::Repository(path) => {
                    let shown = if path.ends_with(".git") { path.parent().unwrap_or(&path) } else { &path };
                    (shown.to_path_buf(), outer.repository(&path))
                }
            };
            let items = match items {
                Err(Error::Git { said, .. }) => {
                    let said = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ").to_owned();
                    vec![UnsavedItem::Unreadable(said)]
                }
                items => items?,
            };
            nested.items.extend(items.into_iter().map(|item| item.inside(&path)));
        }
        Ok(nested)
    }
}

struct OuterWorktree<'w> {
    root: &'w Path,
    entry: PathBuf,
    others: &'w [PathBuf],
}

impl OuterWorktree<'_> {
    /// Lists uncommitted work, and adds the ignored files to `ignored`.
    fn files(&self, path: &Path, ignored: &mut Vec<(PathBuf, Vec<UntrackedEntry>)>) -> Result<Vec<UnsavedItem>> {
        let files = self.root.join(path);
        let repository = match self.repository_of(&files) {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(repository)) => repository,
            Err(there) => return Ok(vec![UnsavedItem::Orphaned(there)]),
        };
        let mut items = Vec::new();
        if let Some(operation) = unfinished(&repository)
            && !self.is_unfinished_elsewhere(path, &repository)
        {
            items.push(UnsavedItem::Operation(operation));
        }
        let git = careful(&files, &repository)?.with("GIT_WORK_TREE", &files);
        let others = self.others_at(path);
        // `calve worktree add` copied it from there.
        let is_kept = |name: &Path, contents: &[u8]| {
            others.iter().any(|other| fs_err::read(other.join(name)).is_ok_and(|there| there == contents))
        };
        items.extend(hidden::find(&git, &files, &is_kept)?);
        let status = Status::read(&git)?;
        let changed = status.uncommitted();
        ignored.push((path.to_path_buf(), status.ignored));
        let is_submodule = repository.starts_with(&self.entry);
        // git has checked a submodule's files, unless it was told not to.
        if !changed.is_empty() && (!is_submodule || self.is_skipped(path)?) {
            items.push(UnsavedItem::Uncommitted(changed));
        }
        // Its commits are checked with the entry.
        if is_submodule {
            return Ok(items);
        }
        if !repository.starts_with(self.root) && fs_err::symlink_metadata(repository.join("commondir")).is_ok() {
            items.extend(registered(&git, &repository)?);
        }
        Ok(items)
    }

    /// Returns whether a staying worktree's repository at `path` has the same operation files. Directories never match.
    fn is_unfinished_elsewhere(&self, path: &Path, repository: &Path) -> bool {
        let same = |other: &PathBuf| {
            UNFINISHED.iter().all(|(name, _)| match fs_err::read(repository.join(name)) {
                Ok(text) => fs_err::read(other.join(".git").join(name)).is_ok_and(|there| there == text),
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            })
        };
        self.others_at(path).iter().any(same)
    }

    /// Returns the repository that a `.git` leads to, `None` without one, or as an error the path where it is missing.
    fn repository_of(&self, files: &Path) -> std::result::Result<Option<PathBuf>, PathBuf> {
        let pointer = files.join(".git");
        if pointer.is_dir() {
            let repository = real(&pointer);
            return Ok(fs_err::symlink_metadata(repository.join("HEAD")).is_ok().then_some(repository));
        }
        let Some(named) = pointer_in(&pointer) else { return Ok(None) };
        let there = plain(&files.join(named));
        fs_err::canonicalize(&there).map(Some).map_err(|_| there)
    }

    /// Returns whether a repository is itself committed, as in the tests of git tools.
    fn is_tracked(&self, path: &Path) -> Result<bool> {
        let words = ["--literal-pathspecs", "ls-files", "--error-unmatch", "--"].map(OsStr::new);
        Git::at(self.root).succeeds(&[&words[..], &[path.as_os_str()]].concat())
    }

    /// Returns whether git was told not to look at a submodule (`git update-index --skip-worktree`).
    fn is_skipped(&self, path: &Path) -> Result<bool> {
        let words = ["--literal-pathspecs", "ls-files", "-v", "--"].map(OsStr::new);
        Ok(Git::at(self.root).run(&[&words[..], &[path.as_os_str()]].concat())?.first() == Some(&b'S'))
    }

    /// Returns that path in the worktrees that stay, if no link leads there.
    fn others_at(&self, path: &Path) -> Vec<PathBuf> {
        let places = self.others.iter().map(|other| other.join(path));
        places.filter(|place| fs_err::canonicalize(place).is_ok_and(|real| real == *place)).collect()
    }

    /// Lists a repository's commits that exist nowhere else, and worktrees elsewhere that would lose their repository.
    fn repository(&self, path: &Path) -> Result<Vec<UnsavedItem>> {
        let repository = self.root.join(path);
        if self.is_tracked(&path.join("HEAD"))? {
            return Ok(Vec::new());
        }
        let git = careful(&repository, &repository)?;
        let mut items = Vec::new();
        if let Some(commits) = only_here(&git, &repository)?
            && let Some(commits) = without_kept(&git, commits, &self.others_at(path))?
        {
            items.push(UnsavedItem::Unpushed(commits));
        }
        let mut registered = crate::repository::entries::by_worktree(&repository)?;
        registered.retain(|(at, entry)| LinkedWorktree::open(entry, at).is_ok() && !real(at).starts_with(self.root));
        items.extend(registered.into_iter().map(|(at, _)| UnsavedItem::RepositoryOf(at)));
        Ok(items)
    }
}

/// Lists the lock and the detached commits of a worktree whose repository, this one or another, stays.
fn registered(git: &Git, entry: &Path) -> Result<Vec<UnsavedItem>> {
    let mut items = Vec::new();
    if !is_missing(&entry.join("locked")) {
        items.push(UnsavedItem::Locked);
    }
    // A branch without a commit has nothing to lose.
    if let Some(head) = git.answer(&["rev-parse", "--verify", "--quiet", "HEAD"])? {
        let loose = git.run(&["rev-list", "--max-count=1000", &head, "--not", "--branches", "--tags", "--remotes"])?;
        items.extend(LooseCommits::listed(&loose).map(UnsavedItem::Commits));
    }
    Ok(items)
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
        let mut found: Vec<NestedFinding> = scanned.visitors.into_iter().flat_map(|finder| finder.0).collect();
        found.sort();
        let repositories =
            ["a/.git/modules/m", "b.git", "linked.git"].map(|path| NestedFinding::Repository(path.into()));
        assert_eq!(found, [&[NestedFinding::Files("a".into())][..], &repositories].concat());
    }
}
