//! Spares of whole worktrees: `calve worktree add` takes them by itself, and nothing differs but the time it takes.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use calve_testkit::{Aspect, FileSystem, SplitMix64, assert_same_except, few_rounds, rounds};

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, opened_by_status};
use super::subvolume::is_subvolume;
use crate::kill::Killer;
use crate::program::{Calve, calve};

/// The file systems, and whether the worktree is a subvolume there.
pub(super) const GROUNDS: [(FileSystem, bool); 4] =
    [(FileSystem::Ext4, false), (FileSystem::Xfs, false), (FileSystem::Btrfs, false), (FileSystem::Btrfs, true)];

pub(super) fn repo_on((file_system, is_subvolume): (FileSystem, bool)) -> Option<Repo> {
    let repo = Repo::on(file_system)?;
    if is_subvolume {
        repo.calve(["convert", "proj"]).within(&repo.spot).succeeds();
    }
    Some(repo)
}

pub(super) fn spares(repo: &Repo, arguments: &[&str]) -> Calve {
    calve(["spares"]).args(arguments).within(&repo.path).env("CALVE_HOME", repo.spot.join("home"))
}

/// `calve worktree add` by a user with spares.
fn add(repo: &Repo, arguments: &[&str]) -> serde_json::Value {
    repo.calve(["add", "--json"]).args(arguments).env("CALVE_HOME", repo.spot.join("home")).succeeds().json()
}

/// A repository with one spare of its worktree, and nothing that builds another one.
fn with_spare(file_system: FileSystem) -> Option<Repo> {
    with_spare_on((file_system, false))
}

fn with_spare_on(ground: (FileSystem, bool)) -> Option<Repo> {
    let repo = repo_on(ground)?;
    spares(&repo, &["add", "-q", "--worktree"]).succeeds();
    spares(&repo, &["pause", "-q", "."]).succeeds();
    Some(repo)
}

#[track_caller]
fn is_spare(receipt: &serde_json::Value) -> PathBuf {
    assert_eq!(receipt["clone"]["strategy"], "spare", "{receipt:#}");
    PathBuf::from(receipt["path"].as_str().unwrap())
}

/// Adds a worktree with a spare, moves it out of the way, and adds it again without: both are the same, and git has nothing to say.
#[track_caller]
fn is_as_without(repo: &Repo, arguments: &[&str]) {
    let told = add(repo, arguments);
    let path = is_spare(&told);
    let state = |path: &Path| {
        let status = git(path, ["status", "--porcelain", "--ignored", "--untracked-files=all"]);
        (status, git(path, ["ls-files", "--stage"]), git(path, ["rev-parse", "HEAD"]), git(path, ["ls-files", "-v"]))
    };
    let with = state(&path);
    if told["tracked"]["written_by_git"] == 0 && !arguments.contains(&"--dirty") {
        assert_eq!(opened_by_status(&path), Vec::<String>::new());
    }
    git(&path, ["fsck", "--no-progress"]);
    let kept = repo.spot.join("kept");
    fs_err::rename(&path, &kept).unwrap();
    repo.git(["worktree", "prune"]);
    if let (Some(branch), true) = (told["branch"].as_str(), told["new_branch"].as_bool() == Some(true)) {
        repo.git(["branch", "-D", branch]);
    }
    let mut again = repo.calve(["add", "--json"]).args(arguments).succeeds().json();
    assert_ne!(again["clone"]["strategy"], "spare");
    assert_eq!(state(&path), with);
    // git's checkout sets the times of what it writes, and so of the directories that are in.
    assert_same_except(&path, &kept, &[Aspect::Times]);
    for file in git(&path, ["ls-files", "--others", "-z"]).split_terminator('\0') {
        let modified = |root: &Path| fs_err::symlink_metadata(root.join(file)).unwrap().modified().unwrap();
        assert_eq!(modified(&path), modified(&kept), "{file}");
    }
    let mut told = told;
    for receipt in [&mut told, &mut again] {
        ["clone", "elapsed_ms"].into_iter().for_each(|own| receipt[own] = serde_json::Value::Null);
        // Those about the way.
        let is_of_clone = |fact: &serde_json::Value| fact["about"] == "files" || fact["about"] == "cloning";
        receipt["facts"].as_array_mut().unwrap().retain(|fact| !is_of_clone(fact));
    }
    assert_eq!(told, again);
    fs_err::remove_dir_all(&kept).unwrap();
    fs_err::remove_dir_all(&path).unwrap();
    repo.git(["worktree", "prune"]);
}

