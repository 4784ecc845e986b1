//! Decides whose work a commit or a worktree is.
//!
//! The commit decides, never the spelling of its name: a commit is somebody else's if references of pull requests have commits of it that
//! neither a branch of a remote, a tag, the main worktree, nor a worktree that the user trusts has. [`settle`] decides once for each
//! worktree, when the repository is opened, and marks those that are not trusted, so that everything afterwards sees the mark.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::error::Result;
use crate::git::Git;
use crate::paths::real;
use crate::repository::logs::{History, Log, Rewriting};
use crate::repository::references::{Namespaces, fetched_of_others};
use crate::repository::{Repository, Worktree};
use crate::trust::{
    Provenance, entry_of, has_foreign_commit, has_mark, is_untrusted, mark_or_remember, marked_commits, note_trust,
    recorded, remove_mark, trusted_commits,
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
    /// The other local branches, with `refs/heads/`.
    local: Vec<String>,
}

impl Origins {
    /// Finds the tips. `listed` is what `git for-each-ref` prints: an object and a reference on each line.
    fn new(common: &Path, settings: &[(String, String)], worktrees: &[Worktree], listed: &[u8]) -> Origins {
        let mut origins = Origins::default();
        let entries = worktrees.iter().filter_map(|worktree| worktree.entry.as_deref());
        let fetched: HashSet<String> = entries.chain([common]).flat_map(fetched_of_others).collect();
        let listed = String::from_utf8_lossy(listed);
        let tags = origins.add_references(common, &Namespaces::new(settings), worktrees, &fetched, &listed);
        origins.add_worktrees(worktrees);
        origins.others.extend(fetched);
        // git keeps no log of tags. One at the head of a pull request can have come by `git fetch origin pull/5/head:refs/tags/x`.
        let others: HashSet<&str> = origins.others.iter().map(String::as_str).collect();
        origins.own.extend(tags.into_iter().filter(|tag| !others.contains(tag)).map(str::to_owned));
        origins
    }

