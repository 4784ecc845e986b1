//! `--quiet` with every command: nothing on stderr where nothing is to be warned of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use calve_testkit::{FileSystem, isolate_mounts, require_program, require_root};

use super::repo::{Repo, git, with_environment, write};
use crate::manual::commands_below;
use crate::program::{Calve, RunResult, calve};
use crate::template_registry::server::Server;

/// Those that this test does not run. The benches need minutes, and print through the same lines of `bench.rs`.
const ELSEWHERE: [&str; 5] = ["bench db", "bench git", "bench worktree", "bench write", "spares watch"];

/// The commands below `path` that have none below them.
fn leaves(path: &[String]) -> Vec<String> {
    let below = commands_below(path);
    if below.is_empty() {
        return vec![path.join(" ")];
    }
    below.into_iter().flat_map(|name| leaves(&[path, &[name]].concat())).collect()
}

/// A repository, and the commands that have run in it.
struct Quiet {
    repo: Repo,
    all: Vec<String>,
    ran: BTreeSet<String>,
}

impl Quiet {
    fn within(&self, place: &str, words: &[&str]) -> Calve {
        let home = self.repo.spot.join("home");
        with_environment(calve(words)).within(self.repo.spot.join(place)).env("CALVE_HOME", home)
    }

    /// The standard input of commands.
    fn asked(&self) -> PathBuf {
        self.repo.spot.join("asked")
    }

    /// Expects success, and silence on stderr.
    #[track_caller]
    fn silent(&mut self, place: &str, words: &[&str]) -> RunResult {
        let line = words.join(" ");
        let command = self.all.iter().filter(|one| line == **one || line.starts_with(&format!("{one} ")));
        self.ran.insert(command.max_by_key(|one| one.len()).expect("it is a command").clone());
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let quiet = [&words[..at], &["-q"], &words[at..]].concat();
        let ran = self.within(place, &quiet).in_shell("", &format!("<{}", self.asked().display())).succeeds();
        assert_eq!(ran.stderr, "", "{words:?}");
        ran
    }
}

/// A commit, which makes the worktree one that has work to remove or to lose.
fn merged(worktree: &Path) {
    write(&worktree.join("more"), "text\n");
    git(worktree, ["add", "-A"]);
    git(worktree, ["commit", "-q", "-m", "more"]);
}

fn trees(quiet: &mut Quiet, host: &str) {
    for words in [
        &["cp", "proj/src", "copy"] as &[&str],
        &["cp", "-n", "proj/src", "copy-2"],
        &["probe", "proj"],
        &["du", "proj"],
        &["dedupe", "copy"],
        &["rm", "-n", "copy"],
        &["rm", "--wait", "copy"],
        &["run", "--tree", "proj", "--discard", "--", "sh", "-c", "echo x > proj/src/main.ts"],
        &["completions", "bash"],
        &["shell-init", "bash"],
        &["mcp"],
        &["bench", "copy", "--tree", "proj/src", "--into", ".", "--runs", "1", "--only", "calve cp"],
        &["template", "create", "deps", "proj/node_modules"],
        &["template", "list"],
        &["template", "show", "deps"],
        &["template", "verify", "deps"],
        &["template", "refresh", "deps"],
        &["template", "push", "--plain-http", "deps", &format!("{}/deps", host)],
        &["template", "pull", "--plain-http", "--name", "pulled", &format!("{}/deps", host)],
        &["template", "remove", "pulled"],
        &["spares", "add", "proj/node_modules"],
        &["spares", "list"],
        &["spares", "pause", "proj/node_modules"],
        &["spares", "refill"],
        &["spares", "remove", "proj/node_modules"],
        &["volume", "create", "work", "--size", "256M", "--sparse"],
        &["volume", "attach", "work"],
        &["volume", "list"],
        &["volume", "grow", "work", "--size", "300M"],
        &["volume", "detach", "work"],
        &["volume", "doctor", "work"],
        &["volume", "remove", "work", "--yes"],
        &["git", "clone", "--for", "dev", "proj", "cloned"],
        &["git", "fetch", "-C", "cloned"],
        &["git", "advise"],
    ] {
        quiet.silent(".", words);
    }
}

fn databases(quiet: &mut Quiet, host: &str) {
    for words in [
        &["db", "template", "create", "t", "--engine", "redis"] as &[&str],
        &["db", "template", "list"],
        &["db", "template", "push", "--plain-http", "t", &format!("{}/t", host)],
        &["db", "template", "pull", "--plain-http", "--name", "u", &format!("{}/t", host)],
        &["db", "pool", "t", "--size", "1"],
        &["db", "start", "t", "--name", "s"],
        &["db", "url", "s"],
        &["db", "mark", "s", "m"],
        &["db", "marks", "s"],
        &["db", "reset", "s", "--to", "m"],
        &["db", "unmark", "s", "m"],
        &["db", "logs", "s"],
        &["db", "list"],
        &["db", "run", "t", "--", "true"],
        &["db", "stop", "s"],
        &["db", "pool", "t", "--size", "0"],
    ] {
        quiet.silent(".", words);
    }
}

