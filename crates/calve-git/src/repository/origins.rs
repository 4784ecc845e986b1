//! Decides whose work a commit or a worktree is. [`decide`] does so for each worktree when the repository is opened.
//!
//! The commit decides, never the spelling of its name. It is foreign if its history has commits from a pull request or
//! an unknown source that are in no branch of a remote, no tag known to be the project's, not in the main worktree's
//! branch, and in no worktree that the user trusts. A commit that only a detached HEAD leads to has an unknown source.

use std::collections::HashSet;
use std::path::Path;

use crate::error::Result;
use crate::git::Git;
use crate::remedy::UnfinishedOperation::{Bisect, Rebase, RebaseOrAm};
use crate::repository::logs::{Certainty, History, Log};
use crate::repository::operation::{unfinished, unfinished_rebase};
use crate::repository::reference_list::{Reference, References};
use crate::repository::references::{Fetched, Namespaces, Source};
use crate::repository::remotes::Remotes;
use crate::repository::rewritten::{earlier_forms, history_of, is_explained, parents_of, rewritten};
use crate::repository::worktree::Worktree;
use crate::settings::keeps_files;
use crate::trust::{
    Provenance, forget, has_fetched, has_foreign_commit, has_lasting_mark, is_untrusted_for_good, mark_or_remember,
    marked_commits, note_fetch, remember, remember_until_asked_again, trusted_commits,
};

/// The tips that separate other people's commits from the user's.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// Tips that only pull requests have, that have an unknown source, or that an untrusted worktree has checked out.
    others: Vec<String>,
    /// Tips whose history is the user's or the project's.
    own: HashSet<String>,
    /// Own branches' tips and all past tips of remotes' branches: evidence only about a commit that no other leads to.
    reached: HashSet<String>,
    /// Local branches that are a pull request's, without `refs/heads/`.
    pub(super) branches: HashSet<String>,
    /// The other local branches, with `refs/heads/`.
    local: Vec<String>,
    /// Those that began with commits from an unknown source, without `refs/heads/`.
    doubtful: HashSet<String>,
    remotes: Remotes,
    /// git keeps its logs in a format that Calve cannot read.
    pub(super) lacks_evidence: bool,
}

struct Tip<'l> {
    oid: &'l str,
    reference: &'l str,
    /// The name of a local branch, without `refs/heads/`.
    branch: Option<&'l str>,
    is_remote: bool,
    source: Source,
    is_reached: bool,
}

impl Origins {
    fn new(common: &Path, settings: &[(String, String)], worktrees: &[Worktree], references: &References) -> Origins {
        let namespaces = Namespaces::new(settings);
        let mut origins = Origins { lacks_evidence: !keeps_files(settings), ..Origins::default() };
        let directories = || worktrees.iter().filter_map(|worktree| worktree.entry.as_deref()).chain([common]);
        let mut fetched = Fetched::default();
        directories().for_each(|directory| fetched.read(directory, &namespaces.remotes));
        let (tags, unknown) = origins.add_references(common, &namespaces, worktrees, &fetched, references);
        origins.add_worktrees(common, worktrees);
        for directory in directories() {
            let log = Log::new(directory, "HEAD");
            origins.others.extend(log.of_others("HEAD", &namespaces.remotes).map(str::to_owned));
            let rebases = log.rebases(unfinished_rebase(directory).as_ref()).into_iter();
            let rebases = rebases.filter(|rebase| rebase.certainty == Certainty::Unknown);
            origins.others.extend(rebases.map(|rebase| rebase.new));
        }
        origins.others.extend(fetched.of_others.into_keys());
        // Tags have no log, and a fetch can bring a pull request's. Until the first, all are the clone's, or made here.
        let others: HashSet<&str> = origins.others.iter().map(String::as_str).collect();
        let was_fetched = has_fetched(common) || fetched.is_any;
        if fetched.is_any {
            note_fetch(common);
        }
        let is_known = |tag: &&str| match was_fetched || !others.is_empty() {
            true => fetched.of_project.contains(*tag),
            false => true,
        };
        let (known, doubtful): (Vec<&str>, Vec<&str>) = tags.into_iter().partition(is_known);
        origins.own.extend(known.into_iter().map(str::to_owned));
        origins.others.extend(unknown.into_iter().chain(doubtful).map(str::to_owned));
        origins.remotes = namespaces.remotes;
        origins
    }