    /// Adds the tips of branches, local and remote, and of pull requests. Returns those of tags. FETCH_HEAD has the commits `fetched`.
    fn add_references<'l>(
        &mut self,
        common: &Path,
        namespaces: &Namespaces,
        worktrees: &[Worktree],
        fetched: &HashSet<String>,
        listed: &'l str,
    ) -> Vec<&'l str> {
        let is_bare = worktrees.first().is_none_or(|main| main.is_bare);
        let head = fs_err::read_to_string(common.join("HEAD")).unwrap_or_default();
        let bare_head = head.trim_end().strip_prefix("ref: ").filter(|_| is_bare);
        let inside: HashSet<&str> =
            worktrees.iter().filter(|one| is_marked(one)).filter_map(|one| one.branch.as_deref()).collect();
        let mut tags = Vec::new();
        for (oid, reference) in listed.lines().filter_map(|line| line.split_once(' ')) {
            let branch = reference.strip_prefix("refs/heads/");
            if namespaces.has(reference) {
                self.branches.extend(branch.map(str::to_owned));
                self.others.push(oid.to_owned());
                continue;
            }
            if reference.starts_with("refs/tags/") {
                tags.push(oid);
            }
            let is_remote = reference.starts_with("refs/remotes/");
            // What a remote's HEAD names is listed by its own name.
            if branch.is_none() && (!is_remote || reference.ends_with("/HEAD")) {
                continue;
            }
            let log = Log::of(common, reference);
            let is_forgotten = namespaces.lacks_logs() && fetched.contains(oid);
            self.others.extend(log.requests(reference).map(str::to_owned));
            if log.is_of_request(reference, oid, is_forgotten) {
                self.branches.extend(branch.map(str::to_owned));
                self.others.push(oid.to_owned());
                continue;
            }
            self.local.extend(branch.map(|_| reference.to_owned()));
            let is_project_branch = is_remote
                || bare_head == Some(reference)
                // There, a fetch writes the project's branches.
                || namespaces.has_project_branches(is_bare);
            // Of a branch that is checked out in an untrusted worktree, that one adds the tip.
            if is_project_branch && !branch.is_some_and(|branch| inside.contains(branch)) {
                self.own.push(oid.to_owned());
            }
        }
        tags
    }

    /// Adds what worktrees have checked out, and what their marks name.
    fn add_worktrees(&mut self, worktrees: &[Worktree]) {
        for worktree in worktrees {
            let entry = worktree.entry.as_deref();
            self.own.extend(entry.into_iter().flat_map(trusted_commits));
            if entry.is_some_and(has_foreign_commit) {
                self.others.extend(entry.into_iter().flat_map(marked_commits).chain(worktree.head.clone()));
            }
            // A pull request that the user has checked out there is still somebody else's to all other worktrees.
            if worktree.is_main && !worktree.branch.as_ref().is_some_and(|one| self.branches.contains(one)) {
                self.own.extend(worktree.head.clone());
            }
        }
    }

    /// Returns which of these commits are a pull request's. A commit that was made in this repository is the user's, also where a pull request
    /// has it, unless it is a pull request's commit in another form.
    fn foreign(&self, common: &Path, worktrees: &[Worktree], commits: &[&str]) -> Result<Vec<bool>> {
        let none = vec![false; commits.len()];
        if self.others.is_empty() || commits.is_empty() {
            return Ok(none);
        }
        // References that replace objects may come from others too. Commits that logs name may be gone: newer versions of git, which would look
        // for them on a partial clone's server, know the variable, and older ones the option.
        let git = Git::at(common).with("GIT_DIR", common).with("GIT_NO_REPLACE_OBJECTS", "1");
        let git = git.with("GIT_NO_LAZY_FETCH", "1");
        let list = |tips: &[&str], without: &[String]| {
            let excluded = self.own.iter().chain(without).map(|tip| format!("^{tip}\n"));
            let input: String = tips.iter().map(|commit| format!("{commit}\n")).chain(excluded).collect();
            git.fed(&["rev-list", "--parents", "--ignore-missing", "--missing=allow-any", "--stdin"], input.as_bytes())
        };
        let printed = list(commits, &[])?;
        let mut parents = parents_of(&printed);
        if parents.is_empty() {
            return Ok(none);
        }
        let history = self.history(common, worktrees);
        let earlier = earlier_forms(&history, &parents);
        let printed = if earlier.is_empty() { Vec::new() } else { list(&earlier, &[])? };
        parents.extend(parents_of(&printed));
        let mut of_others: HashSet<&str> =
            parents.keys().copied().filter(|commit| !history.made.contains(*commit)).collect();
        if of_others.is_empty() {
            return Ok(none);
        }
        let kept = list(&[commits, &earlier].concat(), &self.others)?;
        let kept = parents_of(&kept);
        of_others.retain(|commit| !kept.contains_key(commit));
        until_settled(&mut of_others, |of_others| {
            for Rewriting { old, new, .. } in &history.rewritten {
                if of_others.contains(old.as_str()) {
                    of_others.insert(new);
                }
            }
        });
        for Rewriting { old, new, onto } in &history.rewritten {
            if onto.is_some() && parents.contains_key(new.as_str()) && !of_others.contains(old.as_str()) {
                // The log of the HEAD in which each was made may be gone.
                let earlier = history_of(old, &parents, None);
                let made = history_of(new, &parents, onto.as_deref());
                of_others.retain(|commit| !made.contains(commit) || earlier.contains(commit));
            }
        }
        Ok(commits.iter().map(|commit| !history_of(commit, &parents, None).is_disjoint(&of_others)).collect())
    }

    /// Reads the logs of each HEAD and local branch that are not a pull request's.
    fn history(&self, common: &Path, worktrees: &[Worktree]) -> History {
        let mut history = History::default();
        let (marked, own): (Vec<_>, Vec<_>) =
            worktrees.iter().filter(|one| one.entry.is_some()).partition(|one| is_marked(one));
        let entries = own.into_iter().filter_map(|one| one.entry.as_deref());
        entries.chain([common]).for_each(|directory| history.read(&Log::of(directory, "HEAD")));
        self.local.iter().for_each(|branch| history.read(&Log::of(common, branch)));
        let mut of_others = History::default();
        let entries = marked.into_iter().filter_map(|one| one.entry.as_deref());
        entries.for_each(|directory| of_others.read(&Log::of(directory, "HEAD")));
        history.made.retain(|commit| !of_others.made.contains(commit));
        history
    }
}

