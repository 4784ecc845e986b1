//! `calve bench write`: many small files, written by the ways that Node has and by Calve's.

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
use crate::runs::{self, Schedule};
use crate::setup::{BenchSetup, Rounds};
use crate::space::Room;

pub struct WriteBench<'a> {
    pub setup: BenchSetup<'a>,
    /// How many files each run writes.
    pub files: u64,
    /// How large each file is.
    pub bytes: u64,
    /// One table for each number of directories.
    pub directories: &'a [u64],
    pub rounds: Rounds,
}

/// The script that Node runs, shipped in the program.
const SCRIPT: &str = include_str!("ways.mjs");

impl WriteBench<'_> {
    pub fn run(&self) -> Result<Report, BenchError> {
        let node = Node::find()?;
        let (machine, began) = (machine::here(), SystemTime::now());
        let task = |&directories: &u64| Task { files: self.files, bytes: self.bytes, directories };
        let tasks: Vec<Task> = self.directories.iter().map(task).collect();
        self.setup.in_scratch(|scratch| {
            let [script, result] = ["ways.mjs", "result.json"].map(|name| scratch.path.join(name));
            fs_err::write(&script, SCRIPT)?;
            let workloads =
                tasks.iter().flat_map(|task| ways::workloads(*task, machine.cores, &node, &script, &result)).collect();
            let most = |of: fn(Room) -> u64| tasks.iter().map(|task| of(task.needs())).max().unwrap_or(0);
            let needs = Room { bytes: most(|room| room.bytes), inodes: most(|room| room.inodes) };
            let nothing = |_: &Path| Vec::new();
            let schedule = Schedule::new(&self.setup, self.rounds, needs, machine.memory_bytes, &nothing);
            let runs = runs::run(workloads, &schedule, scratch)?;
            let mut report = Report::new("write", began, machine.clone());
            scratch.add_to(&mut report, "Written to")?;
            node.describe(&mut report);
            comparison::complete(&mut report, &runs);
            Ok(report)
        })
    }
}
