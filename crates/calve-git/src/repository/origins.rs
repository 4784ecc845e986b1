//! Decides whose work a commit or a worktree is.
//!
//! The commit decides, never the spelling of its name: a commit is somebody else's if references of pull requests have commits of it that
//! neither a branch of a remote, a tag, the main worktree, nor a worktree that the user trusts has. [`settle`] decides once for each
//! worktree, when the repository is opened, and marks those that are not trusted, so that everything afterwards sees the mark.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::git::Git;
use crate::repository::references::{Namespaces, fetched_of_others, was_fetched_of_others};
use crate::repository::{Repository, Worktree};
use crate::trust::{
    ForeignPart, Provenance, entry_of, has_foreign_commit, has_mark, is_trusted, is_untrusted, mark, recorded,
};

/// The commits by which those of others are told from the user's.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Tips that only pull requests have, or that a worktree that is not trusted has checked out.
    others: Vec<String>,
    /// Tips whose history is the user's or the project's.
    own: Vec<String>,
    /// Local branches that are a pull request's, without `refs/heads/`.
    branches: HashSet<String>,
}

impl Origins {
    /// Finds the tips. `listed` is what `git for-each-ref` prints: an object and a reference on each line.
    fn new(common: &Path, settings: &[(String, String)], worktrees: &[Worktree], listed: &[u8]) -> Origins {
        let namespaces = Namespaces::new(settings);
        let mut origins = Origins::default();
        let is_bare = worktrees.first().is_none_or(|main| main.is_bare);
        let head = fs_err::read_to_string(common.join("HEAD")).unwrap_or_default();
        let bare_head = head.trim_end().strip_prefix("ref: ").filter(|_| is_bare);
        let inside: HashSet<&str> =
            worktrees.iter().filter(|one| is_marked(one)).filter_map(|one| one.branch.as_deref()).collect();
        for line in String::from_utf8_lossy(listed).lines() {
            let Some((oid, reference)) = line.split_once(' ') else { continue };
            let branch = reference.strip_prefix("refs/heads/");
            if namespaces.has(reference) || branch.is_some_and(|branch| was_fetched_of_others(common, branch)) {
                origins.branches.extend(branch.map(str::to_owned));
                origins.others.push(oid.to_owned());
            } else if branch.is_some_and(|branch| inside.contains(branch)) {
                // Its worktree adds the tip.
            } else if reference.starts_with("refs/remotes/")
                || reference.starts_with("refs/tags/")
                || bare_head == Some(reference)
                // There, a fetch writes the project's branches.
                || (branch.is_some() && namespaces.has_project_branches(is_bare))
            {
                origins.own.push(oid.to_owned());
            }
        }
        for worktree in worktrees {
            let Some(head) = &worktree.head else { continue };
            match worktree.entry.as_deref() {
                // A pull request that the user has checked out there is still somebody else's to all other worktrees.
                _ if worktree.is_main && worktree.branch.as_ref().is_some_and(|one| origins.branches.contains(one)) => {
                }
                _ if worktree.is_main => origins.own.push(head.clone()),
                Some(entry) if has_foreign_commit(entry) => origins.others.push(head.clone()),
                Some(entry) if is_trusted(entry) => origins.own.push(head.clone()),
                _ => {}
            }
        }
        let entries = worktrees.iter().filter_map(|worktree| worktree.entry.as_deref());
        origins.others.extend(entries.chain([common]).flat_map(fetched_of_others));
        origins
    }

    /// Returns which of these commits are a pull request's. A commit that was made in this repository (by the logs in `logs`) is the user's,
    /// also where a pull request has it.
    fn foreign(&self, common: &Path, commits: &[&str], logs: &[PathBuf]) -> Result<Vec<bool>> {
        let none = vec![false; commits.len()];
        if self.others.is_empty() || commits.is_empty() {
            return Ok(none);
        }
        // References that replace objects may come from others too.
        let git = Git::at(common).with("GIT_DIR", common).with("GIT_NO_REPLACE_OBJECTS", "1");
        let list = |without: &[String]| {
            let excluded = self.own.iter().chain(without).map(|tip| format!("^{tip}\n"));
            let input: String = commits.iter().map(|commit| format!("{commit}\n")).chain(excluded).collect();
            git.fed(&["rev-list", "--parents", "--ignore-missing", "--stdin"], input.as_bytes())
        };
        let all = list(&[])?;
        if all.is_empty() {
            return Ok(none);
        }
        let kept = list(&self.others)?;
        let parents: HashMap<&str, Vec<&str>> =
            lines(&all).map(|mut words| (words.next().unwrap_or_default(), words.collect())).collect();
        let kept: HashSet<&str> = lines(&kept).filter_map(|mut words| words.next()).collect();
        let mut of_others: HashSet<&str> = parents.keys().copied().filter(|commit| !kept.contains(commit)).collect();
        if !of_others.is_empty() {
            for commit in logs.iter().flat_map(|log| made_here(log)) {
                of_others.remove(commit.as_str());
            }
        }
        Ok(commits.iter().map(|commit| reaches(commit, &parents, &of_others)).collect())
    }
}

