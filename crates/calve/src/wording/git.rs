//! Words for calve-git: what to type next, and what a repaired reference means.

use std::path::Path;

use calve_core::ShownPath;
use calve_git::escape::{Explanation, Finding, ReferenceKind};
use calve_git::remote::{Notice, NoticeCode, TransferFailure};
use calve_git::worktree::AddWarning;
use calve_git::{Remedy, UnfinishedOperation};

/// Says what to do next, in one sentence without a full stop.
pub(crate) fn hint(remedy: &Remedy) -> String {
    match remedy {
        Remedy::RenameBranch(branch) => {
            format!("rename it (`git branch -m {} NEW`), then run this again", ShownPath(branch))
        }
        Remedy::ListPullRequests(remote) => {
            format!("`git ls-remote {} 'refs/pull/*/head' 'refs/merge-requests/*/head'` lists them", ShownPath(remote))
        }
        Remedy::NameRemote(remote) => format!(
            "name one of them as it is written here, or have git prefer a remote: `git config checkout.defaultRemote {}`",
            ShownPath(remote)
        ),
        Remedy::FetchBranch { remote, branch, is_followed } => {
            let (remote, branch) = (ShownPath(remote), ShownPath(branch));
            let follow = match is_followed {
                true => String::new(),
                false => format!("git remote set-branches --add {remote} {branch} && "),
            };
            format!(
                "`{follow}git fetch {remote} {branch}` gets it if it is there; `--base HEAD` makes a new branch instead"
            )
        }
        Remedy::FinishElsewhere(operation) => format!(
            "finish that, or abandon it with `{}`; `--detach` checks out the commit without the branch",
            abort(*operation)
        ),
        Remedy::FinishOrForce(operation) => {
            format!("finish it, or abandon it with `{}`; `-f` loses it", abort(*operation))
        }
        Remedy::BranchOrForce(commit) => {
            format!("keep them with `git branch NAME {}`, or pass `-f` to lose them", &commit[..commit.len().min(12)])
        }
        Remedy::KeepHiddenOrForce(mark) => format!(
            "keep a copy elsewhere, or run `git update-index --no-{} FILE` and commit it; `-f` loses it",
            mark.name()
        ),
        Remedy::RemoveLeases(file) => {
            format!("remove it (`rm {}`): worktrees then get ports anew", ShownPath(file))
        }
        other => {
            let fixed = repository(other).or_else(|| add(other)).or_else(|| remove(other)).or_else(|| remote(other));
            fixed.unwrap_or("see `calve --help`").to_owned()
        }
    }
}

/// Returns the command that abandons what git is doing.
fn abort(operation: UnfinishedOperation) -> &'static str {
    match operation {
        UnfinishedOperation::Rebase | UnfinishedOperation::RebaseOrAm => "git rebase --abort",
        UnfinishedOperation::Merge => "git merge --abort",
        UnfinishedOperation::CherryPick => "git cherry-pick --abort",
        UnfinishedOperation::Revert => "git revert --abort",
        UnfinishedOperation::Bisect => "git bisect reset",
    }
}

