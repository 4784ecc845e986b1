//! `calve bench dedupe`: copies of two trees that hold alike, made to share their blocks by every program there is.

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
use super::selection::Selection;
use super::space::{Cache, Room};
use super::workload::Row;
use crate::error::{BenchError, FailureKind};
use calve_receipt as receipt;
use calve_receipt::human::{entries, size};

/// The options of `calve bench dedupe`.
pub struct Setup<'a> {
    /// The directory to copy.
    pub tree: &'a Path,
    /// What the second copy is of; of the same, without it.
    pub other: Option<&'a Path>,
    /// The names of the commands to run; all when there are none.
    pub only: &'a [String],
    /// The directory that everything is made in.
    pub into: &'a Path,
    /// Programs that are not to be run.
    pub without: &'a [String],
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

/// Measures, removes all that was made, and reports.
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    check_names(setup.without)?;
    let tree = tree(setup, setup.tree, "--tree")?;
    let other = setup.other.map(|other| self::tree(setup, other, "--and")).transpose()?;
    let trees = [tree.clone(), other.unwrap_or(tree)];
    let selection = Selection::of(setup.only, &workloads::known_commands())?;
    let machine = Machine::here();
    let began = SystemTime::now();
    let mut place = Place::make(setup.into, setup.warn)?;
    let report = measured(setup, &trees, &selection, machine, began, &mut place);
    (setup.say)("removing everything that was made");
    place.remove()?;
    report
}

fn check_names(without: &[String]) -> Result<(), BenchError> {
    for name in without {
        if !workloads::programs().contains(&name.as_str()) {
            let text = format!("`--without {name}`: the bench runs no program of that name");
            return Err(BenchError::stated(FailureKind::Usage, text, "it runs duperemove, fclones, jdupes and rmlint"));
        }
    }
    Ok(())
}

/// A directory to copy, free of links.
fn tree(setup: &Setup<'_>, given: &Path, option: &str) -> Result<PathBuf, BenchError> {
    let tree = place::real_path(given)?;
    if !tree.is_dir() {
        let text = format!("`{}` is not a directory", Shown(given));
        return Err(BenchError::stated(
            FailureKind::Usage,
            text,
            format!("name the directory to copy with `{option}`"),
        ));
    }
    if fs_err::canonicalize(setup.into).is_ok_and(|into| into.starts_with(&tree)) {
        let text = format!("`{}` is inside the tree `{}`", Shown(setup.into), Shown(given));
        let hint = "copies cannot be made inside of what is copied: name a place beside the tree with `--into`";
        return Err(BenchError::stated(FailureKind::Usage, text, hint));
    }
    Ok(tree)
}

fn measured(
    setup: &Setup<'_>,
    trees: &[PathBuf; 2],
    selection: &Selection,
    machine: Machine,
    began: SystemTime,
    place: &mut Place,
) -> Result<Report, BenchError> {
    check_that_it_can_share(place)?;
    let before = look(setup, trees)?;
    for (tree, census) in one_or_two(trees).iter().zip(&before) {
        (setup.say)(&format!("{}: {}", Shown(tree), census.in_words()));
    }
    let [a, b] = before.map(|census| census.room());
    let needs = Room { bytes: a.bytes + b.bytes, inodes: a.inodes + b.inodes };
    runs::check_room(place, needs)?;
    let calve = std::env::current_exe()?;
    let ground = Ground { trees: trees.clone(), calve, cancel: setup.cancel.clone() };
    let (mut workloads, mut absent) = workloads::choose(&ground, setup.without, &programs::find);
    workloads.retain(|workload| selection.takes(&workload.command));
    absent.retain(|absent| selection.takes(&absent.command));
    if workloads.is_empty() {
        let missing: Vec<String> = absent.iter().map(|one| format!("`{}`: {}", one.command, one.reason)).collect();
        let text = format!("none of what was asked for can be run: {}", missing.join("; "));
        return Err(BenchError::stated(
            FailureKind::Failed,
            text,
            "install a program that is named, or ask for another with `--only`",
        ));
    }
    let versions = programs::versions(&ground.calve, workloads::programs(), setup.cancel)?;
    let inspect = |run: &Path| remarks(trees, run, setup.cancel);
    let plan = Plan {
        rounds: setup.rounds,
        warmup: setup.warmup,
        cache: setup.cache,
        needs,
        memory_bytes: machine.memory_bytes,
        inspect: &inspect,
        say: setup.say,
        cancel: setup.cancel,
    };
    let runs = runs::run(workloads, &plan, place)?;
    let mut report = Report::new("dedupe", began, machine, &plan, runs, absent, versions);
    report.disk = Disk::Gained;
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    let file_system = probe(place.path(), place.path())?.dst.file_system;
    report.subject = match one_or_two(trees) {
        [a, b] => format!("copies of `{}` ({}) and `{}` on {file_system}", Shown(a), before[0].in_words(), Shown(b)),
        _ => format!("two copies of `{}` ({}) on {file_system}", Shown(&trees[0]), before[0].in_words()),
    };
    report.facts = facts(trees, &before, &file_system, place);
    report.facts.extend(selection.fact());
    report.findings = gains(&report);
    let (memory, both) = (report.machine.memory_bytes, before[0].bytes + before[1].bytes);
    if setup.cache == Cache::Warm && memory > 0 && both > memory / 2 {
        let (copies, memory) = (size(both), size(memory));
        let message =
            format!("the copies have {copies} and the machine {memory} of memory: the caches cannot hold all of it");
        report.warn("larger_than_memory", message);
    }
    if look(setup, trees).ok() != Some(before) {
        if setup.cancel.is_cancelled() {
            return Err(Error::Interrupted.into());
        }
        let names: Vec<String> = one_or_two(trees).iter().map(|tree| format!("`{}`", Shown(tree))).collect();
        let message = format!("{} changed while it was being measured; do not rely on the ratios", names.join(" or "));
        report.warn("tree_changed", message);
    }
    Ok(report)
}

