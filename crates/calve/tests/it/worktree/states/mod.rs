//! Removes, prunes or converts worktrees in random states, through the commands, an agent's hook or MCP. Checks that nothing is lost that
//! exists nowhere else, and that no program of an untrusted tree or a nested repository runs.
//!
//! The words that must not be lost are those of files, and the names of commits and of staged contents, by which git finds them. Before and
//! after, all files are searched for each, but for those in the trash. `remove -f` may lose the contents of the worktree that was named and of
//! its entry, if the two name each other, and nothing else: ignored files are moved aside. Half of the removals are with `-d`.
//!
//! `CALVE_ROUNDS` multiplies their number; `CALVE_SEED` repeats one.

mod fixture;
mod model;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::thread;

use calve_testkit::{FileSystem, SplitMix64, Volume, is_root, rounds};
use serde_json::{Value, json};

use super::mcp::Lines;
use crate::program::Calve;
use fixture::{Fixture, try_git};
use model::{State, live_files};

const STATES: u64 = 200;

#[derive(Default, Debug)]
struct Counts {
    states: u64,
    removed: u64,
    removed_by_force: u64,
    removed_by_hooks: u64,
    removed_by_mcp: u64,
    refused: u64,
    pruned: u64,
    converted: u64,
}

#[test]
fn nothing_is_lost_in_any_state() {
    let only = std::env::var("CALVE_SEED").ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = only.map_or(0..(rounds(STATES as usize) as u64).max(STATES), |seed| seed..seed + 1);
    // Only btrfs has what `convert` makes, and only root can make a btrfs.
    let volume = if is_root() { Volume::new(FileSystem::Btrfs) } else { None };
    let folder = tempfile::tempdir().unwrap();
    let base = volume.as_ref().map_or(folder.path(), |volume| volume.path());
    let base = fs_err::canonicalize(base).unwrap();
    let (next, counts) = (Mutex::new(seeds.clone()), Mutex::new(Counts::default()));
    thread::scope(|scope| {
        for worker in 0..2 {
            let (base, next, counts) = (base.join(format!("worker{worker}")), &next, &counts);
            scope.spawn(move || {
                let fixture = Fixture::new(&base);
                while let Some(seed) = { next.lock().unwrap().next() } {
                    one(&fixture, seed, counts);
                }
            });
        }
    });
    let counts = counts.into_inner().unwrap();
    #[expect(clippy::print_stderr, reason = "how many there were is what a long run is for")]
    {
        eprintln!("{counts:?}");
    }
    if seeds.end - seeds.start >= STATES {
        assert!(counts.removed > STATES / 20 && counts.refused > STATES / 5, "{counts:?}");
        let seldom = [counts.removed_by_force, counts.removed_by_hooks, counts.removed_by_mcp, counts.pruned];
        assert!(seldom.iter().all(|count| *count > STATES / 100), "{counts:?}");
        assert!(volume.is_none() || counts.converted > STATES / 100, "{counts:?}");
    }
}

/// An attempt to remove or convert something.
#[derive(Debug)]
enum Attempt {
    Remove { what: PathBuf, is_forced: bool, deletes_merged: bool },
    Hook { path: PathBuf, is_forced: bool },
    Mcp { what: PathBuf },
    Prune,
    PruneMerged { of_any_age: bool },
    Convert,
}

fn one(fixture: &Fixture, seed: u64, counts: &Mutex<Counts>) {
    let mut random = SplitMix64::new(seed);
    let state = State::random(fixture, seed, &mut random);
    let start = random.pick(&state.starts).clone();
    let what = random.pick(&state.names).clone();
    let is_forced = random.below(6) == 0;
    let attempt = match random.below(100) {
        0..40 => Attempt::Remove { what, is_forced, deletes_merged: random.below(2) == 0 },
        // Agents name paths.
        40..55 => Attempt::Hook { path: fixture.state.join(what), is_forced },
        55..70 => Attempt::Mcp { what },
        70..84 => Attempt::Prune,
        84..92 => Attempt::PruneMerged { of_any_age: random.below(2) == 0 },
        _ => Attempt::Convert,
    };
    let allowed = match &attempt {
        Attempt::Remove { what, is_forced: true, .. } => may_lose(&start, what),
        // It asks the repository of the path, not that of the directory in which it runs.
        Attempt::Hook { path, is_forced: true } => may_lose(if path.is_dir() { path } else { &start }, path),
        _ => Vec::new(),
    };
    // git has run them for the test.
    fixture.forget_what_ran();
    let before = live_files(&fixture.state);
    let result = attempt_it(fixture, &attempt, &start);
    let after = live_files(&fixture.state);
    let told = || format!("CALVE_SEED={seed}: {:?}: {attempt:?} in {start:?}: {result:?}", state.story);
    assert_eq!(fixture.what_ran(), "", "a program of a tree that is not trusted ran: {}", told());
    for (word, why) in &state.precious {
        let is_in = |(_, bytes): &&(PathBuf, Vec<u8>)| memchr::memmem::find(bytes, word).is_some();
        let mut places = before.iter().filter(is_in).map(|(path, _)| path).peekable();
        let is_known = places.peek().is_some();
        // These are moved aside by force, too.
        let is_moved = matches!(*why, "an ignored file" | "an edited ignored file");
        let may_go = !is_moved && places.all(|path| allowed.iter().any(|region| path.starts_with(region)));
        if is_known && !may_go && !after.iter().any(|file| is_in(&file)) {
            panic!("{why} is lost: {}", told());
        }
    }
    let mut counts = counts.lock().unwrap();
    counts.states += 1;
    match (&attempt, result) {
        (_, Err(_)) => counts.refused += 1,
        (Attempt::Remove { is_forced: true, .. } | Attempt::Hook { is_forced: true, .. }, Ok(_)) => {
            counts.removed_by_force += 1;
        }
        (Attempt::Remove { .. }, Ok(_)) => counts.removed += 1,
        (Attempt::Hook { .. }, Ok(_)) => counts.removed_by_hooks += 1,
        (Attempt::Mcp { .. }, Ok(_)) => counts.removed_by_mcp += 1,
        (Attempt::Prune | Attempt::PruneMerged { .. }, Ok(went)) => counts.pruned += u64::from(went),
        (Attempt::Convert, Ok(went)) => counts.converted += u64::from(went),
    }
}

