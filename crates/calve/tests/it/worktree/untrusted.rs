//! Worktrees of pull requests: no code of theirs runs unless they are trusted.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use calve_testkit::require_program;

use super::repo::{Repo, git, is_clean, try_git, write};
use crate::program::Calve;
use crate::spot::eventually_nothing_left;

/// Everything by which git and Calve could be made to run a file of the tree.
const PROGRAMS: [&str; 12] = [
    "named.sh",
    "teardown.sh",
    "setup.sh",
    "filter.sh",
    "fsmonitor.sh",
    "ssh.sh",
    "diff.sh",
    "askpass.sh",
    ".githooks/post-checkout",
    ".githooks/post-index-change",
    ".githooks/reference-transaction",
    "bin/git",
];

/// A git that knows hooks that settings name, as 2.54 and later do.
const NEWEST_GIT: &str = "/usr/local/git/bin";

const CONFIGURATION: &str = "[hooks]\npost-add = 'sh ./setup.sh'\npre-remove = 'sh ./teardown.sh'\n";

/// A repository whose tracked scripts do nothing, and pull request 7, in which each says that it ran.
pub(super) struct Hostile {
    pub(super) repo: Repo,
    /// What has run of the pull request: a name a line.
    pub(super) ran: PathBuf,
    has_newest_git: bool,
}

impl Hostile {
    pub(super) fn new() -> Self {
        let repo = Repo::anywhere();
        let ran = repo.spot.join("ran");
        write_programs(&repo.path, "#!/bin/sh\ncase $0 in *filter.sh) cat;; esac\n");
        repo.write(".calve.toml", CONFIGURATION);
        repo.write(".gitattributes", "*.dat filter=relative diff=relative merge=relative\n");
        repo.write("one.dat", "text\n");
        repo.commit("programs");
        let other = repo.spot.join("other");
        repo.git(["clone", "-q", ".", other.to_str().unwrap()]);
        let start = format!("#!/bin/sh\necho \"$0\" >>'{}'\n", ran.display());
        let says = format!("{start}case $0 in *filter.sh) cat;; *setup.sh) git version;; esac\n");
        write_programs(&other, &says);
        // The real one, so that nothing fails.
        let instead_of_git = format!("{start}PATH=/usr/bin:/bin exec git \"$@\"\n");
        write(&other.join("bin/git"), &instead_of_git);
        write(&other.join("two.dat"), "of the pull request\n");
        write(
            &other.join(".calve.toml"),
            "[worktree]\nsecrets = 'carry'\n[hooks]\npost-add = 'sh ./setup.sh'\npre-remove = 'sh ./teardown.sh'\n",
        );
        write(&other.join(".worktreeinclude"), ".env\n");
        git(&other, ["add", "-A"]);
        git(&other, ["commit", "-q", "-m", "theirs"]);
        git(&other, ["update-ref", "refs/pull/7/head", "HEAD"]);
        repo.git(["remote", "add", "origin", other.to_str().unwrap()]);
        for (name, value) in [
            ("core.hooksPath", ".githooks"),
            ("core.fsmonitor", "./fsmonitor.sh"),
            ("core.sshCommand", "./ssh.sh"),
            ("core.askPass", "./askpass.sh"),
            ("credential.helper", "!./askpass.sh"),
            ("core.pager", "./diff.sh"),
            ("diff.external", "./diff.sh"),
            ("diff.relative.command", "./diff.sh"),
            ("diff.relative.textconv", "./diff.sh"),
            ("merge.relative.driver", "./diff.sh"),
            ("filter.relative.clean", "./filter.sh"),
            ("filter.relative.smudge", "./filter.sh"),
            ("filter.relative.required", "true"),
            ("hook.named.command", "./named.sh"),
            ("hook.named.event", "post-index-change"),
        ] {
            repo.git(["config", name, value]);
        }
        repo.settle();
        let hostile = Self { repo, ran, has_newest_git: false };
        // Its hook is not approved yet.
        hostile.calve(["add", "-n", "own"]).fails(3);
        hostile.approve(&hostile.repo.path, &["--yes"]).succeeds();
        hostile
    }

