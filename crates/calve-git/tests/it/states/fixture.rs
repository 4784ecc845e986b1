//! What the states are made of: made by git once, and copied for each.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use calve_testkit::git_command;

/// A repository `R` with worktrees `a` (on a branch), `b` (detached), `c` (inside of `R`) and `d` (with a submodule), and a clone and a
/// bare repository to put somewhere.
pub(super) struct Fixture {
    original: PathBuf,
    /// Where each state is. Paths in git's files are right here, and nowhere else.
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

impl Fixture {
    pub(super) fn new(base: &Path) -> Fixture {
        let (state, original) = (base.join("state"), base.join("original"));
        let (r, sub, nested) = (state.join("R"), state.join("sub.git"), state.join("spare/nested"));
        fs_err::create_dir_all(&r).unwrap();
        fs_err::create_dir_all(state.join("spare")).unwrap();
        git(&r, &["init", "-q", "-b", "main", "--template="]);
        fs_err::write(r.join(".gitignore"), "ignored/\n.worktrees/\n").unwrap();
        fs_err::write(r.join("file"), "text\n").unwrap();
        git(&r, &["add", "-A"]);
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
        let head = git(&r, &["rev-parse", "HEAD"]);
        let loose = [loose(&r, "loose"), loose(&nested, "loose, nested"), loose(&d.join("sub"), "loose, submodule")];
        // A bare clone has no tracking branches: who has its commits is not known. Without any, there is nothing to lose.
        git(&state.join("spare/bare.git"), &["update-ref", "-d", "refs/heads/main"]);
        fs_err::rename(&state, &original).unwrap();
        Fixture { original, state, head, loose }
    }

    /// Begins anew.
    pub(super) fn restore(&self) {
        if self.state.exists() {
            fs_err::remove_dir_all(&self.state).unwrap();
        }
        copy(&self.original, &self.state);
    }
}

/// Keeps the times of files, so that git's index holds.
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
