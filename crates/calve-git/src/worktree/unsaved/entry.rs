//! Finds items that exist only in git's own files of a worktree: they go when it is removed or forgotten.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::git::Git;
use crate::paths::{if_there, is_missing, path_of};
use crate::repository::logs::Log;
use crate::repository::operation::unfinished;
use crate::repository::{Repository, Worktree};
use crate::unsaved_item::{LooseCommits, UnsavedItem};
use crate::worktree::tracked::index::{GITLINK, Index};
use crate::worktree::unsaved::reflog;
use crate::worktree::unsaved::unpushed::{careful, only_here};

/// Lists the items that only the entry has, apart from its index.
pub(super) fn find(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Vec<UnsavedItem>> {
    let common = &repository.common;
    let mut items: Vec<UnsavedItem> = unfinished(entry).map(UnsavedItem::Operation).into_iter().collect();
    let detached = worktree.head.as_ref().filter(|_| worktree.branch.is_none());
    if let Some(head) = detached {
        items.extend(loose(common, std::slice::from_ref(head), &["--all"])?.map(UnsavedItem::Commits));
    }
    let mut made = reflog::made_and_left(&Log::new(entry, "HEAD"));
    if let Some(branch) = &worktree.branch {
        // The branch stays, with its log. Usually that has them all, and git need not be asked.
        let log = reflog::all(&Log::new(common, &format!("refs/heads/{branch}")));
        made.retain(|commit| !log.contains(commit));
    }
    if !made.is_empty() {
        let elsewhere: Vec<&str> = ["--all", "--reflog"].into_iter().chain(detached.map(String::as_str)).collect();
        items.extend(loose(common, &made, &elsewhere)?.map(UnsavedItem::Reflog));
    }
    items.extend(references(common, entry)?);
    items.extend(submodules(repository, worktree, entry)?);
    Ok(items)
}

/// Returns commits that `tips` reach, but not `others` or the main worktree: linked ones' HEADs and references may go.
fn loose(common: &Path, tips: &[String], others: &[&str]) -> Result<Option<LooseCommits>> {
    let git = Git::at(common).with("GIT_DIR", common);
    let asked = ["rev-list", "--ignore-missing", "--single-worktree", "--max-count=1000", "--stdin", "--not"];
    let listed = git.fed(&[&asked, others].concat(), tips.join("\n").as_bytes())?;
    Ok(LooseCommits::listed(&listed))
}

impl LooseCommits {
    pub(super) fn listed(list: &[u8]) -> Option<LooseCommits> {
        let list = String::from_utf8_lossy(list);
        let commit = list.lines().next().map(str::trim).filter(|commit| !commit.is_empty())?.to_owned();
        Some(LooseCommits { commit, count: list.lines().count() as u64 })
    }
}

/// Lists the worktree's own references to objects that the repository's references do not reach.
fn references(common: &Path, entry: &Path) -> Result<Vec<UnsavedItem>> {
    if if_there(fs_err::read_dir(entry.join("refs")))?.is_none_or(|mut all| all.next().is_none()) {
        return Ok(Vec::new());
    }
    let git = Git::at(common).with("GIT_DIR", entry);
    let format = "--format=%(objectname) %(objecttype) %(refname)";
    let own = git.run(&["for-each-ref", format, "refs/worktree", "refs/bisect", "refs/rewritten"])?;
    let mut items = Vec::new();
    for line in String::from_utf8_lossy(&own).lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(oid), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        let commits = match kind {
            "commit" => loose(common, &[oid.to_owned()], &["--all", "--reflog"])?,
            // For a tag, a tree or a file, only references show whether something else leads to it.
            _ => {
                let shared = Git::at(common).with("GIT_DIR", common);
                let is_kept = !shared.run(&["for-each-ref", "--count=1", "--points-at", oid])?.is_empty();
                (!is_kept).then(|| LooseCommits { commit: oid.to_owned(), count: 1 })
            }
        };
        items.extend(commits.map(|commits| UnsavedItem::Reference { name: name.to_owned(), commits }));
    }
    Ok(items)
}

pub(super) fn staged(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Option<UnsavedItem>> {
    if is_missing(&entry.join("index")) {
        return Ok(None);
    }
    let git = Git::at(&repository.common).with("GIT_DIR", entry);
    let said = match &worktree.head {
        Some(_) => git.run(&["diff-index", "--cached", "--name-only", "--diff-filter=AMTU", "-z", "HEAD", "--"])?,
        None => git.run(&["ls-files", "--cached", "-z"])?,
    };
    let paths: Vec<_> = said.split(|&byte| byte == 0).filter(|path| !path.is_empty()).map(path_of).collect();
    Ok((!paths.is_empty()).then_some(UnsavedItem::Staged(paths)))
}

/// Lists submodules' unfinished operations, and their commits that none of their remotes has. Their repositories are in the worktree's entry
/// (gitrepository-layout(5), `modules`) and go with it. git refuses to remove any worktree with submodules.
fn submodules(repository: &Repository, worktree: &Worktree, entry: &Path) -> Result<Vec<UnsavedItem>> {
    let mut found = Vec::new();
    let modules = entry.join("modules");
    collect(&modules, &modules, &mut found)?;
    for submodule in Index::read(&entry.join("index"), repository.hash_bytes())?.entries {
        // A repository that was not moved out of the worktree (`git submodule absorbgitdirs`).
        let path = path_of(&submodule.path);
        let inside = worktree.path.join(&path).join(".git");
        if submodule.mode == GITLINK && inside.is_dir() {
            found.push((path, inside));
        }
    }
    let mut items = Vec::new();
    for (name, repository) in found {
        items.extend(unfinished(&repository).map(|operation| UnsavedItem::Operation(operation).inside(&name)));
        let commit = only_here(&careful(&repository, &repository)?, &repository)?;
        items.extend(commit.map(|commits| UnsavedItem::Unpushed(commits).inside(&name)));
    }
    Ok(items)
}

/// Collects the repositories below a directory with their names. Names may have slashes, submodules have submodules.
fn collect(all: &Path, directory: &Path, found: &mut Vec<(PathBuf, PathBuf)>) -> Result<()> {
    for entry in if_there(fs_err::read_dir(directory))?.into_iter().flatten() {
        let path = entry?.path();
        if !fs_err::symlink_metadata(&path)?.is_dir() {
            continue;
        }
        if !is_missing(&path.join("HEAD")) {
            found.push((path.strip_prefix(all).unwrap_or(&path).to_path_buf(), path.clone()));
            collect(all, &path.join("modules"), found)?;
        } else {
            collect(all, &path, found)?;
        }
    }
    Ok(())
}