/// Returns the commits that these, or the ones that they replaced, have replaced.
fn earlier_forms<'h>(history: &'h History, commits: &HashMap<&str, Vec<&str>>) -> Vec<&'h str> {
    let mut earlier: HashSet<&str> = HashSet::new();
    until_settled(&mut earlier, |earlier| {
        for Rewriting { old, new, .. } in history.rewritten.iter().rev() {
            if commits.contains_key(new.as_str()) || earlier.contains(new.as_str()) {
                earlier.insert(old);
            }
        }
    });
    earlier.into_iter().collect()
}

/// Adds to a set until nothing new comes: the lines of several logs have no order.
fn until_settled<'s>(set: &mut HashSet<&'s str>, mut add: impl FnMut(&mut HashSet<&'s str>)) {
    let mut before = usize::MAX;
    while before != set.len() {
        before = set.len();
        add(set);
    }
}

/// Reads the commits that `git rev-list --parents` prints.
fn parents_of(printed: &[u8]) -> HashMap<&str, Vec<&str>> {
    lines(printed).map(|mut words| (words.next().unwrap_or_default(), words.collect())).collect()
}

fn lines(printed: &[u8]) -> impl Iterator<Item = std::str::SplitAsciiWhitespace<'_>> {
    std::str::from_utf8(printed).unwrap_or_default().lines().map(str::split_ascii_whitespace)
}

/// Returns a commit and its ancestors, as far as `parents` knows them, without what is only below `until`.
fn history_of<'a>(commit: &'a str, parents: &HashMap<&'a str, Vec<&'a str>>, until: Option<&str>) -> HashSet<&'a str> {
    let (mut seen, mut waiting) = (HashSet::new(), vec![commit]);
    while let Some(commit) = waiting.pop() {
        if until != Some(commit) && seen.insert(commit) {
            waiting.extend(parents.get(commit).into_iter().flatten());
        }
    }
    seen
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
        let is_trusted = worktree.entry.as_deref().is_some_and(|entry| !trusted_commits(entry).is_empty());
        let is_on_foreign_branch = worktree.branch.as_ref().is_some_and(|branch| origins.branches.contains(branch));
        worktree.provenance = match worktree.entry {
            _ if is_marked(worktree) => Provenance::Untrusted,
            None => Provenance::Own,
            Some(_) if is_on_foreign_branch && !is_trusted => Provenance::Untrusted,
            Some(_) => {
                undecided.extend(worktree.head.clone().map(|head| (at, head)));
                if is_trusted { Provenance::TrustedByUser } else { Provenance::Own }
            }
        };
    }
    let heads: Vec<&str> = undecided.iter().map(|(_, head)| head.as_str()).collect();
    let foreign = origins.foreign(common, worktrees, &heads)?;
    for ((at, _), _) in undecided.iter().zip(foreign).filter(|(_, foreign)| *foreign) {
        worktrees[*at].provenance = Provenance::Untrusted;
    }
    for worktree in worktrees.iter().filter(|one| one.provenance.is_untrusted() && !is_marked(one)) {
        worktree.entry.iter().for_each(|entry| mark_or_remember(entry, worktree.head.as_deref()));
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
    let is_foreign = branch.is_some_and(|branch| origins.branches.contains(branch))
        || origins.foreign(common, worktrees, &[commit])?.contains(&true);
    Ok(if is_foreign { Provenance::Untrusted } else { Provenance::Own })
}

/// Returns whether there is a mark for the worktree: in its entry, or for what it lies in.
fn is_marked(worktree: &Worktree) -> bool {
    worktree.entry.as_deref().is_some_and(has_mark) || worktree.is_usable() && is_untrusted(&worktree.path)
}

/// Trusts the commit that the worktree around `path` has checked out. Returns whether the worktree was untrusted before.
pub fn trust_commit(path: &Path) -> Result<bool> {
    let real = real(path);
    let root = real.ancestors().find(|above| fs_err::symlink_metadata(above.join(".git")).is_ok());
    let Some(root) = root else { return Ok(false) };
    let Some(entry) = entry_of(root)? else { return Ok(false) };
    if let Some(commit) = Git::at(root).answer(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? {
        note_trust(&entry, &commit)?;
    }
    remove_mark(&entry)
}

/// Returns whose the worktree is that has this root. The main worktree is the user's, whatever is checked out there.
pub fn provenance_of(root: &Path) -> Result<Provenance> {
    if !is_untrusted(root) && entry_of(root)?.is_some() {
        // git may have made it, or somebody has checked out something else there since.
        Repository::open(root)?;
    }
    recorded(root)
}
