//! On btrfs worktrees are subvolumes, and cloning one is a snapshot.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use calve_testkit::{FileSystem, SplitMix64, assert_same, differences, random, rounds};
use rustix::process::Signal;
use serde_json::Value;

use super::repo::{Repo, git, is_as_git_makes_it, is_clean, opened_by_status, write};
use crate::process::send;
use crate::program::{RunResult, RunningProgram};
use crate::spot::{eventually, eventually_nothing_left, names, nothing_left};

pub(super) fn is_subvolume(path: &std::path::Path) -> bool {
    rustix::fs::stat(path).unwrap().st_ino == 256
}

#[test]
fn a_worktree_of_a_worktree_is_a_snapshot_without_what_is_not_to_be_in_it() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    repo.calve(["add", "first"]).succeeds().says(&["calve worktree convert", "makes the next one a snapshot"]);
    let first = repo.spot.join("proj.first");
    assert!(is_subvolume(&first));
    write(&first.join("untracked/file"), "u\n");
    write(&first.join("src/main.ts"), "changed\n");
    write(&first.join("target/server.pid"), "1\n");
    write(&first.join(".calve.toml"), "[worktree]\nexclude = [\"*.log\"]\n");
    write(&first.join("target/x.log"), "log\n");
    git(&first, ["worktree", "add", "-q", ".worktrees/inner"]);
    let receipt = repo.calve(["add", "--json", "--from", "first", "--base", "main", "second"]).succeeds().json();
    assert_eq!(receipt["clone"]["strategy"], "snapshot");
    let path = repo.spot.join("proj.second");
    assert!(is_subvolume(&path));
    is_clean(&path);
    is_as_git_makes_it(&repo, &path);
    for gone in ["untracked", "target/server.pid", "target/x.log", ".worktrees/inner", ".calve.toml"] {
        assert!(!path.join(gone).exists(), "{gone} is there");
    }
    assert_same(repo.join("node_modules"), path.join("node_modules"));
    let dirty = repo.calve(["add", "--dirty", "third"]).within(&first).succeeds();
    let dirty = std::path::Path::new(dirty.stdout.trim());
    assert_eq!(git(dirty, ["status", "--porcelain"]), " M src/main.ts\n?? .calve.toml\n?? untracked/\n");
    nothing_left(&repo.spot);
    repo.calve(["remove", "second"]).succeeds();
    eventually_nothing_left(&repo.spot);
}

#[test]
fn the_main_worktree_becomes_a_subvolume() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let before = git(&repo.path, ["rev-parse", "HEAD"]);
    repo.write("untracked", "u\n");
    repo.write(".git/info/exclude", ".calve.toml\n");
    repo.write(".calve.toml", &format!("[ports]\nweb = {}\n", super::ports::number(60)));
    let ports = || repo.within(&repo.path, &["env"]).succeeds().stdout;
    let port = ports();
    // It ends when its input does: with this test at the latest.
    let mut inside = Command::new("cat").current_dir(repo.join("src")).stdin(Stdio::piped()).spawn().unwrap();
    repo.calve(["convert", repo.path.to_str().unwrap()])
        .within(&repo.spot)
        .fails(1)
        .says(&["end it, or change its directory: it would keep working in the old one", "cat"]);
    drop(inside.stdin.take());
    inside.wait().unwrap();
    assert!(!is_subvolume(&repo.path));
    repo.within(&repo.spot, &["worktree", "convert", "proj"]).succeeds();
    assert!(is_subvolume(&repo.path));
    assert_eq!(ports(), port);
    fs_err::remove_file(repo.join(".calve.toml")).unwrap();
    eventually_nothing_left(&repo.spot);
    assert_eq!(opened_by_status(&repo.path), Vec::<String>::new());
    assert_eq!(git(&repo.path, ["status", "--porcelain"]), "?? untracked\n");
    assert_eq!(git(&repo.path, ["rev-parse", "HEAD"]), before);
    repo.calve(["convert", "proj"]).within(&repo.spot).succeeds().says(&["already"]);
    let receipt = repo.calve(["add", "--json", "x"]).succeeds().json();
    assert_eq!(receipt["clone"]["strategy"], "snapshot");
    let path = repo.spot.join("proj.x");
    is_clean(&path);
    assert!(path.join(".git").is_file() && !path.join("untracked").exists());
    is_as_git_makes_it(&repo, &path);
}

