//! `calve bench copy`: one tree, copied by every means there is.

mod workloads;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::{Cancel, CloneOptions, Error, ProbeReport, Shown, Strategy, clone_tree, probe};
use serde_json::{Value, json};

use self::workloads::Sources;
pub(super) use self::workloads::known_commands;
use super::census::{self, Census, Contents};
use super::machine::{Machine, mount_options, own_peak_memory_bytes};
use super::place::{self, Place};
use super::programs;
use super::report::{Fact, Report};
use super::runs::{self, Plan, Rounds};
use super::selection::Selection;
use super::space::{Cache, Room};
use super::workload::Absent;
use crate::error::{BenchError, FailureKind};
use calve_receipt as receipt;
use calve_receipt::human::{entries, size};

/// Returns the programs that `Setup::only` may name.
pub fn programs() -> Vec<&'static str> {
    let peers = workloads::programs().into_iter();
    peers.chain(["calve"]).collect()
}

/// The options of `calve bench copy`.
pub struct Setup<'a> {
    /// The directory to copy.
    pub tree: &'a Path,
    /// The directory that everything is made in.
    pub into: &'a Path,
    /// How many rounds are counted.
    pub rounds: Rounds,
    /// How many rounds come before them, and are not counted.
    pub warmup: u32,
    /// Whether the caches are emptied before each run.
    pub cache: Cache,
    /// The names of the commands to run; all when there are none.
    pub only: &'a [String],
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with what should be known even by those who want no progress.
    pub warn: &'a dyn Fn(&str),
    /// Ends the bench early.
    pub cancel: &'a Cancel,
}

/// Measures, removes all that was made, and reports.
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    let tree = tree(setup)?;
    let selection = Selection::of(setup.only, &known_commands())?;
    let machine = Machine::here();
    let began = SystemTime::now();
    let mut place = Place::make(setup.into, setup.warn)?;
    let report = measured(setup, &tree, &selection, machine, began, &mut place);
    if place.has_runs() {
        (setup.say)("removing everything that was made");
    }
    place.remove()?;
    report
}

/// The directory to copy, free of links.
fn tree(setup: &Setup<'_>) -> Result<PathBuf, BenchError> {
    let tree = place::real_path(setup.tree)?;
    if !tree.is_dir() {
        let text = format!("`{}` is not a directory", Shown(setup.tree));
        return Err(BenchError::stated(FailureKind::Usage, text, "name the directory to copy with `--tree`"));
    }
    if fs_err::canonicalize(setup.into).is_ok_and(|into| into.starts_with(&tree)) {
        let text = format!("`{}` is inside the tree `{}`", Shown(setup.into), Shown(setup.tree));
        let hint = "copies cannot be made inside of what is copied: name a place beside the tree with `--into`";
        return Err(BenchError::stated(FailureKind::Usage, text, hint));
    }
    Ok(tree)
}

