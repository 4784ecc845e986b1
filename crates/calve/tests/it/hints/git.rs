//! The hints of `calve worktree`, `calve hook` and `calve git`: how each comes about, and that it helps.

use std::path::Path;
use std::process::{Command, Output};

use crate::program::PROGRAM;
use crate::spot::Spot;

/// A hint, with a situation that shows it. All lines are the shell's, in a repository `r` of one commit.
pub(super) struct Case {
    pub(super) remedy: &'static str,
    setup: &'static str,
    /// What fails, with this hint.
    command: &'static str,
    /// The line, with `ID` for the first digits of a commit.
    hint: &'static str,
    /// What the hint says. It succeeds.
    helps: &'static str,
}

const fn case(
    remedy: &'static str,
    setup: &'static str,
    command: &'static str,
    hint: &'static str,
    helps: &'static str,
) -> Case {
    Case { remedy, setup, command, hint, helps }
}

pub(super) const CASES: &[Case] = &[
    case(
        "EnterRepository",
        "",
        "cd ..; calve worktree list",
        "run it inside a git repository that has a commit, or make one with `git init`",
        "cd ..; git init -q .; git commit -q --allow-empty -m x; calve worktree list",
    ),
    case(
        "EnterWorktree",
        "",
        "cd .git; calve worktree convert",
        "name the path of a worktree; `calve worktree list` shows them",
        "calve worktree list",
    ),
    case(
        "NameSource",
        "git clone -q --bare . ../b",
        "cd ../b; calve worktree add new",
        "run it inside a worktree, or name one with `--from`; in a bare repository make the first one with `git worktree add`",
        "cd ../b; git worktree add -q ../first main; calve worktree add --from ../first new",
    ),
    case(
        "NameListedWorktree",
        "",
        "calve worktree remove none",
        "name one of those that `calve worktree list` shows",
        "calve worktree list",
    ),
    case(
        "NameLinkedWorktree",
        "",
        "calve worktree remove .",
        "name a linked worktree; `calve worktree list` shows them",
        "calve worktree list",
    ),
    case(
        "CommitFirst",
        "git init -q ../e",
        "cd ../e; calve worktree add new",
        "commit something first: a branch needs a commit",
        "cd ../e; git commit -q --allow-empty -m x; calve worktree add new",
    ),
    case(
        "NameCommitAsBranch",
        "",
        "calve worktree add --detach new --base HEAD",
        "leave `--base` out, and name the commit instead of BRANCH",
        "calve worktree add --detach HEAD",
    ),
    case(
        "DropBaseOrRename",
        "git branch new",
        "calve worktree add new --base HEAD",
        "leave `--base` out to check it out as it is, or name another branch",
        "calve worktree add new; calve worktree add other --base HEAD",
    ),
    case("DropBase", "", "calve worktree add pr/1 --base HEAD", "leave `--base` out", "true"),
    case(
        "FindCommit",
        "",
        "calve worktree add new --base none",
        "`git log --all` shows the commits there are; `git fetch` gets new ones",
        "calve worktree add new --base $(git log --all --format=%H -1)",
    ),
    case(
        "NameBranch",
        "",
        "calve worktree add -",
        "name the branch; `git branch` lists them",
        "git branch; calve worktree add new",
    ),
    case(
        "ListPullRequests",
        "git clone -q . ../c",
        "cd ../c; calve worktree add pr/1",
        "`git ls-remote origin 'refs/pull/*/head' 'refs/merge-requests/*/head'` lists them",
        "cd ../c; git ls-remote origin 'refs/pull/*/head' 'refs/merge-requests/*/head'",
    ),
    case(
        "RenameBranch",
        "git update-ref refs/pull/1/head HEAD; git clone -q . ../c; cd ../c; git branch pr/1 $(git commit-tree -m x HEAD^{tree})",
        "cd ../c; calve worktree add pr/1",
        "rename it (`git branch -m pr/1 NEW`), then run this again",
        "cd ../c; git branch -m pr/1 NEW; calve worktree add pr/1",
    ),
    case(
        "CorrectBranchName",
        "",
        "calve worktree add 'a b'",
        "choose a name without spaces, without `..`, and without `-` at the beginning; git-check-ref-format(1) has all rules",
        "calve worktree add a-b",
    ),
    case(
        "ChooseAnotherBranch",
        "",
        "calve worktree add main",
        "work there, or name another branch; `--detach` checks out the commit without the branch",
        "calve worktree add --detach main; calve worktree add other",
    ),
    case(
        "FinishElsewhere",
        "git switch -qc side; echo more >>file; git commit -qam more; git switch -q main; echo 2 >file; git commit -qam 2; git switch -q side; git rebase -q main || true",
        "calve worktree add --from . side",
        "finish that, or abandon it with `git rebase --abort`; `--detach` checks out the commit without the branch",
        "git rebase --abort; git switch -q main; calve worktree add side",
    ),
    case(
        "FinishMergeOrLeaveChanges",
        "git switch -qc side; echo more >>file; git commit -qam more; git switch -q main; echo 2 >file; git commit -qam 2; git merge -q side || true",
        "calve worktree add --dirty new",
        "finish it or `git merge --abort`, or leave `--dirty` out",
        "git merge --abort; calve worktree add --dirty new",
    ),
    case(
        "CommitOrLeaveChanges",
        "echo more >>file; git commit -qam more; echo 3 >file",
        "calve worktree add --dirty new --base HEAD~1",
        "commit or stash the change, or leave `--dirty` out",
        "git stash -q; calve worktree add --dirty new --base HEAD~1",
    ),
    case(
        "ChooseAnotherPath",
        "mkdir ../there",
        "calve worktree add new --path ../there",
        "name another place with `--path`, or remove what is there",
        "calve worktree add new --path ../other; calve rm ../there; calve worktree add more --path ../there",
    ),
    case(
        "CorrectConfig",
        "printf '[worktree]
bogus = 1
' >.calve.toml",
        "calve worktree add new",
        "`calve worktree add --help` lists the tables and keys that the file may have",
        "calve worktree add --help; rm .calve.toml; calve worktree add new",
    ),
    case(
        "UnlockOrForce",
        "calve worktree add -q new; git worktree lock ../r.new",
        "calve worktree remove new",
        "`git worktree unlock` it first, or pass `-f`",
        "git worktree unlock ../r.new; calve worktree remove new",
    ),
    case(
        "CommitOrForce",
        "calve worktree add -q new; echo 2 >../r.new/file",
        "calve worktree remove new",
        "commit or stash them, or pass `-f` to lose them",
        "git -C ../r.new stash -q; calve worktree remove new",
    ),
    case(
        "FinishOrForce",
        "git switch -qc side; echo more >>file; git commit -qam more; git switch -q main; echo 2 >file; git commit -qam 2; calve worktree add -q new --base side; git -C ../r.new rebase -q main || true",
        "calve worktree remove ../r.new",
        "finish it, or abandon it with `git rebase --abort`; `-f` loses it",
        "git -C ../r.new rebase --abort; calve worktree remove new",
    ),
    case(
        "BranchOrForce",
        "calve worktree add -q --detach HEAD --path ../new; git -C ../new commit -q --allow-empty -m x",
        "calve worktree remove ../new",
        "keep them with `git branch NAME ID`, or pass `-f` to lose them",
        r#"eval "$(echo "$HINT" | cut -d'`' -f2)"; calve worktree remove ../new"#,
    ),
    case(
        "KeepHiddenOrForce",
        "calve worktree add -q new; git -C ../r.new update-index --skip-worktree file; echo 2 >../r.new/file",
        "calve worktree remove new",
        "keep a copy elsewhere, or run `git update-index --no-skip-worktree FILE` and commit it; `-f` loses it",
        "git -C ../r.new update-index --no-skip-worktree file; git -C ../r.new commit -qam x; calve worktree remove new",
    ),
    case(
        "MoveNestedOrForce",
        "calve worktree add -q new; git init -q ../r.new/n; echo broken >../r.new/n/.git/HEAD; git -C ../r.new status >/dev/null || true; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "check what it is, and move it away; `-f` removes it",
        "mv ../r.new/n ..; calve worktree remove new",
    ),
    case(
        "CommitNestedOrForce",
        "calve worktree add -q new; git clone -q . ../r.new/n; echo 2 >../r.new/n/file; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "commit and push them, or move it away; `-f` loses them",
        "git -C ../r.new/n commit -qam x; git -C ../r.new/n push -q origin HEAD:new2; calve worktree remove new",
    ),
    case(
        "PushNestedOrForce",
        "calve worktree add -q new; git clone -q . ../r.new/n; git -C ../r.new/n commit -q --allow-empty -m x; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "push them, or move it away; `-f` loses them",
        "git -C ../r.new/n push -q origin HEAD:new2; calve worktree remove new",
    ),
    case(
        "UnlockNestedOrForce",
        "calve worktree add -q new; git clone -q . ../o; git -C ../o worktree add -q ../r.new/n -b n; git -C ../o worktree lock ../r.new/n; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "run `git worktree unlock` on it first, or pass `-f`",
        "git -C ../r.new/n worktree unlock .; calve worktree remove new",
    ),
    case(
        "BranchNestedOrForce",
        "calve worktree add -q new; git clone -q . ../o; git -C ../o worktree add -q --detach ../r.new/n; git -C ../r.new/n commit -q --allow-empty -m x; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "keep them with `git branch NAME HEAD` in it; `-f` loses them",
        "git -C ../r.new/n branch NAME HEAD; calve worktree remove new",
    ),
    case(
        "RepairNestedOrForce",
        "calve worktree add -q new; git clone -q . ../o; git -C ../o worktree add -q ../n; mv ../n ../r.new/n; mv ../o ../o2; echo n >>.git/info/exclude",
        "calve worktree remove new",
        "if it was moved, run `git worktree repair` in it, so that uncommitted work can be found; `-f` removes it",
        "mv ../o2 ../o; git -C ../o worktree repair ../r.new/n; calve worktree remove new",
    ),
    case(
        "RemoveOtherOrForce",
        "calve worktree add -q new; git clone -q . ../r.new/o; git -C ../r.new/o worktree add -q ../../ow; echo o >>.git/info/exclude",
        "calve worktree remove new",
        "remove that one first; `-f` leaves it without a repository",
        "git -C ../r.new/o worktree remove ../../ow; calve worktree remove new",
    ),
    case(
        "PushSubmoduleOrForce",
        "git clone -q . ../s; git -c protocol.file.allow=always submodule --quiet add ../s sub; git commit -qm sub; calve worktree add -q new; git -C ../r.new -c protocol.file.allow=always submodule --quiet update --init; git -C ../r.new/sub commit -q --allow-empty -m x; git -C ../r.new commit -qam x",
        "calve worktree remove new",
        "push them, or pass `-f` to lose them",
        "git -C ../r.new/sub push -q origin HEAD:refs/heads/new2; calve worktree remove new",
    ),
    case(
        "RecoverStaged",
        "calve worktree add -q new; echo staged >../r.new/s; git -C ../r.new add s; rm -rf ../r.new",
        "calve worktree remove new",
        "`git fsck --lost-found` in the repository finds them; then `-f` or `git worktree prune` forgets the entry",
        "git fsck --lost-found; calve worktree remove -f new",
    ),
    case(
        "Prune",
        "calve worktree add -q new; rm -rf ../r.new",
        "calve worktree add new",
        "`calve worktree prune` makes git forget it",
        "calve worktree prune; calve worktree add new",
    ),
    case(
        "PruneOrRepair",
        "calve worktree add -q new; mv ../r.new ../moved; git init -q ../r.new",
        "calve worktree remove new",
        "`calve worktree prune` makes git forget the entry and leaves the path alone; if you moved the worktree, run `git worktree repair NEW-PATH` instead",
        "git worktree repair ../moved; calve worktree remove new",
    ),
    case(
        "PruneDuplicate",
        "calve worktree add -q one; calve worktree add -q two; cat .git/worktrees/r.one/gitdir >.git/worktrees/r.two/gitdir",
        "calve worktree remove one",
        "`git worktree prune` makes git forget the one that is not there",
        "git worktree prune; calve worktree remove one",
    ),
    case(
        "RepairOrAdd",
        "calve worktree add -q new; cp -r ../r.new ../copy",
        "cd ../copy; calve worktree convert",
        "if you moved the worktree here, run `git worktree repair`; otherwise make a new one with `calve worktree add`",
        "mv ../r.new ../old; cd ../copy; git worktree repair; calve worktree list",
    ),
    case(
        "RepairFromMain",
        "calve worktree add -q new; rm ../r.new/.git",
        "calve worktree remove new",
        "`git worktree repair` in the main worktree makes them name each other again",
        "git worktree repair; calve worktree remove new",
    ),
    case(
        "RepairMovedMain",
        "",
        "calve worktree add -q new; mv ../r ../r2; cd ../r.new; calve worktree list",
        "if the main worktree was moved, run `git worktree repair` in it; if it was deleted, or has forgotten this worktree, only the files here are left",
        "cd r2; git worktree repair ../r.new; cd ../r.new; calve worktree list",
    ),
    case(
        "RepairLinkedPath",
        "calve worktree add -q new; mv ../r.new ../real; ln -s real ../r.new",
        "calve worktree remove new",
        "`git worktree repair` in it, or with that path, makes git list it where it is",
        "git worktree repair ../real; calve worktree remove new",
    ),
    case(
        "AddWithGit",
        "git config core.repositoryFormatVersion 1; git config core.worktree $PWD",
        "calve worktree add new",
        "use `git worktree add`, then `calve cp` for what git ignores",
        "git worktree add -q ../new",
    ),
    case(
        "RunGitCommand",
        "echo broken >.git/index",
        "calve worktree add new",
        "that is git's own message; run the same git command there to look into it",
        "git status 2>&1 | grep -q index; rm .git/index; git reset -q; calve worktree add new",
    ),
    case(
        "GiveUrl",
        "",
        "calve git clone 'ext::sh -c true' x",
        "give `https://HOST/PATH`, `ssh://USER@HOST/PATH`, `USER@HOST:PATH`, `git://HOST/PATH`, `file:///PATH` or a directory (`./PATH` when it begins with a dash)",
        "calve git clone ./ ../x",
    ),
    case(
        "NameDirectory",
        "",
        "calve git clone file:///",
        "give the name of the directory after the URL",
        "calve git clone file://$PWD ../x",
    ),
    case(
        "ChooseAnotherDirectory",
        "mkdir -p ../x/y",
        "calve git clone . ../x",
        "name another directory, or remove that one first (`calve rm`); `.` is always taken to be in use",
        "calve rm ../x; calve git clone . ../x",
    ),
    case(
        "CreateParent",
        "",
        "calve git clone . ../no/such",
        "create the parent directory first (`mkdir -p`)",
        "mkdir -p ../no; calve git clone . ../no/such",
    ),
    case(
        "NoBranch",
        "",
        "calve git clone -q --branch none . ../x",
        "see what is there: git ls-remote --heads --tags URL",
        "git ls-remote --heads --tags .",
    ),
    case(
        "RaiseOpenFiles",
        "",
        "ulimit -n 4; calve worktree list",
        "this shell permits too few open files: `ulimit -n 1024` permits more",
        "ulimit -n 1024; calve worktree list",
    ),
    case("CorrectPath", "", "calve hook approve none", "check the spelling of the path", "calve hook approve ."),
    case(
        "DropDepthOrForce",
        "calve git clone -q . ../x",
        "cd ../x; calve git fetch --depth 1",
        "fetch without `--depth`; `--force` does it all the same",
        "cd ../x; calve git fetch",
    ),
    case(
        "AllowFiltersOrDropRequirement",
        "git config uploadpack.allowFilter false",
        "calve git clone -q --require filter --for blobs file://$PWD ../x",
        "the server would have sent everything; have it support filters (`uploadpack.allowFilter`), or leave out the requirement",
        "calve git clone -q --for blobs file://$PWD ../x; git config uploadpack.allowFilter true; calve git clone -q --require filter --for blobs file://$PWD ../y",
    ),
    case(
        "ChoosePurposeOrDropRequirement",
        "git config uploadpack.allowFilter true",
        "calve git clone -q --require filter --for ci file://$PWD ../x",
        "`--for ci` asks for a depth, `--for history` and `--for blobs` for a filter; or leave out the requirement",
        "calve git clone -q --require depth --for ci file://$PWD ../x; calve git clone -q --require filter --for history file://$PWD ../y; calve git clone -q --require filter --for blobs file://$PWD ../z",
    ),
    case(
        "NoRepository",
        "",
        "calve git clone -q file:///no/such ../x",
        "check the spelling of the URL; many servers say so too when you may not see the repository",
        "calve git clone -q file://$PWD ../x",
    ),
    case(
        "Unreachable",
        "",
        "calve git clone -q git://127.0.0.1:1/x ../x",
        "check the host's name and your network, then try again",
        "calve git clone -q . ../x",
    ),
    case(
        "UpdateGit",
        "git config core.repositoryFormatVersion 1; git config extensions.unheard true",
        "calve worktree list",
        "this git is too old for the repository; `git --version` shows which one runs",
        "git --version",
    ),
    case(
        "InstallGit",
        "",
        "PATH=${PATH%%:*} calve worktree list",
        "install git, and check that it is in PATH",
        "calve worktree list",
    ),
    case(
        "AddRemote",
        "",
        "calve worktree add pr/1",
        "`git remote add origin URL` first",
        "git remote add origin ../r; git update-ref refs/pull/1/head HEAD; calve worktree add pr/1",
    ),
    case(
        "AddRemote",
        "",
        "calve git fetch",
        "`git remote add origin URL` first",
        "git remote add origin ../r; calve git fetch",
    ),
    case(
        "AddWithoutConversion",
        "calve worktree add -q new",
        "calve worktree convert ../r.new",
        "`calve worktree add` clones it file by file, which needs no conversion",
        "calve worktree add other",
    ),
    case(
        "MoveAwayOrForce",
        "calve worktree add -q new; git worktree add -q ../r.new/in; rm -rf ../r.new/in; git init -q ../r.new/in; echo in >>.git/info/exclude",
        "calve worktree remove new",
        "`calve worktree list` says what it is; move it away, or pass `-f`",
        "calve worktree list; mv ../r.new/in ../away; git worktree prune; calve worktree remove new",
    ),
    case(
        "LeaveDirectory",
        "calve worktree add -q new",
        "cd ../r.new; calve worktree convert; false",
        "leave the directory with it, or end it: it would go on in the old directory",
        "cd ..; calve worktree convert r.new 2>&1 | grep -q 'only btrfs has subvolumes'",
    ),
];

