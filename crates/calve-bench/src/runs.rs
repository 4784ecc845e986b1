//! The runs: in rounds, each in another order, each run at a new path, with nothing else going on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use calve_core::internal::ShownPath;
use calve_receipt::bench::BenchFailure;
use calve_receipt::human::{duration, size};

use crate::error::BenchError;
use crate::process::{self, ProcessResult};
use crate::remedy::Remedy;
use crate::scratch::{Room, Scratch};
use crate::setup::{BenchSetup, Rounds};
use crate::workload::{OwnTimes, Sample, Workload, WorkloadRuns};

pub(crate) struct Runs {
    pub(crate) rows: Vec<WorkloadRuns>,
    pub(crate) rounds: u32,
    /// Times at which results were deleted to make room: "in round 2".
    pub(crate) deletions: Vec<String>,
}

/// Gives each of `count` items a turn in every round, in another order each time, until `take` returns false for it.
/// Returns the number of rounds.
pub(crate) fn take_turns(
    count: usize,
    rounds: Rounds,
    mut take: impl FnMut(usize, u32) -> Result<bool, BenchError>,
) -> Result<u32, BenchError> {
    let (began, mut goes_on, mut done) = (Instant::now(), vec![true; count], 0);
    while rounds.another(done, began.elapsed()) && goes_on.contains(&true) {
        done += 1;
        for index in order(count, done) {
            if goes_on[index] {
                goes_on[index] = take(index, done)?;
            }
        }
    }
    Ok(done)
}

/// Runs all workloads. A program's failure is in its row; an error is the bench's own. `estimate` is the most that one
/// run makes. `inspect` returns notes about the result of a workload's first run.
pub(crate) fn run(
    setup: &BenchSetup<'_>,
    rounds: Rounds,
    estimate: Room,
    memory_bytes: Option<u64>,
    inspect: &dyn Fn(&Path) -> Vec<String>,
    workloads: Vec<Workload>,
    scratch: &mut Scratch<'_>,
) -> Result<Runs, BenchError> {
    let rows: Vec<WorkloadRuns> = workloads.into_iter().map(WorkloadRuns::new).collect();
    let (count, needs, deletions) = (rows.len(), estimate, Vec::new());
    let mut bench = Bench { setup, estimate, memory_bytes, inspect, scratch, rows, needs, deletions };
    let rounds = take_turns(count, rounds, |index, round| {
        bench.run_once(index, round)?;
        Ok(bench.rows[index].failed.is_none())
    })?;
    Ok(Runs { rows: bench.rows, rounds, deletions: bench.deletions })
}

struct Bench<'a, 'h> {
    setup: &'a BenchSetup<'a>,
    estimate: Room,
    memory_bytes: Option<u64>,
    inspect: &'a dyn Fn(&Path) -> Vec<String>,
    scratch: &'a mut Scratch<'h>,
    rows: Vec<WorkloadRuns>,
    /// The need of one run: the estimate, or more if a run took more.
    needs: Room,
    deletions: Vec<String>,
}

