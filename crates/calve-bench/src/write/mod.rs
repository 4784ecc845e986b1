//! `calve bench write`: many small files, written by the ways that Node has and by Calve's.

mod descriptors;
mod engine;
mod node;
mod report;
mod runs;
mod ways;

use std::time::{Instant, SystemTime};

pub use self::engine::EngineRun;
use self::node::Node;
use self::report::{Layout, Row};
use self::runs::{Descriptors, Runner};
use self::ways::{Task, Way};
use crate::error::BenchError;
use crate::machine;
use crate::report::{Report, shown};
use crate::runs::shuffled;
use crate::scratch::Scratch;
use crate::selection::Selection;
use crate::setup::BenchSetup;
use crate::setup::Rounds;

/// The options of `calve bench write`.
pub struct WriteBench<'a> {
    /// Where, and for whom.
    pub setup: BenchSetup<'a>,
    /// How many files each run writes.
    pub files: u64,
    /// How large each file is.
    pub bytes: u64,
    /// One layout for each number of directories.
    pub directories: &'a [u64],
    /// The names of the ways to run; all when there are none.
    pub only: &'a [String],
    /// How many rounds are counted.
    pub rounds: Rounds,
}

/// The script that Node runs, shipped in the program.
const SCRIPT: &str = include_str!("ways.mjs");

impl WriteBench<'_> {
    /// Measures, removes all that was made, and reports.
    pub fn run(&self) -> Result<Report, BenchError> {
        let node = Node::find()?;
        let machine = machine::here();
        let mut ways = ways::all(machine.cores, node.package.is_some());
        let selection = Selection::of(self.only, &ways.iter().map(Way::label).collect::<Vec<_>>())?;
        ways.retain(|way| selection.takes(&way.label()));
        let began = SystemTime::now();
        self.setup.in_scratch(|scratch| {
            let script = scratch.path().join("ways.mjs");
            fs_err::write(&script, SCRIPT)?;
            let (memory_bytes, node) = (machine.memory_bytes, &node);
            let runner = Runner { node, script, memory_bytes, cancel: self.setup.cancel, say: self.setup.say };
            let mut layouts: Vec<Layout> = self
                .directories
                .iter()
                .map(|&directories| Layout {
                    task: Task { files: self.files, bytes: self.bytes, directories },
                    rows: ways.iter().cloned().map(Row::new).collect(),
                })
                .collect();
            (self.setup.say)(&format!("{}; a first round that is not timed, for the descriptors", node.version));
            round(&runner, scratch, &mut layouts, 0)?;
            let began_rounds = Instant::now();
            let mut rounds = 0;
            while self.rounds.another(rounds, began_rounds.elapsed()) {
                rounds += 1;
                round(&runner, scratch, &mut layouts, rounds)?;
            }
            let mut report = Report::new("write", began, machine.clone());
            report.document.rounds = rounds;
            scratch.add_to(&mut report, "Written to")?;
            selection.add_to(&mut report);
            report::complete(&mut report, node, &layouts, selection.is_all());
            Ok(report)
        })
    }
}

/// Runs every way in every layout once, in an order that no other round has. Round 0 is looked at and does not count.
fn round(runner: &Runner<'_>, scratch: &mut Scratch<'_>, layouts: &mut [Layout], round: u32) -> Result<(), BenchError> {
    let ways = layouts.first().map_or(0, |layout| layout.rows.len());
    for index in shuffled(ways * layouts.len(), u64::from(round)) {
        let task = layouts[index / ways].task;
        let row = &mut layouts[index / ways].rows[index % ways];
        if row.failed.is_some() {
            continue;
        }
        let descriptors = if round == 0 { Descriptors::Count } else { Descriptors::Ignore };
        let ran = runner.run(scratch, row.way.kind, &task, descriptors)?;
        let ran = ran.and_then(|outcome| match &outcome.error {
            Some((what, _)) => Err(what.clone()),
            None => Ok(outcome),
        });
        let label = if round == 0 { "not timed".to_owned() } else { format!("round {round}") };
        let layout = report::layout_in_words(task.directories);
        match ran {
            Ok(outcome) if round == 0 => row.peak_descriptors = outcome.peak_descriptors,
            Ok(outcome) => {
                let took = shown(outcome.usage.seconds);
                (runner.say)(&format!("{label}  {took:>9}  {}, {layout}", row.way.name));
                row.samples.push(outcome);
            }
            Err(reason) => {
                (runner.say)(&format!("{label}  {:>9}  {}, {layout}: {reason}", "failed", row.way.name));
                row.failed = Some(reason);
            }
        }
    }
    Ok(())
}