fn worktrees(quiet: &mut Quiet) {
    quiet.silent("proj", &["init", "--port", "web=3000"]);
    let config = "[ports]\nweb = 3000\n[services.db]\ntemplate = 't'\nenv = 'REDIS_URL'\n[hooks]\npost-add = 'true'\npre-remove = 'true'\n";
    quiet.repo.write(".calve.toml", config);
    quiet.repo.write(".gitignore", "node_modules/\n/target/\n.env*\n");
    quiet.repo.commit("configured");
    for words in [
        &["hook", "approve", "--yes"] as &[&str],
        &["worktree", "add", "-n", "a"],
        &["worktree", "add", "a"],
        &["worktree", "add", "b"],
        &["worktree", "list"],
        &["worktree", "cd", "a"],
        &["worktree", "check"],
        &["prompt"],
        &["env"],
        &["env", "--renew"],
        &["up"],
        &["status"],
        &["logs"],
        &["exec", "--", "true"],
        &["reset", "--yes"],
        &["down"],
    ] {
        quiet.silent("proj", words);
    }
    quiet.silent(".", &["worktree", "convert", "proj"]);
    quiet.silent("proj", &["db", "promote", "a", "--yes"]);
    quiet.silent("proj", &["worktree", "remove", "-n", "a"]);
    quiet.silent("proj", &["worktree", "remove", "a"]);
}

/// Removes worktrees, one of which is gone already, and their data.
fn removals(quiet: &mut Quiet) {
    let spot = quiet.repo.spot.to_path_buf();
    fs_err::remove_dir_all(spot.join("proj.b")).unwrap();
    quiet.silent("proj", &["worktree", "prune"]);
    quiet.silent("proj", &["worktree", "add", "c"]);
    merged(&spot.join("proj.c"));
    quiet.repo.git(["merge", "-q", "c"]);
    quiet.silent("proj", &["worktree", "prune", "--merged", "-n"]);
    quiet.silent("proj", &["worktree", "prune", "--merged", "--yes", "--lose-data"]);
    assert!(!spot.join("proj.c").exists());
    quiet.silent("proj", &["db", "gc"]);
    quiet.silent("proj", &["db", "template", "remove", "u"]);
}

fn agents(quiet: &mut Quiet) {
    for agent in ["claude", "codex"] {
        quiet.silent("proj", &["hook", "install", agent, "--yes"]);
        quiet.silent("proj", &["hook", "uninstall", agent, "--yes"]);
    }
    let asked = serde_json::json!({"cwd": quiet.repo.path, "name": "topic"}).to_string();
    fs_err::write(quiet.asked(), asked).unwrap();
    let made = quiet.silent("proj", &["hook", "worktree-create", "--maker", "claude"]).stdout;
    let asked = serde_json::json!({"worktree_path": made.trim_end()}).to_string();
    fs_err::write(quiet.asked(), asked).unwrap();
    quiet.silent("proj", &["hook", "worktree-remove"]);
    quiet.repo.git(["worktree", "add", "-q", "-b", "by-agent", "../by-agent"]);
    quiet.silent("by-agent", &["hook", "worktree-setup", "--maker", "cursor"]);
}

#[test]
fn no_command_says_anything_with_quiet_but_warnings() {
    let programs = ["redis-server", "redis-cli", "mkfs.btrfs"];
    if !require_root("mounting") || !programs.iter().all(|program| require_program(program)) {
        return;
    }
    isolate_mounts();
    let Some(repo) = Repo::on(FileSystem::Btrfs) else { return };
    let Some(registry) = Server::new() else { return };
    rustix::fs::chmod(&*repo.spot, 0o755.into()).unwrap();
    let mut quiet = Quiet { repo, all: leaves(&[]), ran: BTreeSet::new() };
    fs_err::write(quiet.asked(), "").unwrap();
    // The installed packages do not fit it, and a new worktree warns of that.
    fs_err::remove_file(quiet.repo.join("package-lock.json")).unwrap();

    trees(&mut quiet, &registry.host);
    databases(&mut quiet, &registry.host);
    worktrees(&mut quiet);
    removals(&mut quiet);
    agents(&mut quiet);

    quiet.ran.extend(ELSEWHERE.map(str::to_owned));
    let missing: Vec<&String> = quiet.all.iter().filter(|one| !quiet.ran.contains(*one)).collect();
    assert_eq!(missing, [""; 0], "run these too");
}
