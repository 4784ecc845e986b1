//! `calve bench copy`: copies one tree by every available means.

mod workloads;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

use calve_core::internal::{ShownPath, stage_in};
use calve_core::report::FileSystemReport;
use calve_core::{CancelToken, CloneOptions, Error, ProbeReport, Strategy, clone_tree, probe};
use calve_receipt::bench::{NotRun, PlacesFact, TreeFact};
use calve_receipt::human::{entries, size};
use calve_receipt::path;

pub(super) use self::workloads::known_commands;
use self::workloads::{SPARE, Sources};
use crate::census::{self, Census};
use crate::comparison;
use crate::error::BenchError;
use crate::machine::{self, mount_options};
use crate::programs;
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs;
use crate::scratch::{Room, Scratch};
use crate::selection::Selection;
use crate::setup::{BenchSetup, Rounds};
use crate::spares;

/// Returns the programs that `only` of [`run`] may name.
pub fn programs() -> Vec<&'static str> {
    let peers = workloads::programs().into_iter();
    peers.chain(["calve"]).collect()
}

/// Measures the commands named by `only`, or all if it is empty.
pub fn run(setup: &BenchSetup<'_>, rounds: Rounds, tree: &Path, only: &[String]) -> Result<Report, BenchError> {
    let tree = setup.tree(tree)?;
    let selection = Selection::new(only, &known_commands())?;
    let machine = machine::here();
    let began = SystemTime::now();
    setup.in_scratch(|scratch| {
        let (say, cancel) = (setup.say, setup.cancel);
        let before = census::take(&tree, cancel)?;
        say(&format!("{}: {}", ShownPath(&tree), before.in_words()));
        let prepared = PreparedTree::prepare(setup, &tree, &before, &selection, scratch)?;
        let sources = &prepared.sources;
        let calve = std::env::current_exe()?;
        let (mut workloads, mut not_run) = workloads::choose(sources, &prepared.probe, &calve, setup.hint);
        workloads.retain(|workload| selection.takes(&workload.command));
        not_run.retain(|not_run| selection.takes(&not_run.command));
        if selection.takes(SPARE) {
            let plain = workloads::taking_a_spare(sources, &calve);
            spares::add(plain, (&calve, &sources.tree), &[], scratch, cancel, (&mut workloads, &mut not_run))?;
        }
        if workloads.is_empty() {
            return Err(nothing_to_run(&not_run));
        }
        let versions = programs::versions(&calve, workloads::programs(), cancel)?;
        census::read_all(&sources.tree, cancel)?;
        let inspect = |copy: &Path| remarks(sources, copy, cancel);
        let runs = runs::run(setup, rounds, before.room(), machine.memory_bytes, &inspect, workloads, scratch)?;
        let after = match census::take(&tree, cancel) {
            Ok(after) => Some(after),
            Err(failure @ BenchError::Core(Error::Interrupted)) => return Err(failure),
            // A file that has become unreadable has changed.
            Err(_) => None,
        };
        let mut report = Report::new("copy", began, machine);
        prepared.describe(&mut report, &tree, before, scratch)?;
        selection.add_to(&mut report);
        warn_of_size(&mut report, before.bytes);
        if Some(before) != after {
            let now = after.map_or_else(
                || "cannot be read any more".to_owned(),
                |after| format!("{} afterwards", after.in_words()),
            );
            let (tree, then) = (ShownPath(&tree), before.in_words());
            let message = format!(
                "`{tree}` changed while it was being measured: {then} before, {now}; do not rely on the ratios"
            );
            report.warn("tree_changed", message);
        }
        comparison::complete(&mut report, &runs);
        report.document.not_run = not_run;
        report.versions(versions);
        Ok(report)
    })
}

/// Warns when warm caches are not possible.
fn warn_of_size(report: &mut Report, bytes: u64) {
    if let Some(memory) = report.document.machine.memory_bytes
        && bytes > memory / 2
    {
        let (bytes, memory) = (size(bytes), size(memory));
        let message =
            format!("the tree has {bytes} and the machine {memory} of memory: the caches cannot hold all of it");
        report.warn("larger_than_memory", message);
    }
}

struct PreparedTree {
    sources: Sources,
    copied: bool,
    /// The file system of the tree itself.
    place: FileSystemReport,
    probe: ProbeReport,
}