#[test]
fn a_worktree_is_a_spare_brought_up_to_date() {
    for ground in GROUNDS {
        let Some(repo) = with_spare_on(ground) else { return };
        repo.write("node_modules/dep/more.js", "module.exports = 2\n");
        repo.write("scratch", "untracked\n");
        let receipt = add(&repo, &["one"]);
        let path = is_spare(&receipt);
        is_clean(&path);
        assert_eq!(is_subvolume(&path), ground.0 == FileSystem::Btrfs);
        assert!(!path.join("scratch").exists());
        assert_eq!(fs_err::read_to_string(path.join("node_modules/dep/more.js")).unwrap(), "module.exports = 2\n");
        assert_eq!(receipt["tracked"]["written_by_git"], 0);
        assert_eq!(opened_by_status(&path), Vec::<String>::new());
        assert_eq!(repo.worktrees(), [repo.path.clone(), path]);
        // There was only one.
        assert_ne!(add(&repo, &["two"])["clone"]["strategy"], "spare");
    }
}

#[test]
fn random_worktrees_are_the_same_with_a_spare_as_without() {
    for (seed, ground) in (0..rounds(6) as u64).flat_map(|seed| GROUNDS.map(|ground| (seed, ground))) {
        let Some(repo) = repo_on(ground) else { return };
        let mut random = SplitMix64::new(seed);
        (0..3).for_each(|_| change(&repo, &mut random));
        repo.write("lib/two", "2\n");
        repo.commit("two");
        repo.git(["branch", "other"]);
        (0..6).for_each(|_| change(&repo, &mut random));
        repo.write("lib/three", "3\n");
        repo.commit("three");
        repo.settle();
        spares(&repo, &["add", "-q", "--worktree"]).succeeds();
        spares(&repo, &["pause", "-q", "."]).succeeds();
        (0..6).for_each(|_| change(&repo, &mut random));
        // A failure names the branch, and so the seed.
        let new = format!("new-{seed}");
        let arguments: &[&str] = match random.below(4) {
            0 => &[&new],
            1 => &["other"],
            2 => &["--dirty", &new],
            _ => &["--no-ignored", &new, "--base", "HEAD~1"],
        };
        is_as_without(&repo, arguments);
    }
}

/// Changes something, tracked or not.
fn change(repo: &Repo, random: &mut SplitMix64) {
    const DIRECTORIES: [&str; 8] =
        ["src", "src/deep", "lib", "node_modules/dep", "node_modules/.bin", "target/debug", "cache/x", "conf"];
    const NAMES: [&str; 9] = ["a", "b.ts", "c.log", ".env", "d.pid", ".gitignore", "server.key", "e f", "g"];
    let path = format!("{}/{}", random.pick(&DIRECTORIES), random.pick(&NAMES));
    let full = repo.join(&path);
    match random.below(11) {
        // What pointed out of the tree before is at another place, or a directory where a file was.
        9 if repo.join("node_modules/dep").is_dir() => {
            let aside = format!("node_modules/{}", random.pick(&[".bin", "moved", "dep.link"]));
            if !repo.join(&aside).exists() {
                fs_err::rename(repo.join("node_modules/dep"), repo.join(&aside)).unwrap();
            }
        }
        10 => {
            let link = repo.join("node_modules/.bin").join(random.pick(&["tool", "x", "dep"]));
            fs_err::create_dir_all(link.parent().unwrap()).unwrap();
            if fs_err::remove_file(&link).is_err() {
                fs_err::os::unix::fs::symlink(repo.join("node_modules/dep/index.js"), link).unwrap();
            }
        }
        0 if full.exists() => fs_err::remove_file(&full).unwrap(),
        1 if full.is_file() => fs_err::set_permissions(&full, std::fs::Permissions::from_mode(0o755)).unwrap(),
        2 if full.is_file() => fs_err::rename(&full, full.with_extension("moved")).unwrap(),
        3 => {
            fs_err::create_dir_all(full.parent().unwrap()).unwrap();
            let link = full.with_extension("link");
            let _ = fs_err::remove_file(&link);
            fs_err::os::unix::fs::symlink(repo.join("package-lock.json"), link).unwrap();
        }
        4 => {
            repo.write(&path.replace(".gitignore", "rules"), &format!("#!{}/node_modules/dep/x\n", repo.path.display()))
        }
        5 if path.ends_with(".gitignore") => repo.write(&path, "*.log\ncache/\n"),
        _ if !path.ends_with(".gitignore") => repo.write(&path, &format!("{}\n", random.next_u64())),
        _ => repo.write("conf/.calve", "x\n"),
    }
}

/// The trees of the spares.
fn trees(repo: &Repo) -> Vec<PathBuf> {
    let inside = |path: PathBuf| fs_err::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let sets = inside(repo.spot.join("home/spares")).filter(|path| path.join("set").exists());
    sets.flat_map(inside).map(|spare| spare.join("tree")).filter(|tree| tree.exists()).collect()
}

