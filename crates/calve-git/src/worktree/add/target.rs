//! The commit of a new worktree.

use calve_core::ShownPath;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::Remedy;
use crate::repository::{Repository, Worktree};
use crate::transfer_failure::TransferFailure;
use crate::trust::{Provenance, note_fetch};

/// A commit, and how HEAD names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) oid: String,
    /// Without `refs/heads/`; none for a detached HEAD.
    pub(crate) branch: Option<String>,
    /// The branch is to be made.
    pub(crate) is_new: bool,
    /// The branch that a new one follows: `origin/x`.
    pub(crate) upstream: Option<String>,
    /// The number of the pull request whose head this is.
    pub(crate) pull_request: Option<u64>,
}

pub(crate) struct TargetRequest<'a> {
    pub(crate) branch: &'a str,
    pub(crate) base: Option<&'a str>,
    pub(crate) is_detached: bool,
}

pub(crate) fn resolve(repository: &Repository, asked: &TargetRequest<'_>) -> Result<Target> {
    let git = repository.git();
    let head = head(repository, &git)?;
    if head.is_none() && !repository.worktrees.iter().any(|worktree| worktree.head.is_some()) {
        return Err(Error::refused("the repository has no commit yet", Remedy::CommitFirst));
    }
    if let Some(number) = pull_request(asked.branch) {
        return of_pull_request(repository, &git, asked, number);
    }
    if asked.is_detached {
        return detached(&git, asked);
    }
    let name = asked.branch.strip_prefix("refs/heads/").unwrap_or(asked.branch);
    check_name(&git, name)?;
    let known = Branches::of(repository, name);
    if let Some(oid) = known.local {
        if asked.base.is_some() {
            return Err(Error::refused(
                format!("the branch `{}` exists already, and only a new branch takes a base", ShownPath(name)),
                Remedy::DropBaseOrRename,
            ));
        }
        check_free(&repository.worktrees, name)?;
        return Ok(Target { oid, branch: Some(name.to_owned()), is_new: false, upstream: None, pull_request: None });
    }
    if asked.base.is_none()
        && let Some((short, oid)) = of_remote(repository, &git, name)?
    {
        if let Some(local) = Branches::of(repository, short).local {
            check_free(&repository.worktrees, short)?;
            return Ok(Target {
                oid: local,
                branch: Some(short.to_owned()),
                is_new: false,
                upstream: None,
                pull_request: None,
            });
        }
        return Ok(Target {
            oid,
            branch: Some(short.to_owned()),
            is_new: true,
            upstream: Some(name.to_owned()),
            pull_request: None,
        });
    }
    if let ([(upstream, oid)], None) = (known.remote.as_slice(), asked.base) {
        let upstream = Some(upstream.clone());
        return Ok(Target {
            oid: oid.clone(),
            branch: Some(name.to_owned()),
            is_new: true,
            upstream,
            pull_request: None,
        });
    }
    if asked.base.is_none()
        && let Some(oid) = named_commit(&git, name, known.has_tag)?
    {
        return Ok(Target { oid, branch: None, is_new: false, upstream: None, pull_request: None });
    }
    let oid = match asked.base {
        Some(base) => commit(&git, base)?.ok_or_else(|| no_commit(base))?,
        None => head.ok_or_else(|| no_commit("HEAD"))?,
    };
    Ok(Target { oid, branch: Some(name.to_owned()), is_new: true, upstream: None, pull_request: None })
}

/// Returns the branch x, and its commit there, for `origin/x`: that means the branch x that follows it.
fn of_remote<'n>(repository: &Repository, git: &Git, name: &'n str) -> Result<Option<(&'n str, String)>> {
    let Some((remote, short)) = name.split_once('/') else { return Ok(None) };
    if !repository.settings_below("remote.").any(|(key, _)| key == format!("{remote}.url")) {
        return Ok(None);
    }
    Ok(commit(git, &format!("refs/remotes/{name}"))?.map(|oid| (short, oid)))
}

/// Returns the branch that [`resolve`] would take a name for, without a base. `None`: it is a tag or a commit.
pub(crate) fn branch_of<'n>(repository: &Repository, name: &'n str) -> Result<Option<&'n str>> {
    let git = repository.git();
    let name = name.strip_prefix("refs/heads/").unwrap_or(name);
    let known = Branches::of(repository, name);
    if pull_request(name).is_some() || known.local.is_some() {
        return Ok(Some(name));
    }
    if let Some((short, _)) = of_remote(repository, &git, name)? {
        return Ok(Some(short));
    }
    let is_commit = known.remote.len() != 1 && named_commit(&git, name, known.has_tag)?.is_some();
    Ok(Some(name).filter(|_| !is_commit))
}

