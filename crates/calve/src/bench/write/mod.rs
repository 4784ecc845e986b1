//! `calve bench write`: many small files, written by the ways that Node has and by Calve's.

mod descriptors;
pub(crate) mod html;
pub(crate) mod json;
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
pub(crate) use self::report::Report;
use self::runs::{Ground, Look, Outcome};
use self::ways::{Task, Way};
use super::machine::{Machine, mount_options};
use super::place::Place;
use super::runs::{Rounds, shuffled};
use super::selection::Selection;
use crate::failure::Failure;

/// What is asked for.
pub(crate) struct Wish<'a> {
    pub(crate) into: &'a Path,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// One layout for each number of directories.
    pub(crate) directories: &'a [u64],
    pub(crate) node: Option<&'a Path>,
    /// The names of the ways to run; all when there are none.
    pub(crate) only: &'a [String],
    pub(crate) rounds: Rounds,
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
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
pub(crate) fn run(wish: &Wish<'_>) -> Result<Report, Failure> {
    let node = Node::find(wish.node)?;
    let machine = Machine::here();
    let mut ways = ways::all(machine.cores, node.package.is_some());
    let selection = Selection::of(wish.only, &ways.iter().map(Way::label).collect::<Vec<_>>())?;
    ways.retain(|way| selection.takes(&way.label()));
    let began = SystemTime::now();
    let mut place = Place::make(wish.into)?;
    let measured = measured(wish, &node, &ways, &machine, &mut place);
    if place.has_runs() {
        (wish.say)("removing everything that was made");
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
    wish: &Wish<'_>,
    node: &Node,
    ways: &[Way],
    machine: &Machine,
    place: &mut Place,
) -> Result<Measured, Failure> {
    let script = place.path().join("ways.mjs");
    fs_err::write(&script, SCRIPT)?;
    let ground = Ground { node, script, memory_bytes: machine.memory_bytes, cancel: wish.cancel, say: wish.say };
    let mut layouts: Vec<Layout> = wish
        .directories
        .iter()
        .map(|&directories| Layout {
            task: Task { files: wish.files, bytes: wish.bytes, directories },
            rows: ways.iter().cloned().map(Row::new).collect(),
        })
        .collect();
    (wish.say)(&format!("{}; a first round that is not timed, for the descriptors", node.version));
    round(&ground, place, &mut layouts, 0)?;
    let began = Instant::now();
    let mut rounds = 0;
    while wish.rounds.another(rounds, began.elapsed()) {
        rounds += 1;
        round(&ground, place, &mut layouts, rounds)?;
    }
    let trials = limit::tried(&ground, place, wish.files, ways)?;
    Ok((layouts, rounds, trials))
}

impl Row {
    fn new(way: Way) -> Self {
        Self { way, samples: Vec::new(), peak_descriptors: None, failed: None }
    }
}

/// Every way in every layout once, in an order that no other round has. Round 0 is looked at and does not count.
fn round(ground: &Ground<'_>, place: &mut Place, layouts: &mut [Layout], round: u32) -> Result<(), Failure> {
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