/// So the conversion need not ask what would be lost: whatever a worktree has, the subvolume has it too.
#[test]
fn a_conversion_keeps_everything_of_random_worktrees() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let mut chance = SplitMix64::new(41);
    for round in 0..rounds(20).max(4) {
        let path = repo.spot.join(format!("proj.{round}"));
        // A linked worktree, or a repository of its own, whose references and objects are inside.
        let is_linked = round % 2 == 0;
        if is_linked {
            repo.git(["worktree", "add", "-q", "-b", &format!("b{round}"), path.to_str().unwrap()]);
        } else {
            repo.git(["clone", "-q", ".", path.to_str().unwrap()]);
        }
        let files = git(&path, ["ls-files", "-z"]);
        let files: Vec<&str> = files.split('\0').filter(|file| !file.is_empty() && *file != "link").collect();
        for _ in 0..chance.below(5) {
            fs_err::write(path.join(chance.pick(&files)), chance.bytes(3000)).unwrap();
            match chance.below(4) {
                0 => _ = git(&path, ["add", "-A"]),
                1 => _ = git(&path, ["stash", "-q"]),
                2 => _ = git(&path, ["commit", "-q", "-a", "--allow-empty", "-m", "x"]),
                _ => _ = git(&path, ["update-ref", &format!("refs/worktree/{}", chance.below(9)), "HEAD"]),
            }
        }
        for place in ["new", "node_modules/new", "target", "src/deep"] {
            let (seed, entries) = (chance.next_u64(), chance.below(60));
            random(path.join(place), seed, entries);
        }
        write(&path.join("note"), "only here\n");
        let facts = || {
            let facts =
                ["status --porcelain --ignored", "ls-files --stage", "for-each-ref", "stash list", "rev-parse HEAD"];
            facts.map(|words| git(&path, words.split(' ')))
        };
        let unsaved = || repo.calve(["remove", "--json"]).arg(&path).fails(1).json()["unsaved"].clone();
        let (before, listed) = (facts(), if is_linked { unsaved() } else { Value::Null });
        let copied = repo.spot.join("copied");
        let cp = Command::new("cp").args(["-a", "--reflink=auto"]).arg(&path).arg(&copied).status();
        assert!(cp.unwrap().success() && !is_subvolume(&path));
        repo.calve(["convert"]).arg(&path).within(&repo.spot).succeeds();
        assert!(is_subvolume(&path));
        // Only the index has changed, which knows the inodes of the files.
        let differences = differences(&copied, &path, &[]);
        let others: Vec<_> = differences
            .iter()
            .filter(|line| !line.starts_with("`.git/index`") && !line.starts_with("`.git`: mtime"))
            .collect();
        assert!(others.is_empty(), "round {round}: {others:#?}");
        assert_eq!(facts(), before, "round {round}");
        assert!(!is_linked || unsaved() == listed, "round {round}");
        fs_err::remove_dir_all(&copied).unwrap();
    }
}

#[test]
fn elsewhere_a_conversion_is_refused() {
    let Some(repo) = Repo::on(FileSystem::Xfs) else { return };
    repo.calve(["convert", "proj"])
        .within(&repo.spot)
        .fails(1)
        .says(&["adding a worktree clones it file by file, which needs no conversion", "only btrfs has subvolumes"]);
    nothing_left(&repo.spot);
    is_clean(&repo.path);
}

/// `calve worktree convert`, stopped by strace as it comes back from the `nth` of its calls of renameat2.
struct StoppedConversion {
    strace: RunningProgram,
    pid: u32,
}

impl StoppedConversion {
    fn at(repo: &Repo, nth: u32) -> StoppedConversion {
        let log = repo.spot.join("strace");
        let inject = format!("inject=renameat2:signal=STOP:when={nth}");
        let strace = ["strace", "-f", "-qq", "-e", "trace=renameat2", "-e", &inject, "-o", "strace", "--"];
        let strace = repo.calve(["convert", "proj"]).within(&repo.spot).under(&strace).start();
        let stop =
            |line: &str| line.contains("--- stopped by SIGSTOP ---").then(|| line.split(' ').next()?.parse().ok());
        let mut pid = None;
        eventually("calve is stopped", || {
            let text = fs_err::read_to_string(&log).unwrap_or_default();
            pid = text.lines().find_map(stop).flatten();
            pid.is_some()
        });
        StoppedConversion { strace, pid: pid.unwrap() }
    }