#[test]
fn two_worktrees_at_a_time_take_one_spare_once() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    repo.write("node_modules/dep/more.js", "module.exports = 2\n");
    let home = repo.spot.join("home");
    let running = ["one", "two"].map(|name| repo.calve(["add", "--json", name]).env("CALVE_HOME", &home).start());
    let told = running.map(|running| running.wait().json());
    let spares = told.iter().filter(|told| told["clone"]["strategy"] == "spare").count();
    assert!(spares <= 1, "{told:?}");
    assert!(spares == 1 || trees(&repo).len() == 1);
    for name in ["one", "two"] {
        let path = repo.spot.join(format!("proj.{name}"));
        is_clean(&path);
        assert!(path.join("node_modules/dep/more.js").exists());
    }
    assert_eq!(repo.worktrees().len(), 3);
}

#[test]
fn what_somebody_does_to_tracked_files_of_a_spare_is_put_right() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    let tree = trees(&repo).remove(0);
    fs_err::write(tree.join("src/main.ts"), "edited\n").unwrap();
    fs_err::remove_file(tree.join("run.sh")).unwrap();
    fs_err::remove_dir_all(tree.join("src/deep")).unwrap();
    fs_err::os::unix::fs::symlink(repo.join("src"), tree.join("src/deep")).unwrap();
    let path = is_spare(&add(&repo, &["one"]));
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
    is_clean(&repo.path);
}

#[test]
fn a_spare_outlives_what_happens_to_the_repository() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    // The commit that it was made at is gone.
    repo.write("src/main.ts", "export const a = 1\n");
    repo.git(["commit", "-q", "-a", "--amend", "-m", "other"]);
    repo.git(["reflog", "expire", "--expire=now", "--all"]);
    repo.git(["gc", "-q", "--prune=now"]);
    is_clean(&is_spare(&add(&repo, &["one"])));
    // The index is in two files.
    spares(&repo, &["refill", "-q", "."]).succeeds();
    repo.git(["update-index", "--split-index"]);
    let path = is_spare(&add(&repo, &["two"]));
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
}

#[test]
fn a_branch_that_is_checked_out_costs_no_spare() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    repo.git(["worktree", "add", "-q", "-b", "taken", "../taken"]);
    repo.calve(["add", "taken"]).env("CALVE_HOME", repo.spot.join("home")).fails(1).says(&["taken"]);
    assert_eq!(repo.worktrees().len(), 2);
    assert_eq!(trees(&repo).len(), 1);
    is_clean(&is_spare(&add(&repo, &["one"])));
}

#[test]
fn a_repository_that_was_moved_is_cloned() {
    let Some(repo) = with_spare(FileSystem::Ext4) else { return };
    let moved = repo.spot.join("moved");
    fs_err::rename(&repo.path, &moved).unwrap();
    let repo = Repo { path: moved, spot: repo.spot };
    let told = add(&repo, &["one"]);
    assert_ne!(told["clone"]["strategy"], "spare");
    is_clean(Path::new(told["path"].as_str().unwrap()));
}

#[test]
fn a_linked_worktree_of_a_bare_repository_has_spares_too() {
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    let bare = repo.spot.join("bare.git");
    repo.git([OsStr::new("clone"), OsStr::new("-q"), OsStr::new("--bare"), OsStr::new("."), bare.as_os_str()]);
    let main = repo.spot.join("main");
    git(&bare, [OsStr::new("worktree"), OsStr::new("add"), OsStr::new("-q"), main.as_os_str(), OsStr::new("main")]);
    let repo = Repo { path: main, spot: repo.spot };
    repo.write("node_modules/dep/index.js", "module.exports = 1\n");
    repo.settle();
    spares(&repo, &["add", "-q", "--worktree"]).succeeds();
    spares(&repo, &["pause", "-q", "."]).succeeds();
    let path = is_spare(&add(&repo, &["one"]));
    is_clean(&path);
    assert!(path.join("node_modules/dep/index.js").exists());
}

