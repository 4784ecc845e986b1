//! The meaning of a name that a worktree is asked for by: one decision for adding it, for its plan, and for agents.

use std::time::Duration;

use calve_core::internal::ShownPath;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::Remedy;
use crate::repository::{RemoteBranch, Repository};

#[derive(Debug)]
pub(crate) enum Meaning<'n> {
    Local(&'n str, String),
    /// A remote's branch without a local one of its name.
    Remote(RemoteBranch<'n>),
    /// Any other name of a commit: a tag, an id, `FETCH_HEAD`, `HEAD~1`.
    Commit(String),
    Unused(&'n str),
}

impl<'n> Meaning<'n> {
    /// Resolves a name that is no pull request's. Refuses one that git refuses, that several remotes have, or that reads like a missing revision.
    pub(crate) fn find(repository: &'n Repository, git: &Git, asked: &'n str) -> Result<Meaning<'n>> {
        let name = branch_name(asked);
        if let Err(refused) = check_name(git, name) {
            // `HEAD~1` is no branch's name, but a commit's.
            return commit(git, asked)?.map(Meaning::Commit).ok_or(refused);
        }
        if let Some(oid) = repository.object_of("refs/heads/", name) {
            return Ok(Meaning::Local(name, oid.to_owned()));
        }
        if name.len() < asked.len() {
            return Err(not_found(repository, asked));
        }
        let is_tag = repository.object_of("refs/tags/", name).is_some();
        if !is_tag && let Some(found) = repository.remote_branch(name) {
            return Ok(match repository.object_of("refs/heads/", found.branch) {
                Some(oid) => Meaning::Local(found.branch, oid.to_owned()),
                None => Meaning::Remote(found),
            });
        }
        if let Some(oid) = commit(git, name)? {
            // Since the references were listed, another process may have made the branch.
            return Ok(branch_tip(git, name)?.map_or(Meaning::Commit(oid), |tip| Meaning::Local(name, tip)));
        }
        if is_tag {
            let reason = format!("the tag `{}` names no commit", ShownPath(name));
            return Err(Error::refused(reason, Remedy::FindCommit));
        }
        let preferred = repository.setting("checkout.defaultremote");
        let mut found = repository.remotes_with(name);
        match found.iter().position(|one| found.len() == 1 || Some(one.remote) == preferred) {
            Some(one) => Ok(Meaning::Remote(found.swap_remove(one))),
            None if found.is_empty() && !is_reserved(repository, name) => Ok(Meaning::Unused(name)),
            None if found.is_empty() => Err(not_found(repository, name)),
            None => {
                let all: Vec<String> = found.iter().map(|one| format!("`{}`", ShownPath(one.name))).collect();
                let reason = format!("several remotes have a branch `{}`: {}", ShownPath(name), all.join(", "));
                Err(Error::refused(reason, Remedy::NameRemote(found[0].remote.to_owned())))
            }
        }
    }

    /// Returns the branch that a worktree would have, `None` for a commit alone.
    pub(crate) fn branch(&self) -> Option<&'n str> {
        match self {
            Meaning::Local(branch, _) | Meaning::Unused(branch) => Some(branch),
            Meaning::Remote(found) => Some(found.branch),
            Meaning::Commit(_) => None,
        }
    }
}

