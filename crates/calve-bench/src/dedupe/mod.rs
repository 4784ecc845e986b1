//! `calve bench dedupe`: copies of two trees that hold alike, made to share their blocks by every program there is.

mod workloads;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use calve_core::{CancelToken, DedupeMode, DedupeOptions, ShownPath, dedupe};
use calve_receipt::bench::CopiesFact;
use calve_receipt::human::entries;

use self::workloads::Subjects;
use crate::census::{self, Census, Contents};
use crate::comparison::{self, Space, gains};
use crate::copy::warn_of_size;
use crate::error::{BenchError, FailureKind};
use crate::machine;
use crate::programs;
use crate::remedy::Remedy;
use crate::report::Report;
use crate::runs::{self, Schedule};
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::setup::{BenchSetup, Turns, check_cancelled};
use crate::space::Room;

/// The options of `calve bench dedupe`.
pub struct DedupeBench<'a> {
    /// Where, and for whom.
    pub setup: BenchSetup<'a>,
    /// How often.
    pub turns: Turns,
    /// The directory to copy.
    pub tree: &'a Path,
    /// The source of the second copy; the same one, without it.
    pub other: Option<&'a Path>,
    /// The names of the commands to run; all when there are none.
    pub only: &'a [String],
    /// Programs that are not to be run.
    pub without: &'a [String],
}

impl DedupeBench<'_> {
    /// Measures, removes all that was made, and reports.
    pub fn run(&self) -> Result<Report, BenchError> {
        for name in self.without {
            if !workloads::programs().contains(&name.as_str()) {
                let text = format!("the bench runs no program `{name}`");
                let hint = Remedy::NameProgram("duperemove, fclones, jdupes and rmlint".into());
                return Err(BenchError::stated(FailureKind::Usage, text, hint));
            }
        }
        let tree = self.setup.tree(self.tree, Remedy::NameTree)?;
        let other = self.other.map(|other| self.setup.tree(other, Remedy::NameOtherTree)).transpose()?;
        let trees = [tree.clone(), other.unwrap_or(tree)];
        let selection = Selection::of(self.only, &workloads::known_commands())?;
        let began = SystemTime::now();
        self.setup.in_scratch(|scratch| self.measure(&trees, &selection, began, scratch))
    }

    fn measure(
        &self,
        trees: &[PathBuf; 2],
        selection: &Selection,
        began: SystemTime,
        scratch: &mut Scratch<'_>,
    ) -> Result<Report, BenchError> {
        let (machine, cancel) = (machine::here(), self.setup.cancel);
        check_that_it_can_share(scratch)?;
        let before = censuses(trees, cancel)?;
        for (tree, census) in one_or_two(trees).iter().zip(&before) {
            (self.setup.say)(&format!("{}: {}", ShownPath(tree), census.in_words()));
        }
        let [a, b] = before.map(|census| census.room());
        let needs = Room { bytes: a.bytes + b.bytes, inodes: a.inodes + b.inodes };
        runs::check_room(scratch, needs)?;
        let subjects = Subjects { trees: trees.clone(), calve: std::env::current_exe()?, cancel: cancel.clone() };
        let (mut workloads, mut not_run) = workloads::choose(&subjects, self.without, &programs::find, self.setup.hint);
        workloads.retain(|workload| selection.takes(&workload.command));
        not_run.retain(|not_run| selection.takes(&not_run.command));
        if workloads.is_empty() {
            let missing: Vec<String> = not_run.iter().map(|one| format!("`{}`: {}", one.command, one.reason)).collect();
            let text = format!("none of what was asked for can be run: {}", missing.join("; "));
            let hint = Remedy::InstallProgramOrChooseAnother;
            return Err(BenchError::stated(FailureKind::Failed, text, hint));
        }
        let versions = programs::versions(&subjects.calve, workloads::programs(), cancel)?;
        let inspect = |run: &Path| remarks(trees, run, cancel);
        let schedule = Schedule::new(&self.setup, self.turns, needs, machine.memory_bytes, &inspect);
        let runs = runs::run(workloads, &schedule, scratch)?;
        let mut report = Report::new("dedupe", began, machine);
        describe(&mut report, trees, &before, scratch)?;
        selection.add_to(&mut report);
        warn_of_size(&mut report, self.turns.cache, before[0].bytes + before[1].bytes, "the copies have");
        if censuses(trees, cancel).ok() != Some(before) {
            check_cancelled(cancel)?;
            let names: Vec<String> = one_or_two(trees).iter().map(|tree| format!("`{}`", ShownPath(tree))).collect();
            let message =
                format!("{} changed while it was being measured; do not rely on the ratios", names.join(" or "));
            report.warn("tree_changed", message);
        }
        comparison::complete(&mut report, &runs, &schedule, Space::Gained);
        report.document.conclusions.extend(gains(&runs, &workloads::FIRST));
        report.document.not_run = not_run;
        report.versions(versions);
        Ok(report)
    }
}

/// Returns the trees, each once.
fn one_or_two(trees: &[PathBuf; 2]) -> &[PathBuf] {
    if trees[0] == trees[1] { &trees[..1] } else { trees }
}

fn censuses(trees: &[PathBuf; 2], cancel: &CancelToken) -> Result<[Census; 2], BenchError> {
    let a = census::take(&trees[0], Contents::Leave, cancel)?;
    let b = if trees[0] == trees[1] { a } else { census::take(&trees[1], Contents::Leave, cancel)? };
    Ok([a, b])
}

/// Fails where blocks cannot be shared. The library says what would make it possible.
fn check_that_it_can_share(scratch: &Scratch<'_>) -> Result<(), BenchError> {
    let mut options = DedupeOptions::default();
    options.mode = DedupeMode::DryRun;
    dedupe(&[scratch.path()], &options)?;
    Ok(())
}

/// Returns the differences of the copies: nothing but their places on the disk may change.
fn remarks(trees: &[PathBuf; 2], run: &Path, cancel: &CancelToken) -> Vec<String> {
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

fn describe(
    report: &mut Report,
    trees: &[PathBuf; 2],
    censuses: &[Census; 2],
    scratch: &Scratch<'_>,
) -> Result<(), BenchError> {
    let (trees, two) = (one_or_two(trees), trees[0] != trees[1]);
    for ((tree, census), label) in trees.iter().zip(censuses).zip(["Tree", "Other tree"]) {
        report.circumstance(label, format!("`{}`: {}", ShownPath(tree), census.in_words()));
    }
    let mut facts = trees.iter().zip(censuses).map(|(tree, census)| census.fact(tree));
    (report.document.facts.tree, report.document.facts.other_tree) = (facts.next(), facts.next());
    report.document.facts.copies = Some(CopiesFact { number: 2 });
    scratch.add_to(report, "Copies in")?;
    let copies = if two { "copies of the two trees" } else { "two copies of the tree" };
    report.circumstance(
        "A, B",
        format!(
            "{copies} that share nothing, made anew and written to the disk before each run; what a program keeps for a second \
             run (KEPT, caches) is the run's own and does not count as disk space"
        ),
    );
    let names: Vec<String> = trees
        .iter()
        .zip(censuses)
        .map(|(tree, census)| format!("`{}` ({})", ShownPath(tree), census.in_words()))
        .collect();
    report.subject =
        if two { format!("copies of {}", names.join(" and ")) } else { format!("two copies of {}", names[0]) };
    Ok(())
}
