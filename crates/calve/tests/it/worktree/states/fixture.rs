//! The repositories and worktrees of each state: git makes them once, and each state gets a copy.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use calve_testkit::{SplitMix64, git_command};

use super::super::repo::with_environment;
use crate::program::{Calve, calve};

/// Files of a tree that git or Calve could be made to run. In a pull request's tree, each records that it ran.
const PROGRAMS: [&str; 8] = [
    "filter.sh",
    "monitor.sh",
    "other.sh",
    ".githooks/post-checkout",
    ".githooks/post-index-change",
    ".githooks/pre-commit",
    ".githooks/reference-transaction",
    "bin/git",
];

const SETTINGS: [(&str, &str); 12] = [
    ("core.hooksPath", ".githooks"),
    ("core.fsmonitor", "./monitor.sh"),
    ("core.pager", "./other.sh"),
    ("core.editor", "./other.sh"),
    ("alias.worktree", "!./other.sh"),
    ("diff.external", "./other.sh"),
    ("diff.tool.command", "./other.sh"),
    ("diff.tool.textconv", "./other.sh"),
    ("merge.tool.driver", "./other.sh"),
    ("filter.tool.clean", "./filter.sh"),
    ("filter.tool.smudge", "./filter.sh"),
    ("gc.auto", "0"),
];

/// A repository `R` with worktrees `a` (on a branch), `b` (detached), `c` (inside of `R`), `d` (with a submodule) and `e` (of a pull
/// request that is not trusted), and a clone and a bare repository to put somewhere.
pub(super) struct Fixture {
    original: PathBuf,
    /// Calve's own state.
    home: PathBuf,
    /// The log of programs of untrusted trees that ran, one name a line.
    ran: PathBuf,
    /// The place of each state. The paths in git's files are valid only here.
    pub(super) state: PathBuf,
    /// The commit that all references of `R` have.
    pub(super) head: String,
    /// Commits that no reference has, of `R`, of the clone and of the submodule.
    pub(super) loose: [String; 3],
}

fn git(at: &Path, arguments: &[&str]) -> String {
    try_git(at, arguments).unwrap_or_else(|said| panic!("git {arguments:?}: {said}"))
}

/// Returns what git prints, or how it fails.
pub(super) fn try_git(at: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = git_command(at);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "A").env(format!("GIT_{who}_EMAIL"), "a@example.org");
        command.env(format!("GIT_{who}_DATE"), "1500000000 +0000");
    }
    let output = command.args(["-c", "protocol.file.allow=always"]).args(arguments).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// A commit of the files of HEAD that no reference has.
fn loose(at: &Path, message: &str) -> String {
    git(at, &["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", message])
}

fn write_programs(tree: &Path, says: &str) {
    for name in PROGRAMS {
        // The stand-ins that git depends on still work, or else the test would prove nothing.
        let does = match name {
            "filter.sh" => "cat",
            "bin/git" => "PATH=/usr/bin:/bin exec git \"$@\"",
            name if name.starts_with(".githooks") => "exit 0",
            _ => "exit 1",
        };
        fs_err::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs_err::write(tree.join(name), format!("#!/bin/sh\n{says}\n{does}\n")).unwrap();
        fs_err::set_permissions(tree.join(name), Permissions::from_mode(0o755)).unwrap();
    }
}