fn repository(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::InstallGit => "install git, and check that it is in PATH",
        Remedy::CorrectPath => "check the spelling of the path",
        Remedy::RaiseOpenFiles => "this shell permits too few open files: `ulimit -n 1024` permits more",
        Remedy::RunGitCommand => "that is git's own message; run the same git command there to look into it",
        Remedy::CorrectConfig => "`calve worktree add --help` lists the tables and keys that the file may have",
        Remedy::NamePlaceInLocalConfig => {
            "name the place under `[worktree] path` in `.calve.local.toml`, and do not have git track that file"
        }
        Remedy::CheckPath => "check that the path exists, has room and may be written to, then try again",
        Remedy::RunAgain => "run it again",
        Remedy::EnterRepository => "run it inside a git repository that has a commit, or make one with `git init`",
        Remedy::EnterWorktree => "name the path of a worktree; `calve worktree list` shows them",
        Remedy::NameListedWorktree => "name one of those that `calve worktree list` shows",
        Remedy::NameLinkedWorktree => "name a linked worktree; `calve worktree list` shows them",
        Remedy::RepairOrAdd => {
            "if you moved the worktree here, run `git worktree repair`; otherwise make a new one with `calve worktree add`"
        }
        Remedy::RepairWorktree => "run `git worktree repair` in it",
        Remedy::RepairFromMain => "`git worktree repair` in the main worktree makes them name each other again",
        Remedy::RepairMovedMain => {
            "if the main worktree was moved, run `git worktree repair` in it; if it was deleted, or has forgotten this worktree, only the files \
             here are left"
        }
        Remedy::RepairLinkedPath => "`git worktree repair` in it, or with that path, makes git list it where it is",
        Remedy::Prune => {
            "`calve worktree prune` makes git forget it; if you moved the worktree, run `git worktree repair NEW-PATH` instead"
        }
        Remedy::PruneOrRepair => {
            "`calve worktree prune` makes git forget the entry and leaves the path alone; if you moved the worktree, run \
             `git worktree repair NEW-PATH` instead"
        }
        Remedy::PruneDuplicate => "`git worktree prune` makes git forget the one that is not there",
        Remedy::AllowReading => "make sure that you may read that path",
        Remedy::RemoveWithGit => "use `git worktree remove`, or `git worktree prune`",
        Remedy::AddWithGit => "use `git worktree add`, then `calve cp` for what git ignores",
        Remedy::TrustOwner => {
            "if you trust its owner, name it to git: `git config --global --add safe.directory DIRECTORY`, the directory that has \
             `.git` in it"
        }
        Remedy::UpdateGit => "this git is too old for the repository; `git --version` shows which one runs",
        Remedy::AskGitStatus => "run `git status` there; git says what is wrong with it",
        _ => return None,
    })
}

fn add(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::NameSource => {
            "run it inside a worktree, or name one with `--from`; in a bare repository make the first one with `git worktree add`"
        }
        Remedy::CommitFirst => "commit something first: a branch needs a commit",
        Remedy::NameCommitAsBranch => "leave `--base` out, and name the commit instead of BRANCH",
        Remedy::DropBaseOrRename => "leave `--base` out to check it out as it is, or name another branch",
        Remedy::DropBase => "leave `--base` out",
        Remedy::FindCommit => "`git log --all` shows the commits there are; `git fetch` gets new ones",
        Remedy::FetchOrBase => {
            "check the spelling, or fetch it first: `git fetch REMOTE NAME`, or `git fetch --tags`; `--base HEAD` makes a new branch of \
             that name"
        }
        Remedy::NameBranch => "name the branch; `git branch` lists them",
        Remedy::AddRemote => "`git remote add origin URL` first",
        Remedy::ChooseAnotherBranch => {
            "work there, or name another branch; `--detach` checks out the commit without the branch"
        }
        Remedy::CorrectBranchName => {
            "choose a name without spaces, without `..`, and without `-` at the beginning; git-check-ref-format(1) has all rules"
        }
        Remedy::FreePorts => {
            "remove worktrees that you no longer need, end programs that listen there, or choose another number in .calve.toml; then `calve env` in the worktree"
        }
        Remedy::WaitOrChooseAnotherBranch => "wait for it, or name another branch",
        Remedy::FinishMergeOrLeaveChanges => "finish it or `git merge --abort`, or leave `--dirty` out",
        Remedy::CommitOrLeaveChanges => "commit or stash the change, or leave `--dirty` out",
        Remedy::ChooseAnotherPath => "name another place with `--path`, or remove what is there",
        Remedy::GoOnline => "go online, and run it again",
        Remedy::GiveNewPath => "give the path of a directory that does not exist yet",
        Remedy::CheckWorktree => "check what is there now: something has changed it meanwhile",
        Remedy::AddWithoutConversion => "`calve worktree add` clones it file by file, which needs no conversion",
        Remedy::StopWriters => {
            "stop the programs that write there, and run it again; nothing is converted, and nothing is lost"
        }
        Remedy::LeaveDirectory => "leave the directory with it, or end it: it would go on in the old directory",
        _ => return None,
    })
}