/// The trees, each once.
fn one_or_two(trees: &[PathBuf; 2]) -> &[PathBuf] {
    if trees[0] == trees[1] { &trees[..1] } else { trees }
}

fn look(setup: &Setup<'_>, trees: &[PathBuf; 2]) -> Result<[Census; 2], BenchError> {
    let a = census::take(&trees[0], Contents::Leave, setup.cancel)?;
    let b = if trees[0] == trees[1] { a } else { census::take(&trees[1], Contents::Leave, setup.cancel)? };
    Ok([a, b])
}

/// The library says what would make it possible.
fn check_that_it_can_share(place: &Place) -> Result<(), BenchError> {
    let mut options = DedupeOptions::default();
    options.apply = Apply::DryRun;
    dedupe(&[place.path()], &options)?;
    Ok(())
}

/// What the copies have lost: nothing but their places on the disk may change.
fn remarks(trees: &[PathBuf; 2], run: &Path, cancel: &Cancel) -> Vec<String> {
    let mut lost = std::collections::BTreeMap::new();
    for (tree, copy) in trees.iter().zip(workloads::copies(run)) {
        let Ok(differing) = census::not_kept(tree, &copy, Contents::Read, cancel) else { return Vec::new() };
        for (what, number) in differing {
            *lost.entry(what).or_insert(0) += number;
        }
    }
    let list: Vec<String> = lost.iter().map(|(what, number)| format!("{what} of {}", entries(*number))).collect();
    if list.is_empty() { Vec::new() } else { vec![format!("did not keep: {}", list.join(", "))] }
}

fn facts(trees: &[PathBuf; 2], census: &[Census; 2], file_system: &str, place: &Place) -> Vec<Fact> {
    let into = place.path().parent().unwrap_or(place.path());
    let options = mount_options(into).unwrap_or_else(|| "unknown options".into());
    let tree = |name, label, tree: &Path, census: &Census| {
        let mut json_tree = json!({ "path": receipt::path(tree) });
        if let (Some(all), serde_json::Value::Object(counts)) = (json_tree.as_object_mut(), census.json()) {
            all.extend(counts);
        }
        Fact::new(name, label, format!("`{}`: {}", Shown(tree), census.in_words()), json_tree)
    };
    let names = [("tree", "Tree"), ("other_tree", "Other tree")];
    let mut facts: Vec<Fact> = one_or_two(trees)
        .iter()
        .zip(census)
        .zip(names)
        .map(|((path, census), (name, label))| tree(name, label, path, census))
        .collect();
    let of_what = if facts.len() == 2 { "copies of the two trees" } else { "two copies of the tree" };
    facts.extend([
        Fact::new(
            "target",
            "Copies in",
            format!("`{}`, {file_system}, mounted {options}", Shown(into)),
            json!({ "path": receipt::path(into), "file_system": file_system, "mount_options": options }),
        ),
        Fact::new(
            "copies",
            "A, B",
            format!(
                "{of_what} that share nothing, made anew and written to the disk before each run; what a program keeps for a second \
                 run (KEPT, caches) is the run's own and does not count as disk space"
            ),
            json!({ "number": 2 }),
        ),
    ]);
    facts
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
