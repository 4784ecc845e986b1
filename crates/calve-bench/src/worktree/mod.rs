//! `calve bench worktree`: worktrees ready for work, made by every available means, up to the first `git status`.

mod workloads;

use std::path::Path;
use std::time::SystemTime;

use calve_core::internal::ShownPath;
use calve_core::{CloneOptions, clone_tree};
use calve_receipt::bench::RepositoryFact;
use calve_receipt::human::counted;

use crate::comparison;
use crate::error::BenchError;
use crate::machine;
use crate::programs;
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs;
use crate::scratch::{Room, Scratch, real_path};
use crate::setup::{BenchSetup, Rounds};

/// Measures worktrees of a repository, named by its main worktree. It is only read: worktrees are added to a clone of
/// it, with its ignored files.
pub fn run(setup: &BenchSetup<'_>, rounds: Rounds, given: &Path) -> Result<Report, BenchError> {
    let repository = real_path(given)?;
    if !repository.join(".git").is_dir() {
        let text = format!("`{}` is not the main worktree of a git repository", ShownPath(given));
        return Err(BenchError::usage(text, Remedy::NameMainWorktree));
    }
    let began = SystemTime::now();
    setup.in_scratch(|scratch| measure(setup, rounds, &repository, began, scratch))
}

fn measure(
    setup: &BenchSetup<'_>,
    rounds: Rounds,
    repository: &Path,
    began: SystemTime,
    scratch: &mut Scratch<'_>,
) -> Result<Report, BenchError> {
    let source = scratch.path.join("source");
    let used_before = scratch.used_bytes()?;
    (setup.say)("cloning the repository: worktrees are added to the clone");
    let options = CloneOptions { cancel: setup.cancel.clone(), ..CloneOptions::default() };
    let cloned = clone_tree(repository, &source, &options)?;
    // The clone has entries of the original's worktrees, and new inodes.
    workloads::git(&source, &["worktree", "prune", "--expire=now"])?;
    workloads::git(&source, &["status", "--porcelain"])?;
    scratch.flush()?;
    let made = scratch.used_bytes()?.saturating_sub(used_before);
    let tracked_files = workloads::git(&source, &["ls-files", "-z"])?.bytes().filter(|&byte| byte == 0).count();
    let calve = std::env::current_exe()?;
    let (mut workloads, mut not_run) = workloads::choose(&source, &calve)?;
    workloads::add_with_spare(&source, &calve, scratch, setup.cancel, (&mut workloads, &mut not_run))?;
    let machine = machine::here();
    let cloned_entries = cloned.entries.map(|entries| entries.total());
    let needs = Room { bytes: made, inodes: cloned_entries.unwrap_or(0) };
    let inspect = |_: &Path| Vec::new();
    let runs = runs::run(setup, rounds, needs, machine.memory_bytes, &inspect, workloads, scratch)?;
    let mut report = Report::new("worktree", began, machine);
    let text = format!("`{}`: {}", ShownPath(repository), counted(tracked_files as u64, "tracked file"));
    let fact = RepositoryFact { path: calve_receipt::path(repository), tracked_files, entries: cloned_entries };
    report.circumstance("Repository", text);
    report.document.facts.repository = Some(fact);
    scratch.add_to(&mut report, "Made in")?;
    report.circumstance("REPO, DST", "a clone of the repository, and a new path in the target for each run");
    comparison::complete(&mut report, &runs);
    report.document.not_run = not_run;
    report.versions(programs::versions(&calve, vec!["git", "cp", "npm", "wt"], setup.cancel)?);
    Ok(report)
}