fn remove(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::UnlockOrForce => "`git worktree unlock` it first, or pass `-f`",
        Remedy::CommitOrForce => "commit or stash them, or pass `-f` to lose them",
        Remedy::MoveAwayOrForce => "`calve worktree list` says what it is; move it away, or pass `-f`",
        Remedy::RecoverOrForget => {
            "if you moved the worktree, run `git worktree repair NEW-PATH`; otherwise `git fsck --lost-found` in the repository finds what it \
             had, and then `calve worktree remove -f` or `git worktree prune` forgets it"
        }
        Remedy::SaveEachOrForce => "commit, push, finish or copy what you need of it; `-f` loses all of it",
        Remedy::MoveIgnoredOrForce => "move those that you need out of the worktree; `-f` loses all of them",
        Remedy::KeepDataOrForce => "keep the worktree, or lose its data: calve worktree remove --lose-data",
        Remedy::GiveAge => "`--older-than AGE`, such as 0h, removes it too",
        Remedy::MoveNestedOrForce => "check what it is, and move it away; `-f` removes it",
        Remedy::CommitNestedOrForce => "commit and push them, or move it away; `-f` loses them",
        Remedy::PushNestedOrForce => "push them, or move it away; `-f` loses them",
        Remedy::UnlockNestedOrForce => "run `git worktree unlock` on it first, or pass `-f`",
        Remedy::BranchNestedOrForce => "keep them with `git branch NAME HEAD` in it; `-f` loses them",
        Remedy::RepairNestedOrForce => {
            "if it was moved, run `git worktree repair` in it, so that uncommitted work can be found; `-f` removes it"
        }
        Remedy::RemoveOtherOrForce => "remove that one first; `-f` leaves it without a repository",
        _ => return None,
    })
}

fn remote(remedy: &Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::GiveUrl => {
            "give `https://HOST/PATH`, `ssh://USER@HOST/PATH`, `USER@HOST:PATH`, `git://HOST/PATH`, `file:///PATH` or a directory \
             (`./PATH` when it begins with a dash)"
        }
        Remedy::NameDirectory => "give the name of the directory after the URL",
        Remedy::ReadHelp => "see `calve git --help`",
        Remedy::ChooseAnotherDirectory => {
            "name another directory, or remove that one first (`calve rm`); `.` is always taken to be in use"
        }
        Remedy::UpdateGitOrDoWithout => "install a newer git, or do without",
        Remedy::AllowFiltersOrDropRequirement => {
            "the server would have sent everything; have it support filters (`uploadpack.allowFilter`), or leave out the requirement"
        }
        Remedy::ChooseTransportOrDropRequirement => {
            "the server would have sent everything; clone by ssh, or leave out `--require depth`"
        }
        Remedy::ChoosePurposeOrDropRequirement => {
            "`--for ci` asks for a depth, `--for history` and `--for blobs` for a filter; or leave out the requirement"
        }
        Remedy::RunAgainUnchanged => "nothing was left behind; run it again",
        Remedy::CreateParent => "create the parent directory first (`mkdir -p`)",
        Remedy::Transfer(trouble) => transfer(*trouble),
        _ => return None,
    })
}

fn transfer(trouble: TransferFailure) -> &'static str {
    match trouble {
        TransferFailure::Filter => {
            "install the program of that filter, such as git-lfs, or see what it says; `git config --get-regexp '^filter'` shows its commands"
        }
        TransferFailure::Ownership => {
            "run the `git config` command that git names above if you trust the repository's owner"
        }
        TransferFailure::Refused => {
            "check that you may read it, and set up a credential helper (gitcredentials(7)) or an ssh key; git asks for a password only \
             on a terminal"
        }
        TransferFailure::NoRepository => {
            "check the spelling of the URL; many servers say so too when you may not see the repository"
        }
        TransferFailure::Unreachable => "check the host's name and your network, then try again",
        TransferFailure::NoBranch => "see what is there: git ls-remote --heads --tags URL",
        TransferFailure::NoCommit => {
            "check the id; a server may hand out only commits that a branch or tag leads to (`uploadpack.allowReachableSHA1InWant`)"
        }
        TransferFailure::CutShort => {
            "nothing was left behind; try again, and ask whoever runs the server when it happens again"
        }
        TransferFailure::SourceShallow => {
            "`git fetch --unshallow` there gives it its whole history; a new clone with `--for dev` or `--for ci` needs no more than it has"
        }
        TransferFailure::DiskFull => "free some space; `--for ci` and `--sparse` need less",
        TransferFailure::Unknown => {
            "nothing was left behind; `git ls-remote URL` shows whether the server answers at all"
        }
    }
}

