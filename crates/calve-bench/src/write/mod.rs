//! `calve bench write`: many small files, written by the ways that Node has and by Calve's.

mod descriptors;
mod html;
mod json;
mod limit;
mod node;
mod report;
mod runs;
mod ways;

use std::path::Path;
use std::time::{Instant, SystemTime};

use calve_core::{Cancel, probe};

use self::limit::Trial;
use self::node::Node;
use self::report::Layout;
pub use self::report::Report;
use self::runs::{Ground, Look, Outcome};
use self::ways::{Task, Way};
use super::machine::{Machine, mount_options};
use super::place::Place;
use super::runs::{Rounds, shuffled};
use super::selection::Selection;
use crate::error::BenchError;

/// The options of `calve bench write`.
pub struct Setup<'a> {
    /// The directory that everything is made in.
    pub into: &'a Path,
    /// How many files each run writes.
    pub files: u64,
    /// How large each file is.
    pub bytes: u64,
    /// One layout for each number of directories.
    pub directories: &'a [u64],
    /// The Node.js program; the first one in PATH by default.
    pub node: Option<&'a Path>,
    /// The names of the ways to run; all when there are none.
    pub only: &'a [String],
    /// How many rounds are counted.
    pub rounds: Rounds,
    /// Called with each line of progress.
    pub say: &'a dyn Fn(&str),
    /// Called with what should be known even by those who want no progress.
    pub warn: &'a dyn Fn(&str),
    /// Ends the bench early.
    pub cancel: &'a Cancel,
}

/// What Node runs, shipped in the program.
const SCRIPT: &str = include_str!("ways.mjs");

/// A way with its runs in one layout.
struct Row {
    way: Way,
    samples: Vec<Outcome>,
    /// Of a run that was looked at and not timed.
    peak_descriptors: Option<u64>,
    /// Why it was not run any more.
    failed: Option<String>,
}

/// Measures, removes all that was made, and reports.
pub fn run(setup: &Setup<'_>) -> Result<Report, BenchError> {
    let node = Node::find(setup.node)?;
    let machine = Machine::here();
    let mut ways = ways::all(machine.cores, node.package.is_some());
    let selection = Selection::of(setup.only, &ways.iter().map(Way::label).collect::<Vec<_>>())?;
    ways.retain(|way| selection.takes(&way.label()));
    let began = SystemTime::now();
    let mut place = Place::make(setup.into, setup.warn)?;
    let measured = measured(setup, &node, &ways, &machine, &mut place);
    if place.has_runs() {
        (setup.say)("removing everything that was made");
    }
    // Known only while it is there.
    let file_system = probe(place.path(), place.path()).map(|report| report.dst.file_system);
    let mount = mount_options(place.path());
    let into = place.path().parent().unwrap_or(place.path()).to_path_buf();
    place.remove()?;
    let (layouts, rounds, trials) = measured?;
    Ok(Report {
        began,
        machine,
        node: node.version,
        package: node.package.map(|package| package.version),
        into,
        file_system: file_system.unwrap_or_else(|_| "unknown".into()),
        mount_options: mount.unwrap_or_else(|| "unknown options".into()),
        chosen: selection.fact(),
        rounds,
        layouts,
        trials,
    })
}

/// The layouts, how many rounds there were, and what many files at once gave.
type Measured = (Vec<Layout>, u32, Option<(Task, Vec<Trial>)>);

fn measured(
    setup: &Setup<'_>,
    node: &Node,
    ways: &[Way],
    machine: &Machine,
    place: &mut Place,
) -> Result<Measured, BenchError> {
    let script = place.path().join("ways.mjs");
    fs_err::write(&script, SCRIPT)?;
    let ground = Ground { node, script, memory_bytes: machine.memory_bytes, cancel: setup.cancel, say: setup.say };
    let mut layouts: Vec<Layout> = setup
        .directories
        .iter()
        .map(|&directories| Layout {
            task: Task { files: setup.files, bytes: setup.bytes, directories },
            rows: ways.iter().cloned().map(Row::new).collect(),
        })
        .collect();
    (setup.say)(&format!("{}; a first round that is not timed, for the descriptors", node.version));
    round(&ground, place, &mut layouts, 0)?;
    let began = Instant::now();
    let mut rounds = 0;
    while setup.rounds.another(rounds, began.elapsed()) {
        rounds += 1;
        round(&ground, place, &mut layouts, rounds)?;
    }
    let trials = limit::tried(&ground, place, setup.files, ways)?;
    Ok((layouts, rounds, trials))
}

impl Row {
    fn new(way: Way) -> Self {
        Self { way, samples: Vec::new(), peak_descriptors: None, failed: None }
    }
}

/// Every way in every layout once, in an order that no other round has. Round 0 is looked at and does not count.
fn round(ground: &Ground<'_>, place: &mut Place, layouts: &mut [Layout], round: u32) -> Result<(), BenchError> {
    let ways = layouts.first().map_or(0, |layout| layout.rows.len());
    for index in shuffled(ways * layouts.len(), u64::from(round)) {
        let layout = &mut layouts[index / ways];
        let task = layout.task;
        let row = &mut layout.rows[index % ways];
        if row.failed.is_some() {
            continue;
        }
        let look = if round == 0 { Look::AtDescriptors } else { Look::Away };
        let ran = ground.run(place, row.way.kind, &task, look, None)?;
        let ran = ran.and_then(|outcome| match &outcome.error {
            Some((what, _)) => Err(what.clone()),
            None => Ok(outcome),
        });
        let label = if round == 0 { "not timed".to_owned() } else { format!("round {round}") };
        let place_of_it = report::layout_in_words(task.directories);
        match ran {
            Ok(outcome) if round == 0 => row.peak_descriptors = outcome.peak_descriptors,
            Ok(outcome) => {
                let took = runs::shown(outcome.seconds);
                (ground.say)(&format!("{label}  {took:>9}  {}, {place_of_it}", row.way.name));
                row.samples.push(outcome);
            }
            Err(reason) => {
                (ground.say)(&format!("{label}  {:>9}  {}, {place_of_it}: {reason}", "failed", row.way.name));
                row.failed = Some(reason);
            }
        }
    }
    Ok(())
}