fn detached(git: &Git, asked: &TargetRequest<'_>) -> Result<Target> {
    if asked.base.is_some() {
        let text = "a detached worktree has no new branch, so it takes no base";
        return Err(Error::refused(text, Remedy::NameCommitAsBranch));
    }
    let oid = commit(git, asked.branch)?.ok_or_else(|| no_commit(asked.branch))?;
    Ok(Target { oid, branch: None, is_new: false, upstream: None, pull_request: None })
}

/// Returns the commit that a name stands for if it is a tag, a commit's id, or what `git describe` prints: git, too, makes no branch of
/// such a name.
fn named_commit(git: &Git, name: &str, has_tag: bool) -> Result<Option<String>> {
    if has_tag && let Some(oid) = commit(git, &format!("refs/tags/{name}"))? {
        return Ok(Some(oid));
    }
    let id = name.rsplit("-g").next().unwrap_or(name).to_ascii_lowercase();
    let is_id = id.len() >= 4 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok(if is_id { commit(git, name)?.filter(|oid| oid.starts_with(&id)) } else { None })
}

/// Returns the commit that is checked out where the user asks from. The list of worktrees has it already, but for a bare repository.
fn head(repository: &Repository, git: &Git) -> Result<Option<String>> {
    let here = repository.here.as_ref();
    match repository.worktrees.iter().find(|worktree| Some(&worktree.path) == here) {
        Some(worktree) => Ok(worktree.head.clone()),
        None => commit(git, "HEAD"),
    }
}

/// Returns the name of the branch that was checked out before in the worktree that was asked from, as `git switch -` understands it.
pub(crate) fn previous(git: &Git) -> Result<String> {
    let printed = git.answer(&["rev-parse", "--verify", "--quiet", "--symbolic-full-name", "@{-1}"])?;
    let branch = printed.as_deref().and_then(|reference| reference.strip_prefix("refs/heads/"));
    branch
        .map(str::to_owned)
        .ok_or_else(|| Error::refused("no branch was checked out before in this worktree", Remedy::NameBranch))
}

fn no_commit(revision: &str) -> Error {
    Error::refused(format!("there is no commit `{}`", ShownPath(revision)), Remedy::FindCommit)
}

/// Where the head of a pull request is until it is known: its number and the process that asks for it follow.
const FETCHED: &str = "refs/calve/pull/";

/// Removes the references of processes that were killed. Says nothing: nobody could have known of them.
pub(crate) fn sweep_fetched(git: &Git) -> Result<()> {
    let all = git.run(&["for-each-ref", "--format=%(refname)", FETCHED])?;
    for reference in String::from_utf8_lossy(&all).lines() {
        let process = reference.rsplit('-').next().and_then(|number| number.parse().ok());
        let runs = |process| rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH);
        if !process.and_then(rustix::process::Pid::from_raw).is_some_and(runs) {
            git.run(&["update-ref", "-d", reference])?;
        }
    }
    Ok(())
}

