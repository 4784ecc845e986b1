//! `calve bench dedupe`: two copies of one tree, made to share their blocks by every program there is.

mod workloads;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::{Apply, Cancel, DedupeOptions, Error, Shown, dedupe, probe};
use serde_json::json;

use self::workloads::Ground;
use super::census::{self, Census, Contents};
use super::machine::{Machine, mount_options, own_peak_memory_bytes};
use super::place::{self, Place};
use super::programs;
use super::report::{Disk, Fact, Report};
use super::runs::{self, Plan, Rounds};
use super::space::{Cache, Room};
use super::workload::Row;
use crate::failure::{Failure, USAGE};
use crate::output::{entries, size};
use crate::receipt;

/// What is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) into: &'a Path,
    /// Programs that are not to be run.
    pub(crate) without: &'a [String],
    pub(crate) rounds: Rounds,
    pub(crate) warmup: u32,
    pub(crate) cache: Cache,
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
}

/// Measures, removes all that was made, and reports.
pub(crate) fn run(wish: &Wish<'_>) -> Result<Report, Failure> {
    let tree = tree(wish)?;
    let machine = Machine::here();
    let began = SystemTime::now();
    let mut place = Place::make(wish.into)?;
    let report = measured(wish, &tree, machine, began, &mut place);
    (wish.say)("removing everything that was made");
    place.remove()?;
    report
}

/// The directory to copy, free of links.
fn tree(wish: &Wish<'_>) -> Result<PathBuf, Failure> {
    for name in wish.without {
        if !workloads::programs().contains(&name.as_str()) {
            let text = format!("`--without {name}`: the bench runs no program of that name");
            return Err(Failure::stated(USAGE, text, "it runs duperemove, fclones, jdupes and rmlint"));
        }
    }
    let tree = place::real_path(wish.tree)?;
    if !tree.is_dir() {
        let text = format!("`{}` is not a directory", Shown(wish.tree));
        return Err(Failure::stated(USAGE, text, "name the directory to copy with `--tree`"));
    }
    if fs_err::canonicalize(wish.into).is_ok_and(|into| into.starts_with(&tree)) {
        let text = format!("`{}` is inside the tree `{}`", Shown(wish.into), Shown(wish.tree));
        let hint = "copies cannot be made inside of what is copied: name a place beside the tree with `--into`";
        return Err(Failure::stated(USAGE, text, hint));
    }
    Ok(tree)
}

fn measured(
    wish: &Wish<'_>,
    tree: &Path,
    machine: Machine,
    began: SystemTime,
    place: &mut Place,
) -> Result<Report, Failure> {
    check_that_it_can_share(place)?;
    let before = census::take(tree, Contents::Leave, wish.cancel)?;
    (wish.say)(&format!("{}: {}", Shown(tree), before.in_words()));
    let needs = Room { bytes: 2 * before.room().bytes, inodes: 2 * before.room().inodes };
    runs::check_room(place, needs)?;
    let calve = std::env::current_exe()?;
    let ground = Ground { tree: tree.to_path_buf(), calve, cancel: wish.cancel.clone() };
    let (workloads, absent) = workloads::choose(&ground, wish.without, &programs::find);
    let versions = programs::versions(&ground.calve, workloads::programs(), wish.cancel)?;
    let inspect = |run: &Path| remarks(tree, run, wish.cancel);
    let plan = Plan {
        rounds: wish.rounds,
        warmup: wish.warmup,
        cache: wish.cache,
        needs,
        memory_bytes: machine.memory_bytes,
        inspect: &inspect,
        say: wish.say,
        cancel: wish.cancel,
    };
    let runs = runs::run(workloads, &plan, place)?;
    let mut report = Report::new("dedupe", began, machine, &plan, runs, absent, versions);
    report.disk = Disk::Gained;
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    let file_system = probe(place.path(), place.path())?.dst.file_system;
    report.subject = format!("two copies of `{}` ({}) on {file_system}", Shown(tree), before.in_words());
    report.facts = facts(tree, &before, &file_system, place);
    report.findings = gains(&report);
    let memory = report.machine.memory_bytes;
    if wish.cache == Cache::Warm && memory > 0 && 2 * before.bytes > memory / 2 {
        let (copies, memory) = (size(2 * before.bytes), size(memory));
        let message =
            format!("the copies have {copies} and the machine {memory} of memory: the caches cannot hold all of it");
        report.warn("larger_than_memory", message);
    }
    if census::take(tree, Contents::Leave, wish.cancel).ok() != Some(before) {
        if wish.cancel.is_cancelled() {
            return Err(Error::Interrupted.into());
        }
        let message = format!("`{}` changed while it was being measured; do not rely on the ratios", Shown(tree));
        report.warn("tree_changed", message);
    }
    Ok(report)
}

/// The library says what would make it possible.
fn check_that_it_can_share(place: &Place) -> Result<(), Failure> {
    let mut options = DedupeOptions::default();
    options.apply = Apply::DryRun;
    dedupe(&[place.path()], &options)?;
    Ok(())
}

/// What the copies have lost: nothing but their places on the disk may change.
fn remarks(tree: &Path, run: &Path, cancel: &Cancel) -> Vec<String> {
    let mut lost = std::collections::BTreeMap::new();
    for copy in workloads::copies(run) {
        let Ok(differing) = census::not_kept(tree, &copy, Contents::Read, cancel) else { return Vec::new() };
        for (what, number) in differing {
            *lost.entry(what).or_insert(0) += number;
        }
    }
    let list: Vec<String> = lost.iter().map(|(what, number)| format!("{what} of {}", entries(*number))).collect();
    if list.is_empty() { Vec::new() } else { vec![format!("did not keep: {}", list.join(", "))] }
}

fn facts(tree: &Path, census: &Census, file_system: &str, place: &Place) -> Vec<Fact> {
    let into = place.path().parent().unwrap_or(place.path());
    let options = mount_options(into).unwrap_or_else(|| "unknown options".into());
    let mut json_tree = json!({ "path": receipt::path(tree) });
    if let (Some(all), serde_json::Value::Object(counts)) = (json_tree.as_object_mut(), census.json()) {
        all.extend(counts);
    }
    vec![
        Fact::new("tree", "Tree", format!("`{}`: {}", Shown(tree), census.in_words()), json_tree),
        Fact::new(
            "target",
            "Copies in",
            format!("`{}`, {file_system}, mounted {options}", Shown(into)),
            json!({ "path": receipt::path(into), "file_system": file_system, "mount_options": options }),
        ),
        Fact::new(
            "copies",
            "A, B",
            "two copies of the tree that share nothing, made anew and written to the disk before each run; what a program keeps for \
             a second run (KEPT, caches) is the run's own and does not count as disk space"
                .into(),
            json!({ "number": 2 }),
        ),
    ]
}

/// What each gained of the most that any gained: who is faster may have done less.
fn gains(report: &Report) -> Vec<String> {
    let first = || report.measured().map(|(row, _)| row).filter(|row| row.workload.group.mark.is_empty());
    let gained = |row: &Row| row.gained_bytes().unwrap_or(0);
    let most = first().map(gained).max().unwrap_or(0);
    if most <= 0 {
        return Vec::new();
    }
    let part = |row: &Row| format!("`{}` {:.3}", row.workload.command, gained(row) as f64 / most as f64);
    let parts: Vec<String> = first().map(part).collect();
    vec![format!("gained, as a part of the most ({}): {}.", size(most.unsigned_abs()), parts.join(", "))]
}