/// Makes programs that may run as filters in the worktree of a pull request: one by its name, the other because the user approved it. Returns
/// its command. A nested repository names both, which the user did not approve.
fn write_allowed(base: &Path, ran: &Path) -> String {
    let tools = base.join("tools");
    fs_err::create_dir_all(&tools).unwrap();
    for name in ["git-lfs", "approved"] {
        fs_err::write(tools.join(name), format!("#!/bin/sh\necho {name} >>'{}'\ncat\n", ran.display())).unwrap();
        fs_err::set_permissions(tools.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    let approved = tools.join("approved").display().to_string();
    fs_err::write(tools.join("gitconfig"), format!("[calve]\n\tcommand = {approved}\n")).unwrap();
    approved
}

/// Has git read the files again for which a nested repository names such a program.
pub(super) fn touch_filtered(tree: &Path) {
    for name in ["filter.sh", "other.sh"] {
        let bytes = fs_err::read(tree.join(name)).unwrap();
        fs_err::write(tree.join(name), bytes).unwrap();
    }
}

/// Makes the worktree `e` of a commit that only a pull request has.
fn pull_request(r: &Path, ran: &Path) -> PathBuf {
    let (e, theirs, says) = (r.join("../e"), r.join("../theirs"), format!("echo \"$0\" >>'{}'", ran.display()));
    git(r, &["clone", "-q", "--template=", ".", "../theirs"]);
    write_programs(&theirs, &says);
    let hook = format!("echo hook >>'{}'", ran.display());
    let hooks = format!("[hooks]\npost-add = \"{hook}\"\npre-remove = \"{hook}\"\n");
    fs_err::write(theirs.join(".calve.toml"), hooks).unwrap();
    git(&theirs, &["add", "-A"]);
    git(&theirs, &["commit", "-q", "-m", "theirs"]);
    git(r, &["fetch", "-q", "../theirs", "HEAD:refs/pull/7/head"]);
    git(r, &["worktree", "add", "-q", "--detach", "../e", "refs/pull/7/head"]);
    fs_err::remove_dir_all(theirs).unwrap();
    fs_err::canonicalize(e).unwrap()
}

impl Fixture {
    pub(super) fn new(base: &Path) -> Fixture {
        let (state, original) = (base.join("state"), base.join("original"));
        let ran = base.join("ran");
        let (r, sub, nested) = (state.join("R"), state.join("sub.git"), state.join("spare/nested"));
        fs_err::create_dir_all(&r).unwrap();
        fs_err::create_dir_all(state.join("spare")).unwrap();
        git(&r, &["init", "-q", "-b", "main", "--template="]);
        fs_err::write(r.join(".gitignore"), "ignored/\n.worktrees/\n").unwrap();
        fs_err::write(r.join(".gitattributes"), "file filter=tool diff=tool merge=tool\n").unwrap();
        fs_err::write(r.join("file"), "text\n").unwrap();
        write_programs(&r, "");
        git(&r, &["add", "-A"]);
        // A submodule that nobody initialises.
        fs_err::create_dir(r.join("empty")).unwrap();
        git(&r, &["update-index", "--add", "--cacheinfo", &format!("160000,{},empty", "1".repeat(40))]);
        git(&r, &["commit", "-q", "-m", "one"]);
        git(&state, &["clone", "-q", "--template=", "R", "spare/nested"]);
        git(&state, &["clone", "-q", "--template=", "--bare", "R", "sub.git"]);
        git(&state, &["clone", "-q", "--template=", "--bare", "R", "spare/bare.git"]);
        git(&r, &["worktree", "add", "-q", "-b", "a", "../a"]);
        git(&r, &["worktree", "add", "-q", "--detach", "../b"]);
        git(&r, &["worktree", "add", "-q", "-b", "c", ".worktrees/c"]);
        git(&r, &["worktree", "add", "-q", "-b", "d", "../d"]);
        let d = state.join("d");
        git(&d, &["submodule", "--quiet", "add", sub.to_str().unwrap(), "sub"]);
        git(&d, &["commit", "-q", "-m", "submodule"]);
        let e = pull_request(&r, &ran);
        let head = git(&r, &["rev-parse", "HEAD"]);
        let loose = [loose(&r, "loose"), loose(&nested, "loose, nested"), loose(&d.join("sub"), "loose, submodule")];
        // A bare clone has no tracking branches, so all its commits would count as unpushed. Without any, there is nothing to lose.
        git(&state.join("spare/bare.git"), &["update-ref", "-d", "refs/heads/main"]);
        for (name, value) in SETTINGS {
            git(&r, &["config", name, value]);
        }
        let says = format!("echo nested >>'{}'; cat", ran.display());
        let approved = write_allowed(base, &ran);
        for (name, value) in [
            ("core.fsmonitor", &*says),
            ("filter.tool.clean", &says),
            ("diff.external", &says),
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("filter.approved.clean", &approved),
        ] {
            git(&nested, &["config", name, value]);
        }
        fs_err::create_dir_all(nested.join(".git/info")).unwrap();
        fs_err::write(nested.join(".git/info/attributes"), "filter.sh filter=lfs\nother.sh filter=approved\n").unwrap();
        let fixture = Fixture { original, home: base.join("home"), ran, state, head, loose };
        fixture.check_programs(&e, &nested);
        fs_err::rename(&fixture.state, &fixture.original).unwrap();
        fixture
    }

    /// Has Calve list the worktrees, and mark the untrusted one.
    pub(super) fn see_request(&self, place: &str) {
        let (r, e) = (self.state.join("R"), self.state.join("e"));
        let listed = self.calve(["worktree", "list", "--json"]).within(r).succeeds().json();
        let of_e = listed["worktrees"].as_array().unwrap().iter().find(|one| one["path"] == e.to_str().unwrap());
        assert_eq!(of_e.unwrap()["untrusted"], true, "{place}: {listed}");
        assert_eq!(self.what_ran(), "", "{place}");
    }

    /// Checks that the programs run for git, but not while Calve lists the worktrees and marks the untrusted one.
    fn check_programs(&self, e: &Path, nested: &Path) {
        self.see_request("refs/pull/7/head");
        for tree in [e, nested] {
            // The size stays the same, so git has to read the file.
            fs_err::write(tree.join("file"), "next\n").unwrap();
            touch_filtered(tree);
            let mut status = git_command(tree);
            assert!(status.arg("status").env("PATH", self.path()).output().unwrap().status.success());
            let names: &[&str] =
                if tree == e { &["monitor.sh", "filter.sh"] } else { &["nested", "git-lfs", "approved"] };
            let ran = self.what_ran();
            assert!(names.iter().all(|name| ran.contains(name)), "{tree:?}: {ran}");
            fs_err::write(tree.join("file"), "text\n").unwrap();
            git(tree, &["status"]);
            self.forget_what_ran();
        }
    }

    /// `calve …` with a PATH on which the tree comes first.
    pub(super) fn calve<const N: usize>(&self, arguments: [&str; N]) -> Calve {
        let calve = with_environment(calve(arguments)).env("CALVE_HOME", &self.home);
        calve
            .env("PATH", format!("./bin:bin::{}", self.path()))
            .env("GIT_CONFIG_GLOBAL", self.tools().join("gitconfig"))
    }

    fn tools(&self) -> PathBuf {
        self.home.with_file_name("tools")
    }

    fn path(&self) -> String {
        format!("{}:{}", self.tools().display(), std::env::var("PATH").unwrap())
    }

    pub(super) fn what_ran(&self) -> String {
        fs_err::read_to_string(&self.ran).unwrap_or_default()
    }

    pub(super) fn forget_what_ran(&self) {
        let _ = fs_err::remove_file(&self.ran);
    }

    /// Puts the pull request's commit, which Calve has not seen, anywhere a fetch may put it. Returns where.
    pub(super) fn move_request(&self, random: &mut SplitMix64) -> String {
        let common = self.state.join("R/.git");
        let (request, n) = (common.join("refs/pull/7/head"), random.below(1000));
        let commit = fs_err::read_to_string(&request).unwrap();
        fs_err::remove_file(request).unwrap();
        fs_err::remove_file(common.join("FETCH_HEAD")).unwrap();
        for mark in ["calve-fetched", "worktrees/e/calve-untrusted"] {
            fs_err::remove_file(common.join(mark)).unwrap();
        }
        let offered = *random.pick(&["pull", "merge-requests", "pull-requests", "changes"]);
        let number = format!("{n}{}", random.pick(&["", "/head", "/merge", "/from", "/1"]));
        let place = match random.below(7) {
            0 => format!("refs/{offered}/{number}"),
            1 => format!("refs/remotes/origin/{offered}/{number}"),
            2 => format!("refs/remotes/deep/er/{n}/pr/{number}"),
            3 => format!("refs/heads/pr/{n}"),
            4 => format!("refs/review/{number}"),
            5 => {
                let line = format!("{}\t\t'refs/{offered}/{number}' of ../theirs\n", commit.trim_end());
                fs_err::write(common.join("FETCH_HEAD"), line).unwrap();
                return "FETCH_HEAD".to_owned();
            }
            _ => {
                let merge = format!("refs/{offered}/{number}");
                git(&self.state.join("R"), &["config", &format!("branch.x{n}.merge"), &merge]);
                format!("refs/heads/x{n}")
            }
        };
        fs_err::create_dir_all(common.join(&place).parent().unwrap()).unwrap();
        fs_err::write(common.join(&place), commit).unwrap();
        place
    }

    /// Restores the original state.
    pub(super) fn restore(&self) {
        // A reaper may still be working there.
        while self.state.exists() {
            let _ = fs_err::remove_dir_all(&self.state);
        }
        copy(&self.original, &self.state);
    }
}

/// Copies a tree with the times of its files, so that git's index stays valid.
pub(super) fn copy(from: &Path, to: &Path) {
    let found = fs_err::symlink_metadata(from).unwrap();
    if found.is_dir() {
        fs_err::create_dir(to).unwrap();
        for entry in fs_err::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else if found.is_symlink() {
        symlink(fs_err::read_link(from).unwrap(), to).unwrap();
    } else {
        fs_err::copy(from, to).unwrap();
        let file = fs_err::OpenOptions::new().append(true).open(to).unwrap();
        file.file().set_modified(found.modified().unwrap()).unwrap();
    }
}