pub(crate) fn pull_request(branch: &str) -> Option<u64> {
    let digits = branch.strip_prefix("pr/")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns a branch's present commit. `git rev-parse` would read `refs/heads/x-0-gab12` as the short id `ab12`.
pub(crate) fn branch_tip(git: &Git, branch: &str) -> Result<Option<String>> {
    let reference = format!("refs/heads/{branch}");
    // Branches below it match, too.
    let listed = git.run(&["for-each-ref", "--format=%(objectname) %(refname)", &reference])?;
    let listed = String::from_utf8_lossy(&listed);
    let mut tips = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(tips.find(|(_, name)| *name == reference).map(|(oid, _)| oid.to_owned()))
}

pub(crate) fn commit(git: &Git, revision: &str) -> Result<Option<String>> {
    let revision = format!("{revision}^{{commit}}");
    let answer = git.answer(&["rev-parse", "--verify", "--quiet", "--end-of-options", &revision])?;
    // `^x` is an answer too: all but `x`.
    Ok(answer.filter(|oid| !oid.starts_with('^')))
}

pub(crate) fn branch_name(asked: &str) -> &str {
    asked.strip_prefix("refs/heads/").unwrap_or(asked)
}

/// Returns whether an unknown name reads like a reference or a commit from elsewhere, rather than a new branch.
fn is_reserved(repository: &Repository, name: &str) -> bool {
    // `origin` is git's name for a remote, even if there is no remote, or it has another name.
    let is_below = ["refs/", "heads/", "tags/", "remotes/", "origin/"].iter().any(|prefix| name.starts_with(prefix));
    is_id(name) || is_below || name.ends_with("_HEAD") || of_remote(repository, name).is_some()
}

/// Returns whether a name reads like an id. Short ones need digit and letter: `defaced` is a word, `20261129` a date.
fn is_id(name: &str) -> bool {
    let has = |is_such: fn(&u8) -> bool| name.as_bytes().iter().any(is_such);
    let is_short = (7..40).contains(&name.len()) && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    (is_short || [40, 64].contains(&name.len())) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Splits a name such as `origin/x` after the remote.
fn of_remote<'n>(repository: &'n Repository, name: &'n str) -> Option<(&'n str, &'n str)> {
    let below = |remote| Some((remote, name.strip_prefix(remote)?.strip_prefix('/')?));
    repository.remotes().into_iter().filter_map(below).max_by_key(|(remote, _)| remote.len())
}

fn not_found(repository: &Repository, name: &str) -> Error {
    let reason = format!("there is no branch, tag or commit `{}`", ShownPath(name));
    let bare = name.strip_prefix("refs/remotes/").or_else(|| name.strip_prefix("remotes/")).unwrap_or(name);
    let remedy = match of_remote(repository, bare) {
        Some((remote, branch)) => fetching(repository, remote, branch),
        None => Remedy::FetchOrBase,
    };
    Error::refused(reason, remedy)
}

fn fetching(repository: &Repository, remote: &str, branch: &str) -> Remedy {
    let (is_followed, remote, branch) = (repository.follows(remote, branch), remote.to_owned(), branch.to_owned());
    Remedy::FetchBranch { remote, branch, is_followed }
}

/// A slower server counts as out of reach.
const ASKED_AT_MOST: Duration = Duration::from_secs(3);

/// Refuses a new branch's name that a remote has but that is not followed here. Returns the first remote out of reach.
pub(crate) fn check_servers(repository: &Repository, name: &str) -> Result<Option<String>> {
    let mut unasked = None;
    for remote in repository.remotes() {
        // A fetch from a remote without a refspec brings nothing by itself.
        if repository.refspecs_of(remote).next().is_none() || repository.follows(remote, name) {
            continue;
        }
        let reference = format!("refs/heads/{name}");
        let git = repository.git_to_fetch();
        let asked = ["ls-remote", "--heads", "--end-of-options", remote, &reference];
        match git.ask_server(&asked, ASKED_AT_MOST)? {
            None => unasked = unasked.or_else(|| Some(remote.to_owned())),
            // It also prints names that end with this one.
            Some(listed) if listed.lines().any(|line| line.split('\t').nth(1) == Some(&reference)) => {
                let (shown, from) = (ShownPath(name), ShownPath(remote));
                let reason = format!("`{from}` has a branch `{shown}`, which is not fetched here");
                return Err(Error::refused(reason, fetching(repository, remote, name)));
            }
            Some(_) => {}
        }
    }
    Ok(unasked)
}

pub(crate) fn check_name(git: &Git, name: &str) -> Result<()> {
    let full = format!("refs/heads/{name}");
    let is_plain = !name.starts_with('-') && name != "HEAD" && name != "@";
    if is_plain && (is_simple(name) || git.succeeds(&["check-ref-format", &full])?) {
        return Ok(());
    }
    let text = format!("`{}` is not a name that a branch can have", ShownPath(name));
    Err(Error::refused(text, Remedy::CorrectBranchName))
}

/// Returns whether a name contains nothing that git-check-ref-format(1) has a rule about.
fn is_simple(name: &str) -> bool {
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.split('/').all(|part| !part.is_empty() && part.bytes().all(is_simple))
}