/// Parses the number in `pr/123`.
pub(crate) fn pull_request(branch: &str) -> Option<u64> {
    let digits = branch.strip_prefix("pr/")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Says in plain words why a pull request could not be fetched.
fn not_fetched(error: Error, number: u64, remote: &str) -> Error {
    let Error::Git { said, .. } = error else { return error };
    if said.contains("couldn't find remote ref") {
        let reason = format!("the remote `{}` has no pull request {number}", ShownPath(remote));
        return Error::refused(reason, Remedy::ListPullRequests(remote.to_owned()));
    }
    let first = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ");
    let reason = format!("cannot fetch pull request {number} from `{}`: {first}", ShownPath(remote));
    Error::refused(reason, Remedy::Transfer(TransferFailure::of(&said)))
}

/// Returns whose the commit is that is asked for, whatever name it was given.
pub(crate) fn provenance(repository: &Repository, target: &Target) -> Result<Provenance> {
    if target.pull_request.is_some() {
        return Ok(Provenance::Untrusted);
    }
    repository.provenance_of(&target.oid, target.branch.as_deref())
}

fn of_pull_request(repository: &Repository, git: &Git, asked: &TargetRequest<'_>, number: u64) -> Result<Target> {
    if asked.base.is_some() {
        return Err(Error::refused("a pull request has its own head, so it takes no base", Remedy::DropBase));
    }
    let name = format!("pr/{number}");
    let mut remotes: Vec<&str> =
        repository.settings_below("remote.").filter_map(|(key, _)| key.strip_suffix(".url")).collect();
    remotes.sort_unstable();
    let remote = remotes.iter().find(|&&remote| remote == "origin").or(remotes.first());
    let Some(remote) = remote else {
        return Err(Error::refused(
            format!("`{name}` is fetched from a remote, and the repository has none"),
            Remedy::AddRemote,
        ));
    };
    if !asked.is_detached {
        check_free(&repository.worktrees, &name)?;
    }
    // A reference of this process alone, for a moment: FETCH_HEAD is shared with whoever else fetches.
    let kept = format!("{FETCHED}{number}-{}", std::process::id());
    let fetch = |from: &str| {
        let refspec = format!("+refs/{from}/{number}/head:{kept}");
        let git = repository.git_to_fetch();
        git.transfer(&["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", remote, &refspec])
    };
    if let Err(first) = fetch("pull")
        // GitLab's name for them.
        && fetch("merge-requests").is_err()
    {
        return Err(not_fetched(first, number, remote));
    }
    note_fetch(&repository.common);
    let oid = commit(git, &kept)?.ok_or_else(|| no_commit(&kept))?;
    git.run(&["update-ref", "-d", &kept])?;
    if asked.is_detached {
        return Ok(Target { oid, branch: None, is_new: false, upstream: None, pull_request: Some(number) });
    }
    let local = Branches::of(repository, &name).local;
    if let Some(local) = &local
        && *local != oid
    {
        let refuse = || {
            Error::refused(
                format!("the branch `{name}` has commits that the pull request does not have"),
                Remedy::RenameBranch(name.clone()),
            )
        };
        if !git.succeeds(&["merge-base", "--is-ancestor", local, &oid])? {
            return Err(refuse());
        }
        git.run(&["update-ref", "-m", "calve: fetched", &format!("refs/heads/{name}"), &oid, local])?;
    }
    Ok(Target { oid, branch: Some(name), is_new: local.is_none(), upstream: None, pull_request: Some(number) })
}

/// Refuses a branch that a worktree has checked out already: it can be checked out in one worktree only.
pub(crate) fn check_free(worktrees: &[Worktree], name: &str) -> Result<()> {
    match worktrees.iter().find(|worktree| worktree.branch.as_deref() == Some(name)) {
        None => Ok(()),
        Some(other) if fs_err::symlink_metadata(&other.path).is_err() => Err(Error::refused(
            format!(
                "the branch `{}` is checked out in the worktree `{}`, which is gone",
                ShownPath(name),
                ShownPath(&other.path)
            ),
            Remedy::Prune,
        )),
        Some(other) => Err(Error::refused(
            format!("the branch `{}` is checked out in `{}`", ShownPath(name), ShownPath(&other.path)),
            Remedy::ChooseAnotherBranch,
        )),
    }
}

fn check_name(git: &Git, name: &str) -> Result<()> {
    let full = format!("refs/heads/{name}");
    let is_plain = !name.starts_with('-') && name != "HEAD" && name != "@";
    if is_plain && (is_simple(name) || git.succeeds(&["check-ref-format", &full])?) {
        return Ok(());
    }
    Err(Error::refused(
        format!("`{}` is not a name that a branch can have", ShownPath(name)),
        Remedy::CorrectBranchName,
    ))
}

/// Returns whether a name has nothing in it that git-check-ref-format(1) has a rule about.
fn is_simple(name: &str) -> bool {
    let is_simple = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.split('/').all(|part| !part.is_empty() && part.bytes().all(is_simple))
}

/// The branches of a name, and a tag.
struct Branches {
    local: Option<String>,
    has_tag: bool,
    /// `origin/x` and its commit, for each remote that has it.
    remote: Vec<(String, String)>,
}

impl Branches {
    fn of(repository: &Repository, name: &str) -> Branches {
        let mut known = Branches { local: None, has_tag: false, remote: Vec::new() };
        for (oid, reference) in repository.references() {
            if reference.strip_prefix("refs/heads/") == Some(name) {
                known.local = Some(oid.to_owned());
            } else if reference.strip_prefix("refs/tags/") == Some(name) {
                known.has_tag = true;
            } else if let Some(short) = reference.strip_prefix("refs/remotes/")
                && short.split_once('/').is_some_and(|(_, rest)| rest == name)
            {
                known.remote.push((short.to_owned(), oid.to_owned()));
            }
        }
        known
    }
}

/// Returns the commit that a local branch has now. `git rev-parse` would take `refs/heads/x-0-gab12` for a commit that begins with `ab12`.
pub(crate) fn branch_tip(git: &Git, branch: &str) -> Result<Option<String>> {
    let reference = format!("refs/heads/{branch}");
    // Those below it match, too.
    let listed = git.run(&["for-each-ref", "--format=%(objectname) %(refname)", &reference])?;
    let listed = String::from_utf8_lossy(&listed);
    let mut tips = listed.lines().filter_map(|line| line.split_once(' '));
    Ok(tips.find(|(_, name)| *name == reference).map(|(oid, _)| oid.to_owned()))
}

/// Returns the commit that a revision names.
pub(crate) fn commit(git: &Git, revision: &str) -> Result<Option<String>> {
    let revision = format!("{revision}^{{commit}}");
    git.answer(&["rev-parse", "--verify", "--quiet", "--end-of-options", &revision])
}