fn lines(printed: &[u8]) -> impl Iterator<Item = std::str::SplitAsciiWhitespace<'_>> {
    std::str::from_utf8(printed).unwrap_or_default().lines().map(str::split_ascii_whitespace)
}

/// Returns whether one of `wanted` is this commit or one of its ancestors, as far as `parents` knows them.
fn reaches<'a>(commit: &'a str, parents: &HashMap<&'a str, Vec<&'a str>>, wanted: &HashSet<&str>) -> bool {
    let (mut seen, mut waiting) = (HashSet::new(), vec![commit]);
    while let Some(commit) = waiting.pop() {
        if wanted.contains(commit) {
            return true;
        }
        if seen.insert(commit) {
            waiting.extend(parents.get(commit).into_iter().flatten());
        }
    }
    false
}

/// Returns the commits that `git commit` made, by a reflog: `OLD NEW WHO WHEN\tcommit: ...`. What came by a merge, a pull or a rebase may be
/// somebody else's.
fn made_here(log: &Path) -> Vec<String> {
    let log = fs_err::read(log).unwrap_or_default();
    let made = log.split(|&byte| byte == b'\n').filter_map(|line| {
        let tab = line.iter().position(|&byte| byte == b'\t')?;
        let new = line[..tab].split(|&byte| byte == b' ').nth(1)?;
        line[tab + 1..].starts_with(b"commit").then(|| String::from_utf8_lossy(new).into_owned())
    });
    made.collect()
}

/// Decides for every worktree whose it is, and marks those that are a pull request's and have no mark yet: git made them, or the user has
/// checked the pull request out there.
pub(crate) fn settle(
    common: &Path,
    settings: &[(String, String)],
    worktrees: &mut [Worktree],
    listed: &[u8],
) -> Result<Origins> {
    let origins = Origins::new(common, settings, worktrees, listed);
    let mut undecided = Vec::new();
    for (at, worktree) in worktrees.iter_mut().enumerate() {
        let trusted = worktree.entry.as_deref().is_some_and(is_trusted);
        worktree.provenance = match &worktree.entry {
            _ if is_marked(worktree) => Provenance::Untrusted,
            Some(_) if trusted => Provenance::TrustedByUser,
            Some(_) if worktree.branch.as_ref().is_some_and(|branch| origins.branches.contains(branch)) => {
                Provenance::Untrusted
            }
            entry => {
                undecided.extend(entry.as_ref().and(worktree.head.clone()).map(|head| (at, head)));
                Provenance::Own
            }
        };
    }
    let heads: Vec<&str> = undecided.iter().map(|(_, head)| head.as_str()).collect();
    let logs: Vec<_> = undecided.iter().filter_map(|(at, _)| worktrees[*at].branch.as_deref()).collect();
    let foreign = origins.foreign(common, &heads, &logs_of(common, worktrees, &logs))?;
    for ((at, _), _) in undecided.iter().zip(foreign).filter(|(_, foreign)| *foreign) {
        worktrees[*at].provenance = Provenance::Untrusted;
    }
    for worktree in worktrees.iter().filter(|one| one.provenance.is_untrusted() && !is_marked(one)) {
        worktree.entry.iter().try_for_each(|entry| mark(entry, ForeignPart::Commit))?;
    }
    Ok(origins)
}

/// Returns whose a commit is that is to be checked out, as `branch` if it is a local one.
pub(crate) fn of_commit(
    origins: &Origins,
    common: &Path,
    worktrees: &[Worktree],
    commit: &str,
    branch: Option<&str>,
) -> Result<Provenance> {
    if branch.is_some_and(|branch| origins.branches.contains(branch)) {
        return Ok(Provenance::Untrusted);
    }
    let logs = logs_of(common, worktrees, &branch.into_iter().collect::<Vec<_>>());
    let is_foreign = origins.foreign(common, &[commit], &logs)?.contains(&true);
    Ok(if is_foreign { Provenance::Untrusted } else { Provenance::Own })
}

/// Returns whether there is a mark for the worktree: in its entry, or for what it lies in.
fn is_marked(worktree: &Worktree) -> bool {
    worktree.entry.as_deref().is_some_and(has_mark) || worktree.is_usable() && is_untrusted(&worktree.path)
}

/// Returns the reflogs in which commits of the user may be: of each HEAD that is not a pull request's, and of these branches.
fn logs_of(common: &Path, worktrees: &[Worktree], branches: &[&str]) -> Vec<PathBuf> {
    let own = worktrees.iter().filter(|one| !is_marked(one)).filter_map(|one| one.entry.as_deref());
    let heads = own.chain([common]).map(|directory| directory.join("logs/HEAD"));
    heads.chain(branches.iter().map(|branch| common.join("logs/refs/heads").join(branch))).collect()
}

/// Returns whose the worktree is that has this root. The main worktree is the user's, whatever is checked out there.
pub fn provenance_of(root: &Path) -> Result<Provenance> {
    let provenance = recorded(root)?;
    if provenance == Provenance::Own && entry_of(root)?.is_some() {
        // git may have made it, or somebody has checked out something else there since.
        Repository::open(root)?;
        return recorded(root);
    }
    Ok(provenance)
}