    /// With a worktree of the pull request, whose path comes with it.
    fn with_pull_request() -> (Self, PathBuf) {
        let hostile = Self::new();
        hostile.calve(["add", "pr/7"]).succeeds();
        let inside = hostile.pull_request();
        (hostile, inside)
    }

    /// `calve hook approve`.
    pub(super) fn approve(&self, within: &Path, arguments: &[&str]) -> Calve {
        let approve = crate::program::calve(["hook", "approve"]).args(arguments).within(within);
        approve.env("CALVE_HOME", self.repo.spot.join("home"))
    }

    /// `calve worktree …` with approvals, and a PATH on which the tree comes first.
    pub(super) fn calve<const N: usize>(&self, arguments: [&str; N]) -> Calve {
        let path = std::env::var("PATH").unwrap();
        let calve = self.repo.calve(arguments).env("CALVE_HOME", self.repo.spot.join("home"));
        if self.has_newest_git {
            calve.env("PATH", format!("./bin:bin::{NEWEST_GIT}:{path}")).env("GIT_EXEC_PATH", NEWEST_GIT)
        } else {
            calve.env("PATH", format!("./bin:bin::{path}"))
        }
    }

    #[track_caller]
    pub(super) fn nothing_ran(&self, when: &str) {
        let ran = fs_err::read_to_string(&self.ran).unwrap_or_default();
        assert_eq!(ran, "", "{when}: code of the pull request ran");
    }

    /// `calve hook worktree-setup`.
    pub(super) fn setup(&self, within: &Path, arguments: &[&str]) -> Calve {
        let setup = crate::program::calve(["hook", "worktree-setup"]).args(arguments).within(within);
        setup.env("CALVE_HOME", self.repo.spot.join("home"))
    }

    pub(super) fn is_untrusted(&self, at: &Path) -> bool {
        let listed = self.calve(["list", "--json"]).succeeds().json();
        let mut all = listed["worktrees"].as_array().unwrap().iter();
        all.find(|worktree| worktree["path"] == at.to_str().unwrap()).unwrap()["untrusted"] == true
    }

    /// A worktree that git has made, with nothing of the tree run.
    fn by_git(&self, name: &str, what: &str) -> PathBuf {
        let path = self.repo.spot.join(name);
        let settings = [
            "hook.named.enabled=false",
            "core.fsmonitor=",
            "core.hooksPath=/nowhere",
            "filter.relative.required=false",
            "filter.relative.smudge=cat",
        ];
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let words = ["worktree", "add", "-q", "--detach", path.to_str().unwrap(), what];
        self.repo.git(settings.chain(words));
        path
    }

    fn pull_request(&self) -> PathBuf {
        self.repo.spot.join("proj.pr-7")
    }
}