/// A worktree is registered and complete, or neither, and the spare is ready, used, or swept.
#[test]
fn killed_at_any_moment_a_worktree_from_a_spare_is_absent_or_complete() {
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    repo.write("lib/two", "2\n");
    repo.commit("two");
    repo.git(["branch", "other", "HEAD~1"]);
    repo.settle();
    spares(&repo, &["add", "-q", "--worktree"]).succeeds();
    let (mut killer, home) = (Killer::new(31), repo.spot.join("home"));
    let (mut complete, mut spares_used) = (0, 0);
    for round in 0..rounds(20) {
        spares(&repo, &["refill", "-q", "."]).succeeds();
        spares(&repo, &["pause", "-q", "."]).succeeds();
        repo.write(&format!("node_modules/dep/{}.js", round % 7), &format!("{round}\n"));
        let branch = if round % 2 == 0 { "main" } else { "other" };
        let words = ["add", "--json", "--no-hooks", "--detach", branch, "--path", "../new"];
        let ran = killer.let_run(repo.calve(words).env("CALVE_HOME", &home));
        let path = repo.spot.join("new");
        assert!(path.exists() || ran.was_killed(), "round {round}: there is no worktree");
        if !ran.was_killed() {
            spares_used += usize::from(ran.json()["clone"]["strategy"] == "spare");
        }
        if path.exists() {
            // Killed between its name and git's being told of it: the next command tells git.
            repo.calve(["list"]).succeeds();
        }
        if repo.worktrees().contains(&path) {
            complete += 1;
            is_clean(&path);
            let file = format!("node_modules/dep/{}.js", round % 7);
            assert_eq!(fs_err::read_to_string(path.join(file)).unwrap(), format!("{round}\n"));
            git(&path, ["fsck", "--no-progress"]);
            repo.calve(["remove", "-f", "../new"]).succeeds();
        } else {
            assert!(!path.exists(), "round {round}: half a worktree");
        }
        is_clean(&repo.path);
    }
    let all_came_up = killer.killed() > 0 && complete > 0 && spares_used > 0;
    assert!(few_rounds() || all_came_up, "{} {complete} {spares_used}", killer.killed());
    spares(&repo, &["refill", "-q", "."]).succeeds();
    is_clean(&is_spare(&add(&repo, &["last"])));
}

/// The counts of the spares that are to be kept.
fn kept(repo: &Repo) -> Vec<u64> {
    let told = spares(repo, &["list", "--json"]).succeeds().json();
    told["sources"].as_array().unwrap().iter().map(|set| set["count"].as_u64().unwrap()).collect()
}

#[test]
fn the_users_own_configuration_has_spares_kept_and_the_projects_proposes_them() {
    let Some(repo) = Repo::on(FileSystem::Ext4) else { return };
    let home = repo.spot.join("home");
    let add = |name: &str| repo.calve(["add", "--json", name]).env("CALVE_HOME", &home).succeeds();
    let command = "calve spares add --worktree --count 2";
    repo.write(".calve.toml", "[worktree]\nspares = 2\n");
    repo.commit("proposal");
    add("one").says(&[command]);
    assert_eq!(kept(&repo), Vec::<u64>::new());
    // However it got into the repository, it is not the user's own.
    repo.write(".calve.local.toml", "[worktree]\nspares = 2\n");
    repo.git(["add", "-f", ".calve.local.toml"]);
    add("two").says(&[command]);
    assert_eq!(kept(&repo), Vec::<u64>::new());
    repo.git(["rm", "-q", "--cached", ".calve.local.toml"]);
    add("three");
    assert_eq!(kept(&repo), [2]);
    // Waits for what builds in the background.
    spares(&repo, &["refill", "-q", "."]).succeeds();
    spares(&repo, &["pause", "-q", "."]).succeeds();
    let told = add("four").json();
    is_clean(&is_spare(&told));
    assert_eq!(kept(&repo), [2]);
}

/// Spares of worktrees are for worktrees, and others are not: on btrfs only the first are subvolumes.
#[test]
fn spares_for_worktrees_and_for_copies_are_not_mixed_up() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let copy = |name: &str| {
        let copied = calve(["cp", "--json", "--exclude", "/.git", "proj", name]).within(&repo.spot);
        let receipt = copied.env("CALVE_HOME", repo.spot.join("home")).succeeds().json();
        assert!(!is_subvolume(&repo.spot.join(name)), "{name}");
        receipt["strategy"].clone()
    };
    for (round, kind, other) in [("1", "--worktree", "--exclude=/.git"), ("2", "--exclude=/.git", "--worktree")] {
        spares(&repo, &["add", "-q", kind, "."]).succeeds();
        spares(&repo, &["pause", "-q", "."]).succeeds();
        let worktree = add(&repo, &[&format!("only{round}")])["clone"]["strategy"].clone();
        let copied = copy(&format!("only-copy{round}"));
        assert_eq!((worktree == "spare", copied == "spare"), (kind == "--worktree", kind != "--worktree"), "{kind}");
        spares(&repo, &["add", "-q", kind, "."]).succeeds();
        spares(&repo, &["add", "-q", other, "."]).succeeds();
        spares(&repo, &["pause", "-q", "."]).succeeds();
        let path = is_spare(&add(&repo, &[&format!("both{round}")]));
        assert!(is_subvolume(&path));
        is_clean(&path);
        assert_eq!(copy(&format!("both-copy{round}")), "spare");
        spares(&repo, &["remove", "-q", "."]).succeeds();
    }
}