    fn goes_on(self) -> RunResult {
        send(self.pid, Signal::CONT);
        self.strace.wait()
    }
}

#[test]
fn what_programs_write_during_a_conversion_is_not_lost() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let stopped = StoppedConversion::at(&repo, 2);
    assert!(is_subvolume(&repo.path));
    let hidden = hidden_tree(&repo);
    // It was about to save, and has the file open.
    let mut late = Command::new("sh");
    late.args(["-c", "exec 3>>src/main.ts; read line; echo saved >&3"]).current_dir(&hidden);
    let mut late = late.stdin(Stdio::piped()).spawn().unwrap();
    eventually("it has the file open", || {
        fs_err::read_link(format!("/proc/{}/fd/3", late.id())).is_ok_and(|file| file.ends_with("src/main.ts"))
    });
    let ran = stopped.goes_on();
    ran.ended(1);
    ran.says(&["is inside"]).hints();
    drop(late.stdin.take());
    late.wait().unwrap();
    assert_eq!(fs_err::read_to_string(repo.join("src/main.ts")).unwrap(), "export {}\nsaved\n");
    assert!(!is_subvolume(&repo.path));
    fs_err::remove_file(repo.spot.join("strace")).unwrap();
    nothing_left(&repo.spot);
    // A file that is saved between the last look and the exchange.
    // The first call tries whether there is something to replace, the second exchanges.
    let stopped = StoppedConversion::at(&repo, 1);
    assert!(!is_subvolume(&repo.path));
    repo.write("src/main.ts", "saved\n");
    let ran = stopped.goes_on();
    ran.ended(1);
    ran.says(&["src/main.ts", "changed", "nothing is lost"]).hints();
    assert_eq!(fs_err::read_to_string(repo.join("src/main.ts")).unwrap(), "saved\n");
    assert!(!is_subvolume(&repo.path));
    fs_err::remove_file(repo.spot.join("strace")).unwrap();
    nothing_left(&repo.spot);
    // Both trees are kept if both were written to.
    let stopped = StoppedConversion::at(&repo, 2);
    write(&hidden_tree(&repo).join("src/main.ts"), "old\n");
    repo.write("src/new.ts", "new\n");
    let ran = stopped.goes_on();
    ran.ended(1);
    ran.says(&["proj.kept"]).hints();
    assert_eq!(fs_err::read_to_string(repo.spot.join("proj.kept/src/main.ts")).unwrap(), "old\n");
    assert_eq!(fs_err::read_to_string(repo.join("src/new.ts")).unwrap(), "new\n");
    fs_err::remove_file(repo.spot.join("strace")).unwrap();
    fs_err::remove_dir_all(repo.spot.join("proj.kept")).unwrap();
    nothing_left(&repo.spot);
}

/// The one of the two that has no name of its own for the moment.
fn hidden_tree(repo: &Repo) -> PathBuf {
    let is_tree = |name: &&String| name.starts_with(".calve-") && repo.spot.join(name).join("src").exists();
    repo.spot.join(names(&repo.spot).iter().find(is_tree).unwrap())
}

#[test]
fn a_socket_is_not_lost_by_a_conversion() {
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    fs_err::create_dir(repo.join("notes")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(repo.join("notes/s")).unwrap();
    repo.within(&repo.spot, &["worktree", "convert", "proj"]).fails(1).says(&[
        "`notes/s` would be missing in the subvolume (socket)",
        "move it away, or end the program that it belongs to; nothing is converted, and nothing is lost",
    ]);
    assert!(!is_subvolume(&repo.path) && repo.join("notes/s").exists());
    nothing_left(&repo.spot);
    fs_err::remove_file(repo.join("notes/s")).unwrap();
    repo.within(&repo.spot, &["worktree", "convert", "proj"]).succeeds();
    assert!(is_subvolume(&repo.path));
}