    /// Adds the tips of references. Returns the tips of tags, and those of references with unknown names, which count
    /// as foreign but do not discredit a tag on the same commit.
    fn add_references<'l>(
        &mut self,
        common: &Path,
        namespaces: &Namespaces,
        worktrees: &[Worktree],
        fetched: &Fetched,
        references: &'l References,
    ) -> (Vec<&'l str>, Vec<&'l str>) {
        let is_bare = worktrees.first().is_none_or(|main| main.is_bare);
        let head = fs_err::read_to_string(common.join("HEAD")).unwrap_or_default();
        let bare_head = head.trim_end().strip_prefix("ref: ").filter(|_| is_bare);
        let inside: HashSet<&str> =
            worktrees.iter().filter(|one| is_marked(one)).filter_map(|one| one.branch.as_deref()).collect();
        let (mut tags, mut unknown, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for Reference { oid, name: reference, .. } in references.all() {
            let Some(source) = namespaces.source_of(reference) else { continue };
            let branch = reference.strip_prefix("refs/heads/");
            let is_remote = reference.starts_with("refs/remotes/");
            if branch.is_none() && !is_remote && source == Source::Project {
                tags.push(oid);
            } else if !(is_remote && reference.ends_with("/HEAD")) {
                // The target of a remote's HEAD is listed by its own name.
                all.push(Tip { oid, reference, branch, is_remote, source, is_reached: true });
            }
        }
        let mut logged: Vec<&mut Tip<'_>> = all.iter_mut().filter(|tip| tip.source == Source::Project).collect();
        let logs = Log::of_each(common, &logged.iter().map(|tip| tip.reference).collect::<Vec<_>>());
        for (tip, log) in logged.iter_mut().zip(&logs) {
            self.others.extend(log.of_others(tip.reference, &namespaces.remotes).map(str::to_owned));
            // A branch made from a detached HEAD has that one's commits. Other logs tell which ones the user made.
            tip.is_reached = !log.begins_at_commit();
            if tip.is_remote {
                self.reached.extend(log.of_project(tip.reference, &namespaces.remotes).map(str::to_owned));
            }
            let unlogged = fetched.of_others.get(tip.oid);
            let unlogged = unlogged.filter(|_| namespaces.lacks_logs && bare_head != Some(tip.reference));
            let unlogged = unlogged.copied().unwrap_or(Source::Project);
            tip.source = log.source(tip.reference, tip.oid, unlogged, &namespaces.remotes);
        }
        for Tip { oid, reference, branch, is_remote, source, is_reached } in all {
            if source == Source::Request {
                self.branches.extend(branch.map(str::to_owned));
                self.others.push(oid.to_owned());
                continue;
            }
            self.local.extend(branch.map(|_| reference.to_owned()));
            self.reached.extend(branch.filter(|_| is_reached).map(|_| oid.to_owned()));
            if source == Source::Anybody {
                self.doubtful.extend(branch.map(str::to_owned));
                match branch {
                    // The log has named the fetched commits. The rest may be the user's.
                    Some(_) if !namespaces.lacks_logs => {}
                    None if !is_remote => unknown.push(oid),
                    _ => self.others.push(oid.to_owned()),
                }
                continue;
            }
            let is_project_branch = is_remote
                || bare_head == Some(reference)
                // In a mirror, a fetch writes the project's branches.
                || namespaces.mirrors
                || is_bare && !namespaces.has_refspecs;
            // If an untrusted worktree has the branch checked out, that worktree adds the tip.
            if is_project_branch && !branch.is_some_and(|branch| inside.contains(branch)) {
                self.own.insert(oid.to_owned());
            }
        }
        (tags, unknown)
    }

    fn add_worktrees(&mut self, common: &Path, worktrees: &[Worktree]) {
        self.own.extend(trusted_commits(common));
        for worktree in worktrees {
            let entry = worktree.entry.as_deref();
            self.own.extend(entry.into_iter().flat_map(trusted_commits));
            if entry.is_some_and(has_foreign_commit) {
                self.others.extend(entry.into_iter().flat_map(marked_commits).chain(worktree.head.clone()));
            }
            // Merged into the main worktree's branch, work is the user's. Only checked out, it is foreign elsewhere.
            let is_own = |branch: &String| !self.branches.contains(branch) && !self.doubtful.contains(branch);
            if worktree.is_main && worktree.branch.as_ref().is_some_and(is_own) {
                self.own.extend(worktree.head.clone());
            }
        }
    }

    /// Returns which commits are a pull request's. A commit made in this repository is the user's, even if a pull
    /// request has it, unless it rewrites a pull request's. A commit that neither a branch nor a known tag leads to may
    /// have been fetched by hand: `git worktree add --detach x FETCH_HEAD` leaves no record of that.
    pub(super) fn foreign(&self, common: &Path, worktrees: &[Worktree], commits: &[&str]) -> Result<Vec<bool>> {
        let none = vec![false; commits.len()];
        // Usually a worktree has just begun at a branch of the project, and git need not be asked.
        let are_reached = commits.iter().all(|commit| self.reached.contains(*commit));
        if commits.iter().all(|commit| self.own.contains(*commit)) || self.others.is_empty() && are_reached {
            return Ok(none);
        }
        // References that replace objects may be foreign too. Commits that logs name may be gone: no server is asked for
        // them.
        let git = Git::at(common).with("GIT_DIR", common).with("GIT_NO_REPLACE_OBJECTS", "1");
        let git = git.offline();
        let list = |tips: &[&str], without: Vec<&String>| {
            let excluded = self.own.iter().chain(without).map(|tip| format!("^{tip}\n"));
            let input: String = tips.iter().map(|commit| format!("{commit}\n")).chain(excluded).collect();
            git.fed(&["rev-list", "--parents", "--ignore-missing", "--missing=allow-any", "--stdin"], input.as_bytes())
        };
        let (printed, of_rebases, of_earlier);
        printed = list(commits, Vec::new())?;
        let mut parents = parents_of(&printed);
        let unreached = match are_reached || parents.is_empty() {
            true => Vec::new(),
            false => list(commits, self.reached.iter().collect())?,
        };
        let unreached = parents_of(&unreached);
        if parents.is_empty() || self.others.is_empty() && unreached.is_empty() {
            return Ok(none);
        }
        let history = self.history(common, worktrees);
        let mut tips = commits.to_vec();
        // Logs name only the last commit of a rebase, and the commits in question may be its ancestors.
        if !is_explained(&history, &parents) {
            tips.extend(history.rebased());
            of_rebases = list(&tips, Vec::new())?;
            parents.extend(parents_of(&of_rebases));
        }
        let earlier = earlier_forms(&history, &parents);
        if !earlier.is_empty() {
            tips.extend(earlier);
            of_earlier = list(&tips, Vec::new())?;
            parents.extend(parents_of(&of_earlier));
        }
        let mut of_others: HashSet<&str> =
            parents.keys().copied().filter(|commit| !history.made.contains(*commit)).collect();
        if !of_others.is_empty() {
            let kept = list(&tips, self.others.iter().collect())?;
            let kept = parents_of(&kept);
            of_others.retain(|commit| unreached.contains_key(commit) || !kept.contains_key(commit));
        }
        if of_others.is_empty() {
            return Ok(none);
        }
        let of_others = rewritten(&git, &history, &parents, of_others)?;
        Ok(commits.iter().map(|commit| !history_of(commit, &parents, None).is_disjoint(&of_others)).collect())
    }

    /// Reads the logs of every HEAD and local branch that is not a pull request's.
    fn history(&self, common: &Path, worktrees: &[Worktree]) -> History {
        let mut history = History::default();
        let (marked, own): (Vec<_>, Vec<_>) =
            worktrees.iter().filter(|one| one.entry.is_some()).partition(|one| is_marked(one));
        let entries = own.into_iter().filter_map(|one| one.entry.as_deref());
        for directory in entries.chain([common]) {
            let log = Log::new(directory, "HEAD");
            history.read(&log, &self.remotes);
            history.rewritten.extend(log.rebases(unfinished_rebase(directory).as_ref()));
        }
        let branches: Vec<&str> = self.local.iter().map(String::as_str).collect();
        Log::of_each(common, &branches).iter().for_each(|log| history.read(log, &self.remotes));
        let mut of_others = History::default();
        let entries = marked.into_iter().filter_map(|one| one.entry.as_deref());
        entries.for_each(|directory| of_others.read(&Log::new(directory, "HEAD"), &self.remotes));
        history.made.retain(|commit| !of_others.made.contains(commit));
        history.prefer_certain();
        history
    }
}