fn write_programs(tree: &Path, text: &str) {
    for name in PROGRAMS {
        write(&tree.join(name), text);
        fs_err::set_permissions(tree.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    write(&tree.join("bin/git"), "#!/bin/sh\nPATH=/usr/bin:/bin exec git \"$@\"\n");
}

fn touch(tree: &Path) {
    let text = fs_err::read(tree.join("one.dat")).unwrap();
    fs_err::write(tree.join("one.dat"), text).unwrap();
}

#[test]
fn code_of_a_pull_request_does_not_run_while_it_is_added_listed_checked_and_removed() {
    lives_without_running(&Hostile::new());
}

#[test]
fn a_hook_that_a_setting_names_does_not_run() {
    if !require_program(&format!("{NEWEST_GIT}/git")) {
        return;
    }
    let hostile = Hostile { has_newest_git: true, ..Hostile::new() };
    lives_without_running(&hostile);
    hostile.repo.git(["config", "remote.origin.url", "../other"]);
    hostile.calve(["add", "--trust", "pr/7"]).succeeds();
    let ran = fs_err::read_to_string(&hostile.ran).unwrap();
    assert!(ran.contains("named.sh"), "it has to run here for the rest to mean anything: {ran}");
}

fn lives_without_running(hostile: &Hostile) {
    let inside = hostile.pull_request();
    let added = hostile.calve(["add", "--json", "pr/7"]).succeeds();
    hostile.nothing_ran("add");
    let receipt = added.json();
    assert_eq!((&receipt["untrusted"], &receipt["post_checkout"]), (&true.into(), &serde_json::Value::Null));
    let warnings = receipt["warnings"].to_string();
    assert!(warnings.contains("`relative`") && warnings.contains("./filter.sh"), "{warnings}");
    assert_eq!(fs_err::read_to_string(inside.join("two.dat")).unwrap(), "of the pull request\n");
    assert!(!inside.join(".env").exists() && inside.join("node_modules/dep/index.js").exists());

    touch(&inside);
    let listed = hostile.calve(["list", "--json"]).succeeds().json();
    assert_eq!(listed["worktrees"][1]["untrusted"], true, "{listed}");
    assert_eq!(listed["worktrees"][0]["untrusted"], false, "{listed}");
    hostile.calve(["list"]).within(&inside).succeeds();
    hostile.calve(["check"]).within(&inside).succeeds();
    hostile.calve(["check", "--fix"]).within(inside.join("src")).succeeds();
    hostile.calve(["prune"]).within(&inside).succeeds();
    hostile.nothing_ran("list, check, prune");

    // From inside, another pull request, and a branch.
    git(&hostile.repo.spot.join("other"), ["update-ref", "refs/pull/8/head", "HEAD"]);
    touch(&inside);
    hostile.calve(["add", "-n", "pr/8"]).within(&inside).succeeds();
    hostile.calve(["add", "pr/8"]).within(&inside).succeeds();
    hostile.calve(["add", "of-it"]).within(&inside).succeeds();
    hostile.nothing_ran("add from inside");
    hostile.repo.git(["config", "remote.origin.url", "host:repository"]);
    hostile.calve(["add", "pr/9"]).within(&inside).env("GIT_SSH_COMMAND", "./ssh.sh").fails(1).hints();
    hostile.calve(["add", "pr/9"]).within(&inside).fails(1).hints();
    hostile.nothing_ran("fetch from inside");

    for (name, place) in [("pr/7", &hostile.repo.path), ("of-it", &inside), ("pr/8", &hostile.repo.path)] {
        let place = if place.exists() { place } else { &hostile.repo.path };
        let removed = hostile.calve(["remove", name]).within(place).succeeds();
        removed.says(&["no hook was run", "--trust"]);
        hostile.nothing_ran("remove");
    }
    eventually_nothing_left(&hostile.repo.spot);
}

#[test]
fn what_is_trusted_now_later_or_once_runs_what_it_has() {
    let hostile = Hostile::new();
    let added = hostile.calve(["add", "--json", "--trust", "pr/7"]).succeeds().json();
    assert_eq!((&added["untrusted"], &added["pull_request"]), (&false.into(), &7.into()));
    hostile.calve(["list"]).succeeds();
    let ran = fs_err::read_to_string(&hostile.ran).unwrap();
    for name in ["setup.sh", "filter.sh", "post-checkout", "fsmonitor.sh", "bin/git"] {
        assert!(ran.contains(name), "{name} has to run here for the other tests to mean anything: {ran}");
    }
    let listed = hostile.calve(["list", "--json"]).succeeds().json();
    assert_eq!(listed["worktrees"][1]["untrusted"], false);
    fs_err::remove_file(&hostile.ran).unwrap();
    hostile.calve(["remove", "pr/7"]).succeeds();
    assert!(fs_err::read_to_string(&hostile.ran).unwrap().contains("teardown.sh"));
    // An untrusted one can be trusted later, or once.
    let approve = |arguments: &[&str]| hostile.approve(&hostile.pull_request(), arguments);
    hostile.calve(["add", "pr/7"]).succeeds();
    fs_err::remove_file(&hostile.ran).unwrap();
    // Not by the way.
    approve(&["--yes"]).fails(3).hints().says(&["not trusted", "--trust"]);
    approve(&["--trust", "--yes"]).succeeds().says(&["trusted from now on"]);
    let listed = hostile.calve(["list"]).succeeds();
    assert!(!listed.stdout.contains("untrusted"), "{}", listed.stdout);
    let listed = hostile.calve(["list", "--json"]).succeeds().json();
    assert_eq!(listed["worktrees"][1]["untrusted"], false);
    hostile.calve(["remove", "-f", "pr/7"]).succeeds();
    assert!(fs_err::read_to_string(&hostile.ran).unwrap().contains("teardown.sh"));

    hostile.calve(["add", "pr/7"]).succeeds();
    fs_err::remove_file(&hostile.ran).unwrap();
    hostile.calve(["remove", "--trust", "pr/7"]).succeeds();
    assert!(fs_err::read_to_string(&hostile.ran).unwrap().contains("teardown.sh"));
}

#[test]
fn it_is_remembered_wherever_the_worktree_goes() {
    let hostile = Hostile::new();
    hostile.calve(["add", "pr/7"]).succeeds();
    let moved = hostile.repo.spot.join("moved");
    let quietly = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
    let git = |words: &[&str]| hostile.repo.git(quietly.iter().chain(words));
    git(&["worktree", "move", hostile.pull_request().to_str().unwrap(), moved.to_str().unwrap()]);
    git(&["worktree", "lock", moved.to_str().unwrap()]);
    git(&["worktree", "unlock", moved.to_str().unwrap()]);
    git(&["worktree", "prune"]);
    touch(&moved);
    assert!(hostile.calve(["list"]).succeeds().stdout.contains("untrusted"));
    hostile.calve(["remove", "moved"]).succeeds();
    hostile.nothing_ran("remove after a move");
    // The branch is a pull request's, however it is named.
    for arguments in [
        &["--base", "pr/7", "new"][..],
        &["--base", "refs/heads/pr/7~0", "newer"],
        &["--base", "newer", "newest"],
        &["--detach", "--path", "../detached", "pr/7~0"],
        &["refs/heads/pr/7"],
    ] {
        let ran = hostile.calve(["add", "--json"]).args(arguments).succeeds();
        assert_eq!(ran.json()["untrusted"], true, "{arguments:?}");
    }
    hostile.nothing_ran("add from the branch");
}

#[test]
fn what_begins_at_the_head_of_a_pull_request_is_not_trusted_wherever_its_files_come_from() {
    let (hostile, inside) = Hostile::with_pull_request();
    for arguments in [
        &["at-head"][..],
        &["--base", "HEAD~0", "named"],
        &["--base", "@", "at"],
        &["--detach", "HEAD", "--path", "../detached"],
    ] {
        let ran = hostile.calve(["add", "--json", "--from", "main"]).args(arguments).within(&inside).succeeds();
        assert_eq!(ran.json()["untrusted"], true, "{arguments:?}");
    }
    hostile.nothing_ran("add from inside, with the files of the main worktree");
    let head = git(&inside, ["rev-parse", "HEAD"]);
    for arguments in [&["--base", head.trim_end(), "by-id"][..], &[head.trim_end(), "--path", "../by-name"]] {
        let ran = hostile.calve(["add", "--json"]).args(arguments).succeeds();
        assert_eq!(ran.json()["untrusted"], true, "{arguments:?}");
    }
    hostile.nothing_ran("add by its id");
    hostile.repo.git(["branch", "mine", "main"]);
    // From the main worktree, also what it has no name for.
    let before = hostile.repo.git(["rev-parse", "HEAD~1"]);
    let ran = hostile.calve(["add", "--no-hooks", "--json", "--base", before.trim_end(), "before"]).succeeds();
    assert_eq!(ran.json()["untrusted"], false);
    for arguments in [&["mine"][..], &["--base", "main", "another"]] {
        let ran = hostile.calve(["add", "--json", "--from", "main"]).args(arguments).within(&inside).succeeds();
        assert_eq!(ran.json()["untrusted"], false, "{arguments:?}");
    }
}

#[test]
fn nothing_of_a_pull_request_gets_into_other_worktrees() {
    let (hostile, inside) = Hostile::with_pull_request();
    // Its directory of dependencies would fit best.
    write(&inside.join("node_modules/dep/index.js"), "hostile\n");
    hostile.repo.write("package-lock.json", "{ }\n");
    hostile.repo.git(["add", "package-lock.json"]);
    hostile.repo.git(["commit", "-q", "-m", "another"]);
    hostile.repo.git(["branch", "before", "HEAD~1"]);
    hostile.calve(["add", "--no-hooks", "before"]).succeeds();
    let module = hostile.repo.spot.join("proj.before/node_modules/dep/index.js");
    assert_eq!(fs_err::read_to_string(module).unwrap(), "module.exports = 1\n");
    // A worktree made from it is not trusted either, and is ruled by the lists of the main worktree.
    let receipt = hostile.calve(["add", "--json", "--from", "pr/7", "main2"]).succeeds().json();
    assert_eq!(receipt["untrusted"], true);
    assert!(
        hostile.repo.spot.join("proj.main2/node_modules").exists(),
        ".worktreeinclude of the pull request was used"
    );
    hostile.nothing_ran("add beside it");
}

#[test]
fn a_secret_is_known_by_any_name_on_its_way_in_any_case() {
    let hostile = Hostile::new();
    write(&hostile.repo.join(".git/info/exclude"), "*\n");
    let secrets = [".env.d/prod", "ign/.env/file", ".ENV", "a.KEY", "Secrets/x", "Secrets/deep/x", "deep/prod.env"];
    let others = ["ign/plain", ".env.example", "node_modules/dep/test/key.pem"];
    secrets.iter().chain(&others).for_each(|path| hostile.repo.write(path, "x\n"));
    hostile.calve(["add", "pr/7"]).succeeds();
    let theirs = hostile.pull_request();
    assert_eq!(secrets.map(|path| theirs.join(path).exists()), [false; 7]);
    assert_eq!(others.map(|path| theirs.join(path).exists()), [true; 3]);
    hostile.calve(["add", "--no-hooks", "own"]).succeeds();
    let own = hostile.repo.spot.join("proj.own");
    assert_eq!(secrets.map(|path| own.join(path).exists()), [true; 7]);
}

#[test]
fn a_directory_that_git_tracks_is_no_secret_by_its_name() {
    let hostile = Hostile::new();
    let repo = &hostile.repo;
    repo.write("secrets/mod.rs", "1\n");
    repo.commit("code");
    repo.write(".calve.local.toml", "[worktree]\nsecrets = \"leave\"\n");
    write(&repo.join(".git/info/exclude"), "node_modules\n*.local\n.calve.local.toml\n");
    let taken = ["secrets/node_modules/dep/x", "secrets/x.local"];
    // Not ignored itself, and not tracked.
    let left = ["new/.ssh/seen", "new/.ssh/x.local"];
    taken.iter().chain(&left).for_each(|path| repo.write(path, "x\n"));
    repo.write("secrets/mod.rs", "2\n");
    hostile.calve(["add", "--no-hooks", "--dirty", "own"]).succeeds();
    let own = repo.spot.join("proj.own");
    assert_eq!(taken.map(|path| own.join(path).exists()), [true; 2]);
    assert_eq!(left.map(|path| own.join(path).exists()), [false; 2]);
    assert_eq!(fs_err::read_to_string(own.join("secrets/mod.rs")).unwrap(), "2\n");
    hostile.calve(["add", "pr/7"]).succeeds();
    let theirs = repo.spot.join("proj.pr-7");
    assert_eq!(taken.map(|path| theirs.join(path).exists()), [true, false]);
}

#[test]
fn nothing_is_trusted_with_a_configuration_that_cannot_be_read() {
    let (hostile, inside) = Hostile::with_pull_request();
    let approve = || hostile.approve(&inside, &["--trust", "--yes"]);
    let text = fs_err::read_to_string(inside.join(".calve.toml")).unwrap();
    write(&inside.join(".calve.toml"), "[hooks\n");
    approve().fails(1).says(&[".calve.toml`, line 1"]);
    assert!(hostile.is_untrusted(&inside));
    write(&inside.join(".calve.toml"), &text);
    approve().succeeds();
    assert!(!hostile.is_untrusted(&inside));
}

#[test]
fn a_changed_file_that_looks_like_a_secret_is_not_carried() {
    let hostile = Hostile::new();
    hostile.repo.write(".npmrc", "token=none\n");
    hostile.repo.commit("npmrc");
    hostile.repo.settle();
    git(
        &hostile.repo.spot.join("other"),
        [
            "pull",
            "-q",
            "--no-rebase",
            "--no-edit",
            "--allow-unrelated-histories",
            hostile.repo.path.to_str().unwrap(),
            "main",
        ],
    );
    git(&hostile.repo.spot.join("other"), ["update-ref", "refs/pull/7/head", "HEAD"]);
    hostile.repo.write(".npmrc", "token=secret\n");
    hostile.repo.write("src/main.ts", "changed\n");
    hostile.calve(["add", "--dirty", "pr/7"]).succeeds();
    let inside = hostile.pull_request();
    assert_eq!(fs_err::read_to_string(inside.join(".npmrc")).unwrap(), "token=none\n");
    assert_eq!(fs_err::read_to_string(inside.join("src/main.ts")).unwrap(), "changed\n");
}

#[test]
fn an_agents_setup_gives_a_pull_request_no_secrets_and_runs_nothing_of_it() {
    let (hostile, inside) = Hostile::with_pull_request();
    fs_err::remove_dir_all(inside.join("node_modules")).unwrap();
    hostile.setup(&inside, &[]).succeeds();
    assert!(inside.join("node_modules/dep/index.js").exists() && !inside.join(".env").exists());
    // Its commit, checked out by an agent.
    let again = hostile.by_git("again", "pr/7");
    hostile.setup(&again, &[]).succeeds();
    assert!(hostile.is_untrusted(&again) && !again.join(".env").exists() && again.join("target/debug/out.o").exists());
    // What gets its files is not trusted either.
    let mine = hostile.repo.spot.join("mine");
    hostile.repo.git(["worktree", "add", "-q", "--detach", mine.to_str().unwrap(), "HEAD"]);
    hostile.setup(&mine, &["--from", inside.to_str().unwrap()]).succeeds();
    assert!(hostile.is_untrusted(&mine) && !mine.join(".env").exists());
    assert!(mine.join("target/debug/out.o").exists(), ".worktreeinclude of the pull request was used");
    hostile.nothing_ran("setup");
    hostile.setup(&hostile.repo.path, &["--from", inside.to_str().unwrap()]).fails(1).hints().says(&["not trusted"]);
    // A commit that the main worktree has too is no pull request's.
    let own = hostile.repo.spot.join("own");
    hostile.repo.git(["worktree", "add", "-q", "--detach", own.to_str().unwrap(), "HEAD"]);
    hostile.setup(&own, &[]).succeeds();
    assert!(!hostile.is_untrusted(&own) && own.join(".env").exists());
}

#[test]
fn programs_of_the_user_go_on_working_for_a_pull_request() {
    let hostile = Hostile::new();
    let tool = hostile.repo.spot.join("tool");
    write(&tool, "#!/bin/sh\ntr a-z A-Z\n");
    fs_err::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    hostile.repo.git(["config", "filter.relative.smudge", tool.to_str().unwrap()]);
    hostile.repo.git(["config", "filter.relative.clean", "tr A-Z a-z"]);
    // The repository's own settings approve nothing, nor do files that they include, those of one worktree, or variables.
    hostile.repo.git(["config", "calve.command", tool.to_str().unwrap()]);
    hostile.repo.git(["config", "extensions.worktreeConfig", "true"]);
    hostile.repo.git(["config", "--worktree", "calve.command", tool.to_str().unwrap()]);
    let included = hostile.repo.spot.join("included");
    write(&included, &format!("[calve]\n\tcommand = {}\n\tcommand = tr A-Z a-z\n", tool.display()));
    hostile.repo.git(["config", "include.path", included.to_str().unwrap()]);
    hostile.calve(["add", "-n", "pr/7"]).succeeds();
    let by_variables = [("COUNT", "1"), ("KEY_0", "calve.command"), ("VALUE_0", tool.to_str().unwrap())];
    let add = hostile.calve(["add", "--json", "--detach", "--path", "../stored", "pr/7"]);
    let add = by_variables.iter().fold(add, |add, (name, value)| add.env(&format!("GIT_CONFIG_{name}"), value));
    let warned = add.succeeds().json();
    assert!(warned["warnings"][0].as_str().unwrap().contains("as stored"), "{warned}");
    let approved = hostile.repo.spot.join("gitconfig");
    write(&approved, &format!("[calve]\n\tcommand = {}\n\tcommand = tr A-Z a-z\n", tool.display()));
    let ran = hostile.calve(["add", "--json", "pr/7"]).env("GIT_CONFIG_GLOBAL", &approved).succeeds();
    assert_eq!(ran.json()["warnings"], serde_json::json!([]));
    assert_eq!(fs_err::read_to_string(hostile.pull_request().join("two.dat")).unwrap(), "OF THE PULL REQUEST\n");
    hostile.nothing_ran("add");
}

#[test]
fn large_files_of_a_pull_request_come_by_git_lfs() {
    if !require_program("git-lfs") {
        return;
    }
    let repo = Repo::anywhere();
    repo.git(["lfs", "install", "--local"]);
    repo.write(".gitattributes", "*.big filter=lfs diff=lfs merge=lfs -text\n");
    repo.write("one.big", "large\n");
    repo.commit("large");
    repo.git(["update-ref", "refs/pull/7/head", "HEAD"]);
    repo.git(["remote", "add", "origin", "."]);
    repo.settle();
    // The donor has not got it, so that git writes it.
    fs_err::remove_file(repo.join("one.big")).unwrap();
    let path = repo.add(["pr/7"]);
    assert_eq!(fs_err::read_to_string(path.join("one.big")).unwrap(), "large\n");
    is_clean(&path);
    assert!(
        try_git(&path, ["config", "core.hooksPath"]).stdout.is_empty(),
        "the repository's settings are as they were"
    );
}

#[test]
fn commits_of_a_pull_request_are_known_without_its_worktree() {
    let hostile = Hostile::new();
    hostile.calve(["add", "pr/7"]).succeeds();
    let again = hostile.by_git("again", "pr/7");
    hostile.setup(&again, &[]).succeeds();
    // Two at once, neither of which is marked, and a commit below: also if only the branch is there.
    hostile.calve(["remove", "-f", "pr/7"]).succeeds();
    git(
        &again,
        ["-c", "core.hooksPath=/nowhere", "-c", "core.fsmonitor=", "commit", "-q", "--allow-empty", "-m", "more"],
    );
    let all = [
        hostile.by_git("one", "pr/7"),
        hostile.by_git("two", "pr/7"),
        hostile.by_git("more", git(&again, ["rev-parse", "HEAD"]).trim_end()),
    ];
    // git's own commands above are the user's.
    let _ = fs_err::remove_file(&hostile.ran);
    for path in &all {
        hostile.setup(path, &[]).succeeds().says(&["not trusted"]);
    }
    hostile.nothing_ran("setup of two");
    for path in &all {
        assert!(hostile.is_untrusted(path) && !path.join(".env").exists(), "{}", path.display());
    }
    // What the user trusts stays so.
    hostile.approve(&again, &["--trust", "--yes"]).succeeds();
    hostile.setup(&again, &[]).succeeds();
    assert!(!hostile.is_untrusted(&again) && again.join(".env").exists());
}

#[test]
fn no_tree_brings_its_own_git_and_without_a_hook_none_is_named() {
    let hostile = Hostile::new();
    // Without a hook, nothing is said about one.
    hostile.calve(["add", "pr/7"]).succeeds();
    hostile.repo.git(["rm", "-q", ".calve.toml"]);
    hostile.repo.git(["commit", "-q", "-m", "no hooks"]);
    let removed = hostile.calve(["remove", "pr/7"]).succeeds();
    assert!(!removed.stderr.contains("hook"), "{removed:?}");
    hostile.nothing_ran("remove");
    hostile.calve(["add", "pr/7"]).succeeds();
    let path = hostile.pull_request();
    for pointer in [Some("gitdir: ../moved/.git/worktrees/x\n"), None] {
        fs_err::remove_file(path.join(".git")).unwrap();
        pointer.into_iter().for_each(|text| write(&path.join(".git"), text));
        hostile.calve(["list"]).within(&path).fails(1);
        hostile.nothing_ran("its repository is unknown");
    }
}

#[test]
fn a_pull_request_without_a_configuration_has_the_donors_ports() {
    let hostile = Hostile::new();
    let other = hostile.repo.spot.join("other");
    git(&other, ["rm", "-q", ".calve.toml"]);
    git(&other, ["commit", "-q", "-m", "no configuration"]);
    git(&other, ["update-ref", "refs/pull/7/head", "HEAD"]);
    hostile.repo.write(".calve.toml", &format!("[ports]\nweb = {}\n", super::ports::number(245)));
    hostile.repo.commit("ports");
    let added = hostile.calve(["add", "pr/7"]).succeeds().says(&["ports: WEB_PORT="]);
    assert!(!added.stderr.contains("there are no ports"), "{}", added.stderr);
}

#[test]
fn a_bare_repository_has_no_configuration_for_a_pull_request() {
    let hostile = Hostile::new();
    let (bare, trunk) = (hostile.repo.spot.join("bare"), hostile.repo.spot.join("trunk"));
    hostile.repo.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    git(&bare, ["config", "remote.origin.url", hostile.repo.spot.join("other").to_str().unwrap()]);
    git(&bare, ["worktree", "add", "-q", trunk.to_str().unwrap(), "main"]);
    let add = |arguments: &[&str]| {
        let ran = hostile.calve(["add", "--no-hooks", "--json"]).args(arguments).within(&trunk).succeeds();
        ran.json()["untrusted"] == true
    };
    assert!(add(&["pr/7", "--path", "../a-pull-request"]));
    // Commits of the repository's own branch are the user's.
    assert!(!add(&["--base", "HEAD~1", "old"]) && add(&["--base", "refs/heads/pr/7~0", "theirs"]));
    let inside = hostile.repo.spot.join("a-pull-request");
    write(&inside.join(".calve.toml"), "[ports]\nweb = 20300\n");
    let ports = || {
        let env = crate::program::calve(["env", "--json"]).within(&inside);
        env.env("CALVE_HOME", hostile.repo.spot.join("home")).succeeds().json()["ports"].as_array().unwrap().len()
    };
    assert_eq!(ports(), 0);
    for name in ["trunk", "old", "theirs"] {
        hostile.calve(["remove", "-f", "--no-hooks", name]).within(&inside).run();
    }
    assert_eq!(ports(), 0);
    hostile.nothing_ran("env in a bare repository");
}
