//! `calve bench worktree`: a worktree that one can work in, made by every means there is, up to the first `git status`.

mod workloads;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::{Cancel, CloneOptions, Shown, clone_tree, probe};
use serde_json::json;

use super::machine::{Machine, mount_options, own_peak_memory_bytes};
use super::place::{self, Place};
use super::programs;
use super::report::{Fact, Report};
use super::runs::{self, Plan, Rounds};
use super::space::{Cache, Room};
use crate::error::{BenchError, FailureKind};
use calve_receipt as receipt;

/// The options of `calve bench worktree`.
pub struct Setup<'a> {
    /// A repository's main worktree, with what git ignores in it.
    pub repository: &'a Path,
    /// The directory that everything is made in.
    pub into: &'a Path,
    /// How many rounds are counted.
    pub rounds: Rounds,
    /// How many rounds come before them, and are not counted.
    pub warmup: u32,
    /// Whether the caches are emptied before each run.
    pub cache: Cache,
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with what should be known even by those who want no progress.
    pub warn: &'a dyn Fn(&str),
    /// Ends the bench early.
    pub cancel: &'a Cancel,
}

/// Measures, removes all that was made, and reports. The repository itself is only read: worktrees are added to a clone of it.
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    let repository = place::real_path(setup.repository)?;
    if !repository.join(".git").is_dir() {
        let text = format!("`{}` is not the main worktree of a git repository", Shown(setup.repository));
        return Err(BenchError::stated(
            FailureKind::Usage,
            text,
            "name the directory that has `.git` in it with `--repository`",
        ));
    }
    let began = SystemTime::now();
    let mut place = Place::make(setup.into, setup.warn)?;
    let report = measured(setup, &repository, began, &mut place);
    if place.has_runs() {
        (setup.say)("removing everything that was made");
    }
    place.remove()?;
    report
}

fn measured(setup: &Setup<'_>, repository: &Path, began: SystemTime, place: &mut Place) -> Result<Report, BenchError> {
    let source = place.path().join("source");
    let used_before = place.used_bytes()?;
    (setup.say)("cloning the repository: worktrees are added to the clone");
    let mut options = CloneOptions::default();
    options.cancel = setup.cancel.clone();
    let cloned = clone_tree(repository, &source, &options)?;
    // Entries of other worktrees lead to those, and files have new inodes.
    git(&source, &["worktree", "prune", "--expire=now"])?;
    git(&source, &["status", "--porcelain"])?;
    place.flush()?;
    let made = place.used_bytes()?.saturating_sub(used_before);
    let tracked = git(&source, &["ls-files", "-z"])?.bytes().filter(|&byte| byte == 0).count();
    let calve = std::env::current_exe()?;
    let (workloads, absent) = workloads::choose(&source, &calve, &programs::find)?;
    let none = |_: &Path| Vec::new();
    let machine = Machine::here();
    let plan = Plan {
        rounds: setup.rounds,
        warmup: setup.warmup,
        cache: setup.cache,
        needs: Room { bytes: made, inodes: cloned.entries.map_or(0, |entries| entries.total()) },
        memory_bytes: machine.memory_bytes,
        inspect: &none,
        say: setup.say,
        cancel: setup.cancel,
    };
    let runs = runs::run(workloads, &plan, place)?;
    let versions = programs::versions(&calve, vec!["git", "cp", "npm", "wt"], setup.cancel)?;
    let mut report = Report::new("worktree", began, machine, &plan, runs, absent, versions);
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    let entries = cloned.entries.map(|entries| entries.total());
    let counted = entries.map_or_else(String::new, |entries| format!(", {entries} entries"));
    let file_system = probe(&source, place.path())?.dst.file_system;
    report.subject = format!(
        "a worktree of `{}` ({tracked} tracked files{counted}) on {file_system}, up to the first `git status`",
        Shown(repository)
    );
    report.facts = facts(setup, repository, &file_system, tracked, entries);
    Ok(report)
}

fn facts(setup: &Setup<'_>, repository: &Path, file_system: &str, tracked: usize, entries: Option<u64>) -> Vec<Fact> {
    let options = mount_options(setup.into).unwrap_or_else(|| "unknown options".into());
    let text = format!("`{}`: {tracked} tracked files", Shown(repository));
    let value = json!({ "path": receipt::path(repository), "tracked_files": tracked, "entries": entries });
    let into = json!({ "path": receipt::path(setup.into), "file_system": file_system, "mount_options": options });
    vec![
        Fact::new("repository", "Repository", text, value),
        Fact::new("target", "Made in", format!("`{}`, {file_system}, mounted {options}", Shown(setup.into)), into),
        Fact::new(
            "places",
            "REPO, DST",
            "a clone of the repository, and a new path in the target for each run".into(),
            json!(null),
        ),
    ]
}

/// What git prints in a directory.
fn git(at: &Path, arguments: &[&str]) -> Result<String, BenchError> {
    Ok(String::from_utf8_lossy(&calve_git::Git::at(at).run(arguments)?).into_owned())
}

/// The directories and files directly in the worktree that git ignores, for programs that have to be told.
fn ignored(source: &Path) -> Result<Vec<PathBuf>, BenchError> {
    let listed = git(source, &["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])?;
    let names = listed.split('\0').map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty());
    Ok(names.map(PathBuf::from).collect())
}