fn measured(
    setup: &Setup<'_>,
    tree: &Path,
    selection: &Selection,
    machine: Machine,
    began: SystemTime,
    place: &mut Place,
) -> Result<Report, BenchError> {
    let say = setup.say;
    let before = census::take(tree, Contents::Leave, setup.cancel)?;
    say(&format!("{}: {}", Shown(tree), before.in_words()));
    let ground = Ground::prepare(setup, tree, &before, selection, place)?;
    let sources = &ground.sources;
    let calve = std::env::current_exe()?;
    let (mut workloads, mut absent) = workloads::choose(sources, &ground.probe, &calve, &programs::find);
    workloads.retain(|workload| selection.takes(&workload.command));
    absent.retain(|absent| selection.takes(&absent.command));
    if workloads.is_empty() {
        return Err(nothing_to_run(&absent));
    }
    let versions = programs::versions(&calve, workloads::programs(), setup.cancel)?;
    if setup.cache == Cache::Warm {
        census::take(&sources.tree, Contents::Read, setup.cancel)?;
    }
    let inspect = |copy: &Path| remarks(sources, copy, setup.cancel);
    let plan = Plan {
        rounds: setup.rounds,
        warmup: setup.warmup,
        cache: setup.cache,
        needs: before.room(),
        memory_bytes: machine.memory_bytes,
        inspect: &inspect,
        say,
        cancel: setup.cancel,
    };
    let runs = runs::run(workloads, &plan, place)?;
    let after = match census::take(tree, Contents::Leave, setup.cancel) {
        Ok(after) => Some(after),
        Err(failure @ BenchError::Core(Error::Interrupted)) => return Err(failure),
        // What has become unreadable has changed.
        Err(_) => None,
    };
    let mut report = Report::new("copy", began, machine, &plan, runs, absent, versions);
    report.memory_floor_bytes = own_peak_memory_bytes().unwrap_or(0);
    report.subject = subject(tree, &before, &ground);
    report.facts = facts(tree, &before, &ground, place);
    report.facts.extend(selection.fact());
    let memory = report.machine.memory_bytes;
    if setup.cache == Cache::Warm && memory > 0 && before.bytes > memory / 2 {
        let (tree, memory) = (size(before.bytes), size(memory));
        let message =
            format!("the tree has {tree} and the machine {memory} of memory: the caches cannot hold all of it");
        report.warn("larger_than_memory", message);
    }
    if Some(before) != after {
        let now = after
            .map_or_else(|| "cannot be read any more".to_owned(), |after| format!("{} afterwards", after.in_words()));
        let (tree, then) = (Shown(tree), before.in_words());
        let message =
            format!("`{tree}` changed while it was being measured: {then} before, {now}; do not rely on the ratios");
        report.warn("tree_changed", message);
    }
    Ok(report)
}

/// Where the commands read, and what can be done there.
struct Ground {
    sources: Sources,
    /// Whether that is a copy of the tree, because the tree is elsewhere.
    copied: bool,
    tree_file_system: String,
    /// Of the sources and the place.
    probe: ProbeReport,
}

impl Ground {
    /// The tree itself where it is on the place's file system, else a copy of it there; and, where there are hard links, a second one
    /// to make them of.
    fn prepare(
        setup: &Setup<'_>,
        tree: &Path,
        census: &Census,
        selection: &Selection,
        place: &Place,
    ) -> Result<Self, BenchError> {
        let of_the_tree = probe(tree, place.path())?;
        let tree_file_system = of_the_tree.src.file_system.clone();
        let copied = is_elsewhere(tree, place.path(), &of_the_tree)?;
        let inside = if copied { probe(place.path(), place.path())? } else { of_the_tree };
        let shares = can(&inside, Strategy::Reflink);
        let links = can(&inside, Strategy::Hardlink) && workloads::linking().any(|command| selection.takes(&command));
        let needs = census.room();
        runs::check_room(
            place,
            Room {
                bytes: needs.bytes * (1 + u64::from(copied) + u64::from(links && !shares)),
                inodes: needs.inodes * (1 + u64::from(copied) + u64::from(links)),
            },
        )?;
        let mut source = tree.to_path_buf();
        if copied {
            (setup.say)("the tree is on another file system: it is copied there once, and all commands read that copy");
            source = place.path().join("source");
            copy(tree, &source, setup.cancel)?;
            place.flush()?;
        }
        let mut to_link = source.clone();
        if links {
            to_link = place.path().join("source-to-link");
            copy(&source, &to_link, setup.cancel)?;
            place.flush()?;
        }
        let probe = if copied { probe(&source, place.path())? } else { inside };
        Ok(Self { sources: Sources { tree: source, to_link }, copied, tree_file_system, probe })
    }
}

/// Everything that was asked for by name is missing, or not possible here.
fn nothing_to_run(absent: &[Absent]) -> BenchError {
    let reasons: Vec<String> = absent.iter().map(|absent| format!("`{}`: {}", absent.command, absent.reason)).collect();
    let reasons = if reasons.is_empty() { "Calve's own choice does the same".into() } else { reasons.join("; ") };
    let remedy = absent.iter().find_map(|absent| absent.remedy.clone());
    let hint = remedy.unwrap_or_else(|| "name other commands with `--only`, or another place with `--into`".into());
    BenchError::stated(FailureKind::Failed, format!("nothing of what `--only` names can be run here: {reasons}"), hint)
}