const REPOSITORY: &str = "git init -q -b main r; cd r; echo one >file; git add file; git commit -qm first";

#[test]
fn what_a_hint_says_helps() {
    for case in CASES {
        let spot = Spot::anywhere();
        let prepared = shell(&spot, &format!("set -e; {REPOSITORY}; {}", case.setup), "");
        assert!(prepared.status.success(), "{}: {prepared:?}", case.remedy);
        let failed = shell(&repository(&spot), case.command, "");
        let said = String::from_utf8(failed.stderr).unwrap();
        let hint = said.lines().rev().find_map(|line| line.strip_prefix("hint: ")).unwrap_or_default();
        assert!(!failed.status.success(), "{}: `{}` succeeded", case.remedy, case.command);
        assert_eq!(without_id(hint), case.hint, "{}: {said}", case.remedy);
        let helped = shell(&repository(&spot), &format!("set -e; {}", case.helps), hint);
        assert!(helped.status.success(), "{}: `{}` does not help: {helped:?}", case.remedy, case.helps);
    }
}

/// The repository, unless the situation is that it was moved.
fn repository(spot: &Spot) -> std::path::PathBuf {
    Some(spot.join("r")).filter(|repository| repository.exists()).unwrap_or_else(|| spot.to_path_buf())
}

/// The hint with `ID` for the first digits of a commit.
fn without_id(hint: &str) -> String {
    let is_id = |word: &str| word.len() == 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let id = hint.split(|c: char| !c.is_alphanumeric()).find(|word| is_id(word));
    id.map_or_else(|| hint.to_owned(), |id| hint.replace(id, "ID"))
}

fn shell(directory: &Path, line: &str, hint: &str) -> Output {
    let folder = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(directory).env("PATH", path).env("HINT", hint);
    command.env("CALVE_HOME", "/nonexistent/calve").env("GIT_EDITOR", "true").env_remove("LD_LIBRARY_PATH");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    command.output().unwrap()
}
