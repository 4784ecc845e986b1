//! A repository to add worktrees to.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use calve_testkit::{FileSystem, git_command};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::program::{Calve, calve};
use crate::spot::Spot;

/// The author of commits, with no configuration of the user or the machine.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_AUTHOR_NAME", "A"),
    ("GIT_AUTHOR_EMAIL", "a@example.org"),
    ("GIT_COMMITTER_NAME", "A"),
    ("GIT_COMMITTER_EMAIL", "a@example.org"),
    ("LC_ALL", "C"),
];

/// A repository `proj` in a place of its own, with a first commit and things that git ignores.
pub(super) struct Repo {
    pub(super) spot: Spot,
    pub(super) path: PathBuf,
}

impl Repo {
    #[track_caller]
    pub(super) fn on(file_system: FileSystem) -> Option<Self> {
        Spot::on(file_system).map(Self::at)
    }

    pub(super) fn anywhere() -> Self {
        Self::at(Spot::anywhere())
    }

    pub(super) fn at(spot: Spot) -> Self {
        let path = spot.join("proj");
        fs_err::create_dir(&path).unwrap();
        let repo = Self { spot, path };
        repo.start();
        repo
    }

    /// In a directory that is there already.
    pub(super) fn start(&self) {
        self.git(["init", "-q", "-b", "main"]);
        self.write(".gitignore", "node_modules/\n.env*\n*.log\n/target/\n/.worktrees/\n*.pid\n");
        self.write("package-lock.json", "{}\n");
        self.write("src/main.ts", "export {}\n");
        self.write("src/deep/er/file", "text\n");
        self.write("run.sh", "#!/bin/sh\n");
        fs_err::set_permissions(self.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        fs_err::os::unix::fs::symlink("src/main.ts", self.join("link")).unwrap();
        self.commit("one");
        self.write("node_modules/dep/index.js", "module.exports = 1\n");
        fs_err::os::unix::fs::symlink("../src", self.join("node_modules/own")).unwrap();
        self.write("target/debug/out.o", "object\n");
        self.write(".env", "SECRET=1\n");
        self.settle();
    }

    pub(super) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path.join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        write(&self.join(path), text);
    }

    pub(super) fn git<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        git(&self.path, arguments)
    }

    pub(super) fn commit(&self, message: &str) {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "-m", message]);
    }

    /// Makes everything older than git's index, as it is when a while has passed: git then trusts the times.
    pub(super) fn settle(&self) {
        // A process for each would take longer than everything else here.
        let time = Timespec { tv_sec: 1_577_836_800, tv_nsec: 0 };
        let times = Timestamps { last_access: time, last_modification: time };
        self.git(["ls-files", "-z"]).split('\0').filter(|path| !path.is_empty()).for_each(|path| {
            utimensat(CWD, self.join(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        });
        self.git(["status"]);
    }

    /// Gives everything to [`UnprivilegedUser`], who can then run `calve` here.
    pub(super) fn give_away(&self) {
        self.spot.give_away("");
        for above in self.spot.ancestors().take_while(|above| above.starts_with(std::env::temp_dir())) {
            let _ = rustix::fs::chmod(above, 0o755.into());
        }
    }

    /// `calve worktree …`, run in the repository.
    pub(super) fn calve<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Calve {
        with_environment(calve(["worktree"]).args(arguments)).within(&self.path)
    }

    /// Adds a worktree and says where it is.
    #[track_caller]
    pub(super) fn add<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> PathBuf {
        let ran = self.calve(["add"]).args(arguments).succeeds();
        let path = ran.stdout.strip_suffix('\n').unwrap();
        assert!(!path.contains('\n'), "more than the path: {path:?}");
        PathBuf::from(path)
    }

    /// The roots of the worktrees that git lists.
    pub(super) fn worktrees(&self) -> Vec<PathBuf> {
        let listed = self.git(["worktree", "list", "--porcelain"]);
        listed.lines().filter_map(|line| line.strip_prefix("worktree ").map(PathBuf::from)).collect()
    }
}

pub(super) fn with_environment(calve: Calve) -> Calve {
    ENVIRONMENT.iter().fold(calve, |calve, (name, value)| calve.env(name, value))
}

pub(super) fn write(path: &Path, text: &str) {
    fs_err::create_dir_all(path.parent().unwrap()).unwrap();
    fs_err::write(path, text).unwrap();
}

/// Copies a directory as it is.
#[track_caller]
pub(super) fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    assert!(Command::new("cp").arg("-a").args([from.as_ref(), to.as_ref()]).status().unwrap().success());
}

