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
use crate::failure::{Failure, USAGE};
use crate::receipt;

/// What is asked for.
pub(crate) struct Wish<'a> {
    /// A repository's main worktree, with what git ignores in it.
    pub(crate) repository: &'a Path,
    pub(crate) into: &'a Path,
    pub(crate) rounds: Rounds,
    pub(crate) warmup: u32,
    pub(crate) cache: Cache,
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
}

/// Measures, removes all that was made, and reports. The repository itself is only read: worktrees are added to a clone of it.
pub(crate) fn run(wish: &Wish<'_>) -> Result<Report, Failure> {
    let repository = place::real_path(wish.repository)?;
    if !repository.join(".git").is_dir() {
        let text = format!("`{}` is not the main worktree of a git repository", Shown(wish.repository));
        return Err(Failure::stated(USAGE, text, "name the directory that has `.git` in it with `--repository`"));
    }
    let began = SystemTime::now();
    let mut place = Place::make(wish.into)?;
    let report = measured(wish, &repository, began, &mut place);
    if place.has_runs() {
        (wish.say)("removing everything that was made");
    }
    place.remove()?;
    report
}

fn measured(wish: &Wish<'_>, repository: &Path, began: SystemTime, place: &mut Place) -> Result<Report, Failure> {
    let source = place.path().join("source");
    let used_before = place.used_bytes()?;
    (wish.say)("cloning the repository: worktrees are added to the clone");
    let mut options = CloneOptions::default();
    options.cancel = wish.cancel.clone();
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
        rounds: wish.rounds,
        warmup: wish.warmup,
        cache: wish.cache,
        needs: Room { bytes: made, inodes: cloned.entries.map_or(0, |entries| entries.total()) },
        memory_bytes: machine.memory_bytes,
        inspect: &none,
        say: wish.say,
        cancel: wish.cancel,
    };
    let runs = runs::run(workloads, &plan, place)?;
    let versions = programs::versions(&calve, vec!["git", "cp", "npm", "wt"], wish.cancel)?;
    let mut report = Report::new("worktree", began, machine, &plan, runs, absent, versions);
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    let entries = cloned.entries.map(|entries| entries.total());
    let counted = entries.map_or_else(String::new, |entries| format!(", {entries} entries"));
    let file_system = probe(&source, place.path())?.dst.file_system;
    report.subject = format!(
        "a worktree of `{}` ({tracked} tracked files{counted}) on {file_system}, up to the first `git status`",
        Shown(repository)
    );
    report.facts = facts(wish, repository, &file_system, tracked, entries);
    Ok(report)
}

fn facts(wish: &Wish<'_>, repository: &Path, file_system: &str, tracked: usize, entries: Option<u64>) -> Vec<Fact> {
    let options = mount_options(wish.into).unwrap_or_else(|| "unknown options".into());
    let text = format!("`{}`: {tracked} tracked files", Shown(repository));
    let value = json!({ "path": receipt::path(repository), "tracked_files": tracked, "entries": entries });
    let into = json!({ "path": receipt::path(wish.into), "file_system": file_system, "mount_options": options });
    vec![
        Fact::new("repository", "Repository", text, value),
        Fact::new("target", "Made in", format!("`{}`, {file_system}, mounted {options}", Shown(wish.into)), into),
        Fact::new(
            "places",
            "REPO, DST",
            "a clone of the repository, and a new path in the target for each run".into(),
            json!(null),
        ),
    ]
}

/// What git prints in a directory.
fn git(at: &Path, arguments: &[&str]) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&calve_git::Git::at(at).run(arguments)?).into_owned())
}

/// The directories and files directly in the worktree that git ignores, for programs that have to be told.
fn ignored(source: &Path) -> Result<Vec<PathBuf>, Failure> {
    let listed = git(source, &["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"])?;
    let names = listed.split('\0').map(|path| path.trim_end_matches('/')).filter(|path| !path.is_empty());
    Ok(names.map(PathBuf::from).collect())
}