impl Bench<'_, '_> {
    fn run_once(&mut self, index: usize, round: u32) -> Result<(), BenchError> {
        self.ensure_room(round)?;
        let dst = self.scratch.next_run();
        if let Some(prepare) = &self.rows[index].workload.prepare {
            if let Some(reason) = prepare(&dst)? {
                self.fail(index, BenchFailure { round, reason, ..BenchFailure::default() });
                return self.scratch.delete_last_run(self.setup.cancel);
            }
            self.scratch.wait_for_freed_space()?;
        }
        let stderr = self.scratch.stderr()?;
        self.scratch.flush()?;
        self.setup.cancel.check()?;
        let used_before = self.scratch.used_bytes()?;
        let workload = &self.rows[index].workload;
        let words = (workload.argv)(&dst);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(workload.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        let ran = process::measure_command(&mut command, self.setup.cancel);
        self.setup.cancel.check()?;
        self.scratch.flush()?;
        if self.rows[index].workload.prepare.is_some() {
            // Space that earlier runs have freed counts too.
            self.scratch.wait_for_freed_space()?;
        }
        let disk_bytes = self.scratch.used_bytes()?.cast_signed() - used_before.cast_signed();

        let mut failed = failure(&ran, round, &dst, &self.scratch.said());
        let mut own = OwnTimes::default();
        if let (None, Some(check)) = (&failed, &self.rows[index].workload.check) {
            match check(&dst) {
                Ok(times) => own = times,
                Err(reason) => failed = Some(BenchFailure { round, reason, ..BenchFailure::default() }),
            }
        }
        match failed {
            Some(failure) => self.fail(index, failure),
            None => {
                let ProcessResult { mut usage, others, .. } = ran?;
                usage.seconds = own.seconds.unwrap_or(usage.seconds);
                // Only after a success: a program that fails may have filled the disk.
                self.needs.bytes = self.needs.bytes.max(u64::try_from(disk_bytes).unwrap_or(0));
                let took = duration(Duration::from_secs_f64(usage.seconds));
                (self.setup.say)(&format!("round {round}  {took:>9}  {}", self.rows[index].workload.command));
                let row = &mut self.rows[index];
                if row.said.is_empty() && row.remarks.is_empty() {
                    row.said = self.scratch.said();
                    row.remarks = (self.inspect)(&dst);
                }
                row.samples.push(Sample { round, usage, disk_bytes, stall_seconds: own.stall_seconds, others });
            }
        }
        if self.rows[index].workload.is_deleted_at_once {
            self.scratch.delete_last_run(self.setup.cancel)?;
            self.scratch.wait_for_freed_space()?;
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, failure: BenchFailure) {
        let command = &self.rows[index].workload.command;
        (self.setup.say)(&format!("round {}  {:>9}  {command}: {}", failure.round, "failed", failure.reason));
        self.rows[index].failed = Some(failure);
    }

    fn ensure_room(&mut self, round: u32) -> Result<(), BenchError> {
        let kept = self.scratch.runs.len() as u64 * self.estimate.bytes;
        // Cached, they would push out the source.
        let is_memory_full = self.memory_bytes.is_some_and(|memory| kept > memory / 2);
        if !self.scratch.runs.is_empty() && (!has_room(self.scratch, self.needs)? || is_memory_full) {
            (self.setup.say)("deleting the results of earlier runs, to make room");
            self.scratch.delete_runs(self.setup.cancel)?;
            self.scratch.wait_for_freed_space()?;
            self.deletions.push(format!("in round {round}"));
        }
        check_room(self.scratch, self.needs)
    }
}

fn has_room(scratch: &Scratch<'_>, needs: Room) -> Result<bool, BenchError> {
    let free = scratch.free()?;
    Ok(free.bytes >= needs.bytes && free.inodes >= needs.inodes)
}

pub(crate) fn check_room(scratch: &Scratch<'_>, needs: Room) -> Result<(), BenchError> {
    if has_room(scratch, needs)? {
        return Ok(());
    }
    let free = scratch.free()?;
    let into = scratch.path.parent().unwrap_or(&scratch.path);
    let (needed, available) = if free.bytes < needs.bytes {
        (size(needs.bytes), size(free.bytes))
    } else {
        (format!("{} inodes", needs.inodes), format!("{} inodes", free.inodes))
    };
    let text = format!("a run needs {needed} in `{}`, and only {available} are free", ShownPath(into));
    Err(BenchError::failed(text, Remedy::FreeSpaceOrChooseAnotherPlace))
}

fn failure(ran: &std::io::Result<ProcessResult>, round: u32, dst: &Path, said: &str) -> Option<BenchFailure> {
    use std::os::unix::process::ExitStatusExt;
    let with_words = |what: String| if said.is_empty() { what } else { format!("{what}: {said}") };
    let (exit_code, signal, reason) = match ran {
        Err(error) => (None, None, format!("it could not be started: {error}")),
        Ok(ended) if !ended.status.success() => {
            (ended.status.code(), ended.status.signal(), with_words(ended.in_words()))
        }
        Ok(_) if fs_err::symlink_metadata(dst).is_err() => {
            (Some(0), None, with_words("it succeeded but made nothing".into()))
        }
        Ok(_) => return None,
    };
    Some(BenchFailure { round, exit_code, signal, reason, ..BenchFailure::default() })
}

/// Returns a round's order. Each second one goes backwards: a slowing machine is as hard on the first as on the last.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order = shuffled(count, u64::from(round.div_ceil(2)));
    if round > 0 && round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// Returns the numbers below `count` in an order by `seed` alone, so that a bench can be repeated exactly.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_cached_key(|index| *blake3::hash(format!("{seed} {index}").as_bytes()).as_bytes());
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_workload_once_in_an_order_of_its_own() {
        let orders: Vec<_> = (0..7).map(|round| order(9, round)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..9).collect::<Vec<_>>());
        }
        for (round, order) in orders.iter().enumerate() {
            assert!(!orders[..round].contains(order), "round {round} repeats an order: {order:?}");
        }
        // Over two rounds each has the same place on average.
        for (there, back) in [(1, 2), (3, 4), (5, 6)] {
            let place = |round: usize, workload| orders[round].iter().position(|one| *one == workload).unwrap();
            assert!((0..9).all(|workload| place(there, workload) + place(back, workload) == 8), "{orders:?}");
        }
        assert_eq!(order(9, 4), orders[4]);
        assert_eq!((order(0, 1), order(1, 1), order(0, 2)), (vec![], vec![0], vec![]));
    }

    #[test]
    fn as_many_rounds_as_fit() {
        let seconds = Duration::from_secs;
        let fitting = |done, elapsed| Rounds::Fitting.another(done, seconds(elapsed));
        // Never fewer than 3, however long they take.
        assert!(fitting(0, 0) && fitting(2, 3000));
        // More than 10 only of short ones: an eleventh would end at 118.8 s, or at 121 s. Never more than 30.
        assert!(fitting(9, 90) && fitting(10, 108) && !fitting(10, 110));
        assert!(fitting(29, 3) && !fitting(30, 3));
        // A fifth one would end at 475 s, or at 485 s.
        assert!(fitting(4, 380) && !fitting(4, 388));
        assert!(Rounds::Exactly(1).another(0, seconds(0)) && !Rounds::Exactly(1).another(1, seconds(0)));
    }
}