pub(super) fn try_git<S: AsRef<OsStr>>(at: &Path, arguments: impl IntoIterator<Item = S>) -> Output {
    git_command(at).args(arguments).envs(ENVIRONMENT).output().unwrap()
}

#[track_caller]
/// [`git`], where a program has printed the path.
pub(super) fn git_at<S: AsRef<OsStr>>(at: impl AsRef<Path>, arguments: impl IntoIterator<Item = S>) -> String {
    git(at.as_ref(), arguments)
}

pub(super) fn git<S: AsRef<OsStr>>(at: &Path, arguments: impl IntoIterator<Item = S>) -> String {
    let output = try_git(at, arguments);
    assert!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
pub(super) fn is_clean(worktree: &Path) {
    assert_eq!(git(worktree, ["status", "--porcelain"]), "", "`{}` is not clean", worktree.display());
}

/// Returns what git knows of tracked files: path, type and permissions, content. Of those that a sparse checkout leaves out, the path.
pub(super) fn tracked(worktree: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let listed = git(worktree, ["ls-files", "-t", "-z"]);
    let all = listed.split('\0').filter(|line| !line.is_empty()).map(|line| {
        let path = &line[2..];
        let file = worktree.join(path);
        if line.starts_with('S') {
            assert!(!file.exists(), "{path} is there");
            return (path.to_owned(), 0, Vec::new());
        }
        let found = fs_err::symlink_metadata(&file).unwrap();
        let content = match found.is_symlink() {
            true => fs_err::read_link(&file).unwrap().into_os_string().into_encoded_bytes(),
            false => fs_err::read(&file).unwrap(),
        };
        (path.to_owned(), found.mode(), content)
    });
    all.collect()
}

/// Expects the tracked files to be those that git's own checkout of the same commit makes.
#[track_caller]
pub(super) fn is_as_git_makes_it(repo: &Repo, worktree: &Path) {
    let reference = repo.spot.join("reference");
    repo.git(
        ["worktree", "add", "-q", "--detach"]
            .map(OsStr::new)
            .into_iter()
            .chain([reference.as_os_str(), OsStr::new(git(worktree, ["rev-parse", "HEAD"]).trim())]),
    );
    assert_eq!(tracked(worktree), tracked(&reference));
    repo.git([OsStr::new("worktree"), OsStr::new("remove"), OsStr::new("--force"), reference.as_os_str()]);
}

/// The tracked files that `git status` opens because it does not know their contents.
pub(super) fn opened_by_status(worktree: &Path) -> Vec<String> {
    let log = worktree.with_extension("strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=open,openat", "-o"]).arg(&log).args(["git", "status"]);
    // Nothing is written back, so that this is the first status however often it is asked.
    command.current_dir(worktree).envs(ENVIRONMENT).env("GIT_OPTIONAL_LOCKS", "0");
    assert!(command.output().unwrap().status.success());
    let text = fs_err::read_to_string(&log).unwrap();
    fs_err::remove_file(&log).unwrap();
    let listed = git(worktree, ["ls-files"]);
    let opened = |path: &&str| text.lines().any(|line| line.contains(&format!("\"{path}\"")));
    // git reads the rules of what to ignore each time.
    listed.lines().filter(|path| !path.ends_with(".gitignore")).filter(opened).map(str::to_owned).collect()
}

/// The access control list of a file, and its permission bits.
#[track_caller]
pub(crate) fn acl(path: impl AsRef<Path>) -> String {
    let output = Command::new("getfacl").args(["-cnE"]).arg(path.as_ref()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