fn can(probe: &ProbeReport, strategy: Strategy) -> bool {
    probe.offers.iter().any(|offer| offer.strategy == strategy && offer.refused.is_none())
}

/// Subvolumes of one btrfs have different numbers and share their extents all the same: the probe tells.
fn is_elsewhere(tree: &Path, place: &Path, probe: &ProbeReport) -> Result<bool, BenchError> {
    let same_device = fs_err::metadata(tree)?.dev() == fs_err::metadata(place)?.dev();
    Ok(!same_device && !can(probe, Strategy::Reflink) && !can(probe, Strategy::Snapshot))
}

fn copy(src: &Path, dst: &Path, cancel: &Cancel) -> Result<(), BenchError> {
    let mut options = CloneOptions::default();
    options.cancel = cancel.clone();
    clone_tree(src, dst, &options)?;
    Ok(())
}

/// What a copy did not keep. A tree that is changing, or a walk that fails, says nothing about the copy.
fn remarks(sources: &Sources, copy: &Path, cancel: &Cancel) -> Vec<String> {
    let Ok(lost) = census::not_kept(&sources.tree, copy, Contents::Leave, cancel) else { return Vec::new() };
    let list: Vec<String> = lost.iter().map(|(what, number)| format!("{what} of {}", entries(*number))).collect();
    if list.is_empty() { Vec::new() } else { vec![format!("did not keep: {}", list.join(", "))] }
}

fn subject(tree: &Path, census: &Census, ground: &Ground) -> String {
    let here =
        if ground.copied { format!(", copied to {} first", ground.probe.dst.file_system) } else { String::new() };
    format!("`{}` ({}) on {}{here}", Shown(tree), census.in_words(), ground.tree_file_system)
}

fn facts(tree: &Path, census: &Census, ground: &Ground, place: &Place) -> Vec<Fact> {
    let Ground { sources, copied, tree_file_system, probe } = ground;
    let into = place.path().parent().unwrap_or(place.path());
    let options = mount_options(into).unwrap_or_else(|| "unknown options".into());
    let tree_options = mount_options(tree).unwrap_or_else(|| "unknown options".into());
    let mut json_tree = json!({
        "path": receipt::path(tree),
        "file_system": tree_file_system,
        "mount_options": tree_options,
        "copied_first": copied,
    });
    if let (Value::Object(all), Value::Object(counts)) = (&mut json_tree, census.json()) {
        all.extend(counts);
    }
    let same = if *copied {
        "on another file system; a copy of it, made there before the measuring began, is what all commands read"
    } else {
        "on the same file system, and read where it is"
    };
    let chosen = probe.chosen.map_or("nothing", Strategy::name);
    vec![
        Fact::new(
            "tree",
            "Tree",
            format!("`{}`: {}; {tree_file_system}, mounted {tree_options}", Shown(tree), census.in_words()),
            json_tree,
        ),
        Fact::new("same_file_system", "The tree is", same.into(), json!(!copied)),
        Fact::new(
            "target",
            "Copied to",
            format!("`{}`, {}, mounted {options}", Shown(into), probe.dst.file_system),
            json!({
                "path": receipt::path(into),
                "file_system": probe.dst.file_system,
                "mount_options": options,
            }),
        ),
        Fact::new("chosen", "Calve's own choice", chosen.into(), json!(probe.chosen.map(Strategy::name))),
        Fact::new(
            "places",
            "SRC, DST",
            format!(
                "`{}` (for hard links a copy of it), and a new path in the target for each run",
                Shown(&sources.tree)
            ),
            json!({ "src": receipt::path(&sources.tree), "src_for_hard_links": receipt::path(&sources.to_link) }),
        ),
    ]
}