impl PreparedTree {
    /// Prepares the sources: the tree, or a copy on the target's file system, and one more copy for hard links.
    fn prepare(
        setup: &BenchSetup<'_>,
        tree: &Path,
        census: &Census,
        selection: &Selection,
        scratch: &Scratch<'_>,
    ) -> Result<Self, BenchError> {
        let of_the_tree = probe(tree, &scratch.path)?;
        let place = of_the_tree.src.clone();
        // Subvolumes of one btrfs have different numbers, but the probe finds sharing.
        let is_elsewhere = fs_err::metadata(tree)?.dev() != fs_err::metadata(&scratch.path)?.dev();
        let copied = is_elsewhere && ![Strategy::Reflink, Strategy::Snapshot].iter().any(|way| can(&of_the_tree, *way));
        let inside = if copied { probe(&scratch.path, &scratch.path)? } else { of_the_tree };
        let shares = can(&inside, Strategy::Reflink);
        let links = can(&inside, Strategy::Hardlink) && workloads::linking().any(|command| selection.takes(&command));
        let needs = census.room();
        runs::check_room(
            scratch,
            Room {
                bytes: needs.bytes * (1 + u64::from(copied) + u64::from(links && !shares)),
                inodes: needs.inodes * (1 + u64::from(copied) + u64::from(links)),
            },
        )?;
        let options = CloneOptions { cancel: setup.cancel.clone(), ..CloneOptions::default() };
        let mut source = tree.to_path_buf();
        if copied {
            (setup.say)("the tree is on another file system: it is copied there once, and all commands read that copy");
            source = scratch.path.join("source");
            // On btrfs to a subvolume, as templates are.
            stage_in(None, &source, &options, |staged| staged.clone_root(tree, &options))?;
            scratch.flush()?;
        }
        let mut to_link = source.clone();
        if links {
            to_link = scratch.path.join("source-to-link");
            clone_tree(&source, &to_link, &options)?;
            scratch.flush()?;
        }
        let probe = if copied { probe(&source, &scratch.path)? } else { inside };
        let home = scratch.path.join("home");
        Ok(Self { sources: Sources { tree: source, home, to_link }, copied, place, probe })
    }

    fn describe(
        &self,
        report: &mut Report,
        tree: &Path,
        census: Census,
        scratch: &Scratch<'_>,
    ) -> Result<(), BenchError> {
        let Self { sources, copied, place, probe } = self;
        let (file_system, mount_options) = (place.file_system.clone(), mount_options(place));
        let text = format!("`{}`: {}; {file_system}, mounted {mount_options}", ShownPath(tree), census.in_words());
        report.circumstance("Tree", text);
        let made = if can(probe, Strategy::Snapshot) { "made there as a subvolume" } else { "made there" };
        let same = match copied {
            true => format!(
                "on another file system; a copy of it, {made} before the measuring began, is what all commands read"
            ),
            false => "on the same file system, and read where it is".into(),
        };
        report.circumstance("The tree is", same);
        scratch.add_to(report, "Copied to")?;
        let chosen = probe.chosen.map(Strategy::name);
        report.circumstance("Calve's own choice", chosen.unwrap_or("nothing"));
        let source = ShownPath(&sources.tree);
        let places = format!("`{source}` (for hard links a copy of it), and a new path in the target for each run");
        report.circumstance("Caches", "warm: the tree was read once before the first run");
        report.circumstance("SRC, DST", places);
        let facts = &mut report.document.facts;
        let Census { files, directories, symlinks, others, bytes, .. } = census;
        facts.tree = Some(TreeFact {
            path: path(tree),
            file_system: Some(file_system),
            mount_options: Some(mount_options),
            copied_first: Some(*copied),
            files,
            directories,
            symlinks,
            others,
            bytes,
        });
        facts.same_file_system = Some(!copied);
        facts.chosen = chosen;
        facts.places = Some(PlacesFact { src: path(&sources.tree), src_for_hard_links: path(&sources.to_link) });
        Ok(())
    }
}

fn nothing_to_run(not_run: &[NotRun]) -> BenchError {
    let reasons: Vec<String> = not_run.iter().map(|one| format!("`{}`: {}", one.command, one.reason)).collect();
    let reasons = if reasons.is_empty() { "Calve's own choice does the same".into() } else { reasons.join("; ") };
    let remedy = not_run.iter().find_map(|one| one.remedy.clone());
    let remedy = remedy.map_or(Remedy::ChooseOtherCommandsOrPlace, Remedy::AsReported);
    BenchError::failed(format!("nothing of what was asked for can be run here: {reasons}"), remedy)
}

fn can(probe: &ProbeReport, strategy: Strategy) -> bool {
    probe.offers.iter().any(|offer| offer.strategy == strategy && offer.refused.is_none())
}

/// Lists properties that a copy did not keep. A failed walk, as of a changing tree, says nothing about the copy.
fn remarks(sources: &Sources, copy: &Path, cancel: &CancelToken) -> Vec<String> {
    let Ok(lost) = census::not_kept(&sources.tree, copy, cancel) else { return Vec::new() };
    let list: Vec<String> = lost.iter().map(|(what, number)| format!("{what} of {}", entries(*number))).collect();
    if list.is_empty() { Vec::new() } else { vec![format!("did not keep: {}", list.join(", "))] }
}