/// Decides the provenance of each worktree. Marks a pull request's without a mark: git made it, or checked one out.
pub(crate) fn decide(
    common: &Path,
    settings: &[(String, String)],
    worktrees: &mut [Worktree],
    references: &References,
) -> Result<Origins> {
    let origins = Origins::new(common, settings, worktrees, references);
    let mut undecided = Vec::new();
    for (at, worktree) in worktrees.iter_mut().enumerate() {
        let trusted = trusted_commits(worktree.entry.as_deref().unwrap_or(common));
        let is_on_foreign_branch = worktree.branch.as_ref().is_some_and(|branch| origins.branches.contains(branch));
        let mut is_foreign = false;
        match &worktree.entry {
            Some(entry) if origins.lacks_evidence => {
                let is_trusted = worktree.head.as_ref().is_some_and(|head| trusted.contains(head));
                if !is_marked(worktree) && !is_trusted {
                    remember(entry);
                }
            }
            Some(_) if is_on_foreign_branch && trusted.is_empty() => is_foreign = true,
            // A mark for its files says nothing about commits checked out since.
            Some(entry) if !has_foreign_commit(entry) => {
                let began_with = unfinished_rebase(entry).map(|rebase| rebase.commit);
                undecided.extend(worktree.head.clone().into_iter().chain(began_with).map(|one| (at, one)));
            }
            _ => {}
        }
        worktree.provenance = Provenance::new(is_foreign || is_marked(worktree), !trusted.is_empty());
    }
    let heads: Vec<&str> = undecided.iter().map(|(_, head)| head.as_str()).collect();
    let foreign = origins.foreign(common, worktrees, &heads)?;
    let foreign = undecided.iter().zip(foreign).filter(|(_, is_foreign)| *is_foreign);
    let foreign: HashSet<(usize, &str)> = foreign.map(|((at, commit), _)| (*at, commit.as_str())).collect();
    for (at, worktree) in worktrees.iter_mut().enumerate() {
        let Some(entry) = &worktree.entry else { continue };
        let is_foreign = |commit: Option<&str>| commit.is_some_and(|commit| foreign.contains(&(at, commit)));
        // Usually nothing is foreign, and there may be hundreds of worktrees.
        let began_with = if foreign.is_empty() { None } else { unfinished_rebase(entry).map(|rebase| rebase.commit) };
        // Then git has checked out a commit that the worktree will not keep.
        let is_passing = || matches!(unfinished(entry), Some(Rebase | RebaseOrAm | Bisect));
        let has_foreign = is_foreign(worktree.head.as_deref()) || is_foreign(began_with.as_deref());
        if has_foreign {
            worktree.provenance = Provenance::Untrusted;
        }
        if !has_foreign && (!worktree.provenance.is_untrusted() || is_marked(worktree)) {
            forget(entry);
        } else if has_foreign && is_passing() && !is_foreign(began_with.as_deref()) {
            remember_until_asked_again(entry);
        } else {
            mark_or_remember(entry, worktree.head.as_deref());
        }
    }
    Ok(origins)
}

/// Returns whether there is a mark for the worktree, in its entry or for a directory around it.
fn is_marked(worktree: &Worktree) -> bool {
    worktree.entry.as_deref().is_some_and(has_lasting_mark)
        || worktree.is_usable() && is_untrusted_for_good(&worktree.path)
}
