//! Random states of repositories and worktrees, in each of which something is removed, forgotten or converted. Nothing is lost that
//! exists nowhere else.
//!
//! What must not be lost are words: of files, and the names of commits and of staged contents, by which git finds them. Before and
//! after, all files are searched for each, but for those in the trash. `remove -f` may lose what is in the worktree that was named and in
//! its entry, if the two name each other, and nothing else: ignored files are moved aside. Half of the removals are with `-d`.
//!
//! `CALVE_ROUNDS` multiplies their number; `CALVE_SEED` repeats one.

mod fixture;
mod model;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use calve_core::{CancelToken, CloneOptions};
use calve_git::worktree::{BranchFate, NoSteps, RemoveWorktreeOptions, convert, merged, prune, remove};
use calve_git::{Error, Git};
use calve_testkit::{FileSystem, SplitMix64, Volume, is_root, rounds};

use fixture::Fixture;
use model::{State, live_files};

const STATES: u64 = 200;

#[derive(Default, Debug)]
struct Counts {
    states: u64,
    removed: u64,
    removed_by_force: u64,
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
        assert!(counts.removed > STATES / 20 && counts.refused > STATES / 5 && counts.removed_by_force > STATES / 50);
        assert!(counts.pruned > STATES / 50 && (volume.is_none() || counts.converted > STATES / 100), "{counts:?}");
    }
}

/// What is tried.
#[derive(Debug)]
enum Attempt {
    Remove { what: PathBuf, is_forced: bool, branch: BranchFate },
    Prune,
    PruneMerged { older_than: Option<Duration> },
    Convert,
}

fn one(fixture: &Fixture, seed: u64, counts: &Mutex<Counts>) {
    let mut random = SplitMix64::new(seed);
    let state = State::random(fixture, seed, &mut random);
    let start = random.pick(&state.starts).clone();
    let attempt = match random.below(100) {
        0..72 => Attempt::Remove {
            what: random.pick(&state.names).clone(),
            is_forced: random.below(6) == 0,
            branch: *random.pick(&[BranchFate::Stays, BranchFate::DeletedIfMerged]),
        },
        72..84 => Attempt::Prune,
        84..92 => Attempt::PruneMerged { older_than: random.pick(&[None, Some(Duration::ZERO)]).to_owned() },
        _ => Attempt::Convert,
    };
    let allowed = match &attempt {
        Attempt::Remove { what, is_forced: true, .. } => may_lose(&start, what),
        _ => Vec::new(),
    };
    let before = live_files(&fixture.state);
    let result = attempt_it(&attempt, &start);
    let after = live_files(&fixture.state);
    for (word, why) in &state.precious {
        let is_in = |(_, bytes): &&(PathBuf, Vec<u8>)| memchr::memmem::find(bytes, word).is_some();
        let mut places = before.iter().filter(is_in).map(|(path, _)| path).peekable();
        let is_known = places.peek().is_some();
        // These are moved aside by force, too.
        let is_moved = matches!(*why, "an ignored file" | "an edited ignored file");
        let may_go = !is_moved && places.all(|path| allowed.iter().any(|region| path.starts_with(region)));
        if is_known && !may_go && !after.iter().any(|file| is_in(&file)) {
            panic!("{why} is lost: CALVE_SEED={seed}: {:?}: {attempt:?} in {start:?}: {result:?}", state.story);
        }
    }
    let mut counts = counts.lock().unwrap();
    counts.states += 1;
    match (&attempt, result) {
        (_, Err(_)) => counts.refused += 1,
        (Attempt::Remove { is_forced: true, .. }, Ok(_)) => counts.removed_by_force += 1,
        (Attempt::Remove { .. }, Ok(_)) => counts.removed += 1,
        (Attempt::Prune | Attempt::PruneMerged { .. }, Ok(went)) => counts.pruned += u64::from(went),
        (Attempt::Convert, Ok(_)) => counts.converted += 1,
    }
}

/// Says whether something was done.
fn attempt_it(attempt: &Attempt, start: &Path) -> Result<bool, Error> {
    match attempt {
        Attempt::Remove { what, is_forced, branch } => {
            let mut options = RemoveWorktreeOptions::default();
            options.start = start.to_path_buf();
            options.what = Some(what.clone());
            options.is_forced = *is_forced;
            options.branch = *branch;
            remove(&options, &mut NoSteps).map(|_| true)
        }
        Attempt::Prune => prune(start).map(|pruned| !pruned.forgotten.is_empty()),
        Attempt::PruneMerged { older_than } => {
            let found = merged(start, *older_than, &CancelToken::default())?;
            for one in found.iter().filter(|one| one.refused.is_none()) {
                let mut options = RemoveWorktreeOptions::default();
                options.start = start.to_path_buf();
                options.what = Some(one.worktree.path.clone());
                remove(&options, &mut NoSteps)?;
            }
            Ok(found.iter().any(|one| one.refused.is_none()))
        }
        Attempt::Convert => {
            let mut options = CloneOptions::default();
            options.cancel = CancelToken::default();
            convert(start, &options).map(|converted| !converted.was_one)
        }
    }
}

/// Returns what of a worktree may be lost by force: its directory, if that and its entry name each other, and the entry. By what git lists and by
/// the text of the two files.
fn may_lose(start: &Path, what: &Path) -> Vec<PathBuf> {
    let Ok(listed) = Git::at(start).run(&["worktree", "list", "--porcelain"]) else { return Vec::new() };
    let Ok(common) = Git::at(start).line(&["rev-parse", "--git-common-dir"]) else { return Vec::new() };
    let Ok(common) = fs_err::canonicalize(start.join(common)) else { return Vec::new() };
    let text = String::from_utf8(listed).unwrap();
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