/// Says what the user should know about a clone or fetch, and what helps.
pub(crate) fn notice(notice: &Notice) -> String {
    let remedy = match notice.code {
        NoticeCode::FilterIgnored => {
            "; the server has to have `uploadpack.allowFilter` set; `--require filter` fails instead"
        }
        NoticeCode::DepthIgnored => {
            "; the server, or a proxy before it, does not support shallow clones; `--require depth` fails instead"
        }
        NoticeCode::NoHead => "; see `git branch -r`",
        NoticeCode::CredentialsNotStored => "; later fetches need a credential helper (gitcredentials(7))",
        NoticeCode::QueryStored => ": if it is a token, use a credential helper instead (gitcredentials(7))",
        _ => "",
    };
    notice.message.clone() + remedy
}

/// Says what the user should know about a new worktree.
pub(crate) fn warning(warning: &AddWarning) -> String {
    match warning {
        AddWarning::EmptySubmodules => {
            "submodules are empty, as after `git worktree add`: run `git submodule update --init`".to_owned()
        }
        AddWarning::Unfiltered { filter, command, files } => format!(
            "{} stored, because the filter `{}` would run code of the pull request (`{}`); `--trust` runs it",
            if *files == 1 { "1 file is as".to_owned() } else { format!("{files} files are as") },
            ShownPath(filter),
            ShownPath(command)
        ),
        AddWarning::Git(said) => {
            let lines: Vec<String> = said.lines().map(|line| ShownPath(Path::new(line.trim())).to_string()).collect();
            format!("git says of the files that it wrote: {}", lines.join("; "))
        }
        AddWarning::Engine(warning) => warning.message.clone(),
        other => format!("{other:?}"),
    }
}

/// Says what the action on a reference out of a worktree means, or what is left to do.
pub(crate) fn explanation(finding: &Finding) -> String {
    let fixed = match &finding.explanation {
        Explanation::NamesThisTree => match finding.kind {
            ReferenceKind::Activate => "it switches this worktree's environment on",
            ReferenceKind::Shebang => "it runs with what is in this worktree",
            ReferenceKind::PyvenvCfg => "it is this worktree's environment",
            ReferenceKind::Editable => "Python imports this worktree's package",
            ReferenceKind::DistInfo => "pip and uv see this worktree's package",
            ReferenceKind::Pnpm => "pnpm takes what is installed here for its own",
            ReferenceKind::WebCache => "it serves this worktree",
            ReferenceKind::Cargo => "it lists this worktree's files",
            _ => "it leads to the same place in this worktree",
        },
        Explanation::HashesRemoved => "the hashes of the files that were repaired are left out",
        Explanation::SameTarget => {
            return format!("it leads to what it led to before: `{}`", ShownPath(&finding.names));
        }
        Explanation::TargetMissing(path) => {
            return format!(
                "there is no `{}` in this worktree; clone it here with `calve cp`, or remove the link",
                ShownPath(path)
            );
        }
        Explanation::Unwritable => {
            "the new path has characters that mean something in this file; make it anew with the tool that wrote it"
        }
        Explanation::Tracked => "git tracks it, so a repair would be a change to commit; change it in the project",
        Explanation::Unchangeable { path, reason } => {
            return format!(
                "`{}` could not be changed: {reason}; free what holds it, then run `calve worktree check --fix`",
                ShownPath(path)
            );
        }
        Explanation::RunCMake(directory) => {
            return format!(
                "its options are kept, what was generated is dropped: run `cmake {}`",
                ShownPath(directory)
            );
        }
        Explanation::MadeAgain => "the next build makes it again",
        Explanation::CompiledAgain => "the path is compiled in: cargo compiles this unit again, and what depends on it",
        Explanation::ScriptRunsAgain => "what the build script said or wrote names the other tree: cargo runs it again",
        Explanation::IndexOfAnother => {
            "git works on another worktree's index here; if that one was moved here, run `git worktree repair`, else make this \
             worktree with `calve worktree add`"
        }
        Explanation::InitSubmodule => {
            "`git submodule update --init` makes the submodule anew, when its directory is empty"
        }
        Explanation::PlainFiles => "its files are plain files here; git in it no longer works on the other worktree",
        Explanation::BorrowsObjects => {
            "the repository borrows objects; `git repack -a -d` in it takes them in, then remove the file"
        }
        _ => "see `calve worktree check --help`",
    };
    fixed.to_owned()
}