/// Returns whether something was done, or the message of the refusal.
fn attempt_it(fixture: &Fixture, attempt: &Attempt, start: &Path) -> Result<bool, String> {
    let ran = |command: Calve| {
        let ran = command.run();
        if ran.status.success() { Ok(ran) } else { Err(ran.stderr) }
    };
    match attempt {
        Attempt::Remove { what, is_forced, deletes_merged } => {
            let flags = [("-f", *is_forced), ("-d", *deletes_merged), ("--yes", true)];
            let flags = flags.iter().filter(|(_, is_wanted)| *is_wanted).map(|(flag, _)| *flag);
            let remove = fixture.calve(["worktree", "remove"]).args(flags).arg("--").arg(what);
            ran(remove.within(start)).map(|_| true)
        }
        Attempt::Prune => {
            ran(fixture.calve(["worktree", "prune"]).within(start)).map(|ran| ran.stderr.contains("forgot"))
        }
        Attempt::PruneMerged { of_any_age } => {
            let age: &[&str] = if *of_any_age { &["--older-than", "0h"] } else { &[] };
            let prune = fixture.calve(["worktree", "prune", "--merged", "--yes"]).args(age);
            ran(prune.within(start)).map(|ran| ran.stderr.contains("removed `"))
        }
        Attempt::Convert => {
            let convert = fixture.calve(["worktree", "convert"]).arg(start).within("/");
            ran(convert).map(|ran| !ran.stderr.contains("already"))
        }
        Attempt::Hook { path, is_forced } => {
            let force: &[&str] = if *is_forced { &["--force"] } else { &[] };
            let question = json!({"cwd": start, "hook_event_name": "WorktreeRemove", "worktree_path": path});
            let output = fed(fixture.calve(["hook", "worktree-remove"]).args(force).within(start), &question);
            if output.status.success() { Ok(true) } else { Err(text(output.stderr)) }
        }
        Attempt::Mcp { what } => by_mcp(fixture, start, what),
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

fn fed(command: Calve, line: &Value) -> Output {
    let mut command = command.command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(line.to_string().as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Asks for the removal, and confirms it with the token of the answer.
fn by_mcp(fixture: &Fixture, start: &Path, what: &Path) -> Result<bool, String> {
    let mut lines = Lines::of(fixture.calve(["mcp", "--repository"]).arg(start).within("/").command());
    let mut remove = |id, more: Option<&Value>| {
        let mut arguments = json!({"worktree": what});
        more.into_iter().for_each(|token| arguments["token"] = token.clone());
        let result = lines.call(id, "remove_worktree", arguments)["result"].take();
        let said = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == true { Err(said) } else { Ok(said) }
    };
    let planned: Value = serde_json::from_str(&remove(1, None)?).unwrap();
    remove(2, Some(&planned["token"])).map(|_| true)
}

/// Returns what of a worktree may be lost by force: its directory, if that and its entry name each other, and the entry. By what git lists and by
/// the text of the two files.
fn may_lose(start: &Path, what: &Path) -> Vec<PathBuf> {
    let Ok(text) = try_git(start, &["worktree", "list", "--porcelain"]) else { return Vec::new() };
    let Ok(common) = try_git(start, &["rev-parse", "--git-common-dir"]) else { return Vec::new() };
    let Ok(common) = fs_err::canonicalize(start.join(common)) else { return Vec::new() };
    // A repository may be asked by way of a link, and a worktree be named so.
    let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut regions = Vec::new();
    for worktree in text.split("\n\n").skip(1) {
        let path = PathBuf::from(worktree.lines().next().unwrap_or_default().trim_start_matches("worktree "));
        let branch = worktree.lines().find_map(|line| line.strip_prefix("branch refs/heads/"));
        let is_meant = branch.is_some_and(|branch| Path::new(branch) == what)
            || real(&path) == real(&start.join(what))
            || path.file_name() == Some(what.as_os_str());
        for entry in fs_err::read_dir(common.join("worktrees")).into_iter().flatten().flatten().filter(|_| is_meant) {
            let read = |path: PathBuf| fs_err::read_to_string(path).unwrap_or_default().trim().to_owned();
            if real(Path::new(&read(entry.path().join("gitdir")))) != real(&path.join(".git")) {
                continue;
            }
            let pointer = read(path.join(".git"));
            let is_pair = pointer.strip_prefix("gitdir: ").is_some_and(|named| real(Path::new(named)) == entry.path());
            let is_link = path.is_symlink();
            regions.extend([entry.path()]);
            regions.extend((is_pair && !is_link).then(|| real(&path)));
        }
    }
    regions
}
