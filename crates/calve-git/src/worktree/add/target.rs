use calve_core::internal::ShownPath;
use calve_core::internal::json::{As, FromReport};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::git::Git;
use crate::remedy::{Remedy, UnfinishedOperation};
use crate::repository::operation::holding;
use crate::repository::status::WorktreeState;
use crate::repository::{Repository, Worktree};
use crate::transfer_failure::TransferFailure;
use crate::trust::note_fetch;
use crate::worktree::add::meaning::{Meaning, branch_name, check_name, check_servers, commit, pull_request};
use crate::worktree::add::options::AddOptions;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddTarget {
    /// The branch. Null if HEAD is detached.
    // Without `refs/heads/`.
    pub branch: Option<String>,
    /// True if the branch is new.
    #[serde(rename = "new_branch")]
    pub is_new: bool,
    /// The start of the new branch: a branch, a remote's branch, or a commit. Absent without a new branch, and for a pull request.
    #[serde(rename = "new_branch_from", with = "As::<Option<String>>", skip_serializing_if = "Option::is_none")]
    pub start: Option<BranchStart>,
    /// The upstream of the new branch.
    #[serde(skip)]
    pub upstream: Option<String>,
    /// The commit.
    #[serde(rename = "head")]
    pub oid: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchStart {
    /// As the user names it: a branch, `origin/x`, or the beginning of a commit's id.
    pub name: String,
    /// A remote that is not followed in full, and could not be asked whether it has the branch.
    pub unasked: Option<String>,
}

impl FromReport<BranchStart> for String {
    fn from_report(start: &BranchStart) -> Self {
        start.name.clone()
    }
}

impl AddTarget {
    fn at(oid: String) -> AddTarget {
        AddTarget { oid, branch: None, is_new: false, start: None, upstream: None }
    }

    fn new_branch(branch: &str, oid: String, start: &str) -> AddTarget {
        let start = Some(BranchStart { name: start.to_owned(), unasked: None });
        AddTarget { branch: Some(branch.to_owned()), is_new: true, start, ..AddTarget::at(oid) }
    }
}

/// Resolves `asked`, which stands for `options.branch`.
pub(crate) fn resolve(repository: &Repository, asked: &str, options: &AddOptions) -> Result<AddTarget> {
    let base = options.base.as_deref();
    let git = repository.git();
    let here = repository.worktrees.iter().find(|worktree| Some(&worktree.path) == repository.here.as_ref());
    // The list of worktrees has it already, except for a bare repository.
    let head = here.map_or_else(|| commit(&git, "HEAD"), |here| Ok(here.head.clone()))?;
    if head.is_none() && !repository.worktrees.iter().any(|worktree| worktree.head.is_some()) {
        return Err(Error::refused("the repository has no commit yet", Remedy::CommitFirst));
    }
    if let Some(number) = pull_request(asked) {
        return from_pull_request(repository, &git, options, number);
    }
    if options.is_detached {
        if base.is_some() {
            let text = "a detached worktree has no new branch, so it takes no base";
            return Err(Error::refused(text, Remedy::NameCommitAsBranch));
        }
        return Ok(AddTarget::at(commit(&git, asked)?.ok_or_else(|| no_commit(asked))?));
    }
    if let Some(base) = base {
        return with_base(repository, &git, branch_name(asked), base);
    }
    match Meaning::find(repository, &git, asked)? {
        Meaning::Local(branch, oid) => {
            check_free(repository, branch)?;
            Ok(AddTarget { branch: Some(branch.to_owned()), ..AddTarget::at(oid) })
        }
        Meaning::Remote(found) => {
            let upstream = found.is_followed.then(|| found.name.to_owned());
            Ok(AddTarget { upstream, ..AddTarget::new_branch(found.branch, found.oid.to_owned(), found.name) })
        }
        Meaning::Commit(oid) => Ok(AddTarget::at(oid)),
        Meaning::Unused(name) => {
            let oid = head.ok_or_else(|| no_commit("HEAD"))?;
            let unasked = check_servers(repository, name)?;
            let start = here.and_then(|here| here.branch.clone());
            let start = BranchStart { name: start.unwrap_or_else(|| oid[..oid.len().min(12)].to_owned()), unasked };
            Ok(AddTarget { start: Some(start), ..AddTarget::new_branch(name, oid, "HEAD") })
        }
    }
}

fn with_base(repository: &Repository, git: &Git, name: &str, base: &str) -> Result<AddTarget> {
    check_name(git, name)?;
    if repository.object_of("refs/heads/", name).is_some() {
        let text = format!("the branch `{}` already exists, and only a new branch takes a base", ShownPath(name));
        return Err(Error::refused(text, Remedy::DropBaseOrRename));
    }
    let oid = commit(git, base)?.ok_or_else(|| no_commit(base))?;
    Ok(AddTarget::new_branch(name, oid, base))
}

/// Returns the branch that [`resolve`] would find for a name without a base, `None` for a tag or a commit.
pub(crate) fn branch_of<'n>(repository: &'n Repository, name: &'n str) -> Result<Option<&'n str>> {
    if pull_request(name).is_some() {
        return Ok(Some(name));
    }
    Ok(Meaning::find(repository, &repository.git(), name)?.branch())
}

/// Returns the branch that was checked out before in git's worktree, as `git switch -` finds it.
pub(crate) fn previous(git: &Git) -> Result<String> {
    let printed = git.answer(&["rev-parse", "--verify", "--quiet", "--symbolic-full-name", "@{-1}"])?;
    let branch = printed.as_deref().and_then(|reference| reference.strip_prefix("refs/heads/"));
    let no_branch = || Error::refused("no branch was checked out before in this worktree", Remedy::NameBranch);
    branch.map(str::to_owned).ok_or_else(no_branch)
}

/// Refuses a new branch `a/b` beside `a`, or the reverse: git has no place for both.
pub(crate) fn check_place(repository: &Repository, name: &str) -> Result<()> {
    let is_below = |name: &str, other: &str| name.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    let mut others = repository.references.all().filter_map(|one| one.name.strip_prefix("refs/heads/"));
    let Some(other) = others.find(|other| is_below(name, other) || is_below(other, name)) else { return Ok(()) };
    let text = format!("git can have no branch `{}` beside `{}`", ShownPath(name), ShownPath(other));
    Err(Error::refused(text, Remedy::ChooseAnotherName))
}

fn no_commit(revision: &str) -> Error {
    Error::refused(format!("there is no commit `{}`", ShownPath(revision)), Remedy::FindCommit)
}

/// Where a pull request's head is until it is known. Its number and the id of the asking process follow.
const FETCHED: &str = "refs/calve/pull/";

/// Removes the references of killed processes. Reports nothing: the user could not have known of them.
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

fn not_fetched(error: Error, number: u64, remote: &str) -> Error {
    let Error::Git { said, failure: Some(failure), .. } = error else { return error };
    if failure == TransferFailure::NoBranch {
        let reason = format!("the remote `{}` has no pull request {number}", ShownPath(remote));
        return Error::refused(reason, Remedy::ListPullRequests(remote.to_owned()));
    }
    let first = said.lines().next().unwrap_or_default().trim_start_matches("fatal: ");
    let reason = format!("cannot fetch pull request {number} from `{}`: {first}", ShownPath(remote));
    Error::refused(reason, Remedy::Transfer(failure))
}

fn from_pull_request(repository: &Repository, git: &Git, options: &AddOptions, number: u64) -> Result<AddTarget> {
    if options.base.is_some() {
        return Err(Error::refused("a pull request has its own head, so it takes no base", Remedy::DropBaseOrRename));
    }
    let name = format!("pr/{number}");
    let remotes = repository.remotes();
    let remote = remotes.iter().find(|&&remote| remote == "origin").or(remotes.first());
    let Some(remote) = remote else {
        let text = format!("`{name}` is fetched from a remote, and the repository has none");
        return Err(Error::refused(text, Remedy::AddRemote));
    };
    if !options.is_detached {
        check_free(repository, &name)?;
    }
    // A reference of this process alone, for a moment: FETCH_HEAD is shared with other fetches.
    let kept = format!("{FETCHED}{number}-{}", std::process::id());
    let fetch = |from: &str| {
        let refspec = format!("+refs/{from}/{number}/head:{kept}");
        let git = repository.git_to_fetch();
        let asked = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--end-of-options", remote, &refspec];
        git.fed_online(&asked, b"")
    };
    if let Err(first) = fetch("pull")
        // GitLab's name for pull requests.
        && fetch("merge-requests").is_err()
    {
        return Err(not_fetched(first, number, remote));
    }
    note_fetch(&repository.common);
    let oid = commit(git, &kept)?.ok_or_else(|| no_commit(&kept))?;
    git.run(&["update-ref", "-d", &kept])?;
    if options.is_detached {
        return Ok(AddTarget::at(oid));
    }
    let local = repository.object_of("refs/heads/", &name);
    if let Some(local) = local
        && local != oid
    {
        if !git.succeeds(&["merge-base", "--is-ancestor", local, &oid])? {
            let text = format!("the branch `{name}` has commits that the pull request does not have");
            return Err(Error::refused(text, Remedy::RenameBranch(name)));
        }
        git.run(&["update-ref", "-m", "calve: fetched", &format!("refs/heads/{name}"), &oid, local])?;
    }
    Ok(AddTarget { branch: Some(name), is_new: local.is_none(), ..AddTarget::at(oid) })
}

/// Refuses a branch that a worktree has, or will have again: a rebase and a bisection detach HEAD. git, too, keeps it for them.
pub(crate) fn check_free(repository: &Repository, name: &str) -> Result<()> {
    check_not_checked_out(&repository.worktrees, name)?;
    let names = repository.references.names_of(name);
    let Some((worktree, operation)) = repository.with_operation(|own| holding(own, &names)) else { return Ok(()) };
    let work = if operation == UnfinishedOperation::Bisect { "bisected" } else { "rebased" };
    let text = format!("the branch `{}` is being {work} in `{}`", ShownPath(name), ShownPath(&worktree.path));
    Err(Error::refused(text, Remedy::FinishElsewhere(operation)))
}

/// Refuses a branch that a worktree has checked out: only one worktree can.
pub(crate) fn check_not_checked_out(worktrees: &[Worktree], name: &str) -> Result<()> {
    let has_it = |worktree: &&Worktree| worktree.branch.as_deref() == Some(name);
    let Some(other) = worktrees.iter().find(has_it) else { return Ok(()) };
    if matches!(other.status, WorktreeState::Moved(_) | WorktreeState::Unmounted { .. }) {
        return Err(other.status.refusal(&other.path));
    }
    let path = ShownPath(&other.path);
    let (place, remedy) = match fs_err::symlink_metadata(&other.path) {
        Err(_) => {
            let remedy = if other.locked.is_some() { Remedy::UnlockAndPrune } else { Remedy::Prune };
            (format!("the worktree `{path}`, which is gone"), remedy)
        }
        Ok(_) if other.is_unfinished => (format!("`{path}`, which is unfinished"), Remedy::FinishWorktree),
        Ok(_) => (format!("`{path}`"), Remedy::ChooseAnotherBranch),
    };
    Err(Error::refused(format!("the branch `{}` is checked out in {place}", ShownPath(name)), remedy))
}
