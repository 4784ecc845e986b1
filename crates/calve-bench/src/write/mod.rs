//! `calve bench write`: many small files, written in Node's ways and in Calve's.

mod node;
mod ways;

use std::path::Path;
use std::time::SystemTime;

use self::node::Node;
use self::ways::Task;
use crate::comparison;
use crate::error::BenchError;
use crate::machine;
use crate::report::Report;
use crate::runs;
use crate::setup::{BenchSetup, Rounds};

/// The script that Node runs, shipped in the program.
const SCRIPT: &str = include_str!("ways.mjs");

/// Measures `files` files of `bytes` bytes, with one table for each number of directories.
pub fn run(
    setup: &BenchSetup<'_>,
    rounds: Rounds,
    files: u64,
    bytes: u64,
    directories: &[u64],
) -> Result<Report, BenchError> {
    let node = Node::find()?;
    let (machine, began) = (machine::here(), SystemTime::now());
    let tasks: Vec<Task> = directories.iter().map(|&directories| Task { files, bytes, directories }).collect();
    setup.in_scratch(|scratch| {
        let [script, result] = ["ways.mjs", "result.json"].map(|name| scratch.path.join(name));
        fs_err::write(&script, SCRIPT)?;
        let workloads =
            tasks.iter().flat_map(|task| ways::workloads(*task, machine.cores, &node, &script, &result)).collect();
        let needs = tasks.iter().map(Task::needs).max_by_key(|room| room.inodes).unwrap_or_default();
        let nothing = |_: &Path| Vec::new();
        let runs = runs::run(setup, rounds, needs, machine.memory_bytes, &nothing, workloads, scratch)?;
        let mut report = Report::new("write", began, machine.clone());
        scratch.add_to(&mut report, "Written to")?;
        node.describe(&mut report);
        comparison::complete(&mut report, &runs);
        Ok(report)
    })
}
