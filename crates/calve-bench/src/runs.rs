//! The runs: in rounds, in another order each time, each into a new place, with nothing else going on.

use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::{CancelToken, ShownPath};
use calve_receipt::bench::BenchFailure;
use calve_receipt::human::{duration, size};

use crate::error::{BenchError, FailureKind};
use crate::machine::Clocks;
use crate::process::{self, ProcessResult};
use crate::random::SplitMix64;
use crate::remedy::Remedy;
use crate::scratch::Scratch;
use crate::setup::{BenchSetup, Rounds, Turns, check_cancelled};
use crate::space::{self, Cache, Room};
use crate::workload::{Leftovers, Row, Sample, Workload};

/// How the runs go.
pub(crate) struct Schedule<'a> {
    pub(crate) rounds: Rounds,
    pub(crate) cache: Cache,
    /// The most that one run makes.
    needs: Room,
    /// The machine's; 0 where that is not known.
    memory_bytes: u64,
    /// Looks at the result of a workload's first run, and says what is to be known about it.
    inspect: &'a dyn Fn(&Path) -> Vec<String>,
    /// Called with each line of progress.
    say: &'a dyn Fn(&str),
    cancel: &'a CancelToken,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(
        setup: &BenchSetup<'a>,
        turns: Turns,
        needs: Room,
        memory_bytes: u64,
        inspect: &'a dyn Fn(&Path) -> Vec<String>,
    ) -> Self {
        let Turns { rounds, cache } = turns;
        Self { rounds, cache, needs, memory_bytes, inspect, say: setup.say, cancel: setup.cancel }
    }
}

/// The runs that were made.
pub(crate) struct Runs {
    pub(crate) rows: Vec<Row>,
    pub(crate) rounds: u32,
    /// When earlier results were deleted to make room: "before round 2".
    pub(crate) deletions: Vec<String>,
}

/// Runs all of them. What a program does wrong is in its row; an error is of the bench itself.
pub(crate) fn run(
    workloads: Vec<Workload>,
    schedule: &Schedule<'_>,
    scratch: &mut Scratch<'_>,
) -> Result<Runs, BenchError> {
    let rows = workloads.into_iter().map(Row::new).collect();
    let needs = schedule.needs;
    let mut bench = Bench { schedule, scratch, rows, needs, used_in_round: 0, deletions: Vec::new(), position: 0 };
    let began = Instant::now();
    let mut rounds = 0;
    while schedule.rounds.another(rounds, began.elapsed()) && bench.rows.iter().any(|row| row.failed.is_none()) {
        rounds += 1;
        bench.round(rounds)?;
    }
    Ok(Runs { rows: bench.rows, rounds, deletions: bench.deletions })
}

struct Bench<'a, 's, 'h> {
    schedule: &'a Schedule<'a>,
    scratch: &'s mut Scratch<'h>,
    rows: Vec<Row>,
    /// The known need of one run: as estimated, or more when a run took more.
    needs: Room,
    used_in_round: u64,
    deletions: Vec<String>,
    position: usize,
}

impl Bench<'_, '_, '_> {
    /// Runs each command once. Round 0 does not count.
    fn round(&mut self, round: u32) -> Result<(), BenchError> {
        if self.scratch.has_runs() && (self.is_full(self.used_in_round)? || self.fills_memory()) {
            self.make_room(format!("before round {round}"))?;
        }
        let before = self.scratch.used_bytes()?;
        for index in order(self.rows.len(), round) {
            if self.rows[index].failed.is_none() {
                self.one(index, round)?;
            }
        }
        self.used_in_round = self.scratch.used_bytes()?.saturating_sub(before);
        Ok(())
    }

    fn one(&mut self, index: usize, round: u32) -> Result<(), BenchError> {
        self.ensure_room(round)?;
        let dst = self.scratch.next_run();
        if let Some(prepare) = &self.rows[index].workload.prepare {
            if let Some(reason) = prepare(&dst)? {
                self.fail(index, BenchFailure { round, reason, ..BenchFailure::default() });
                return self.scratch.delete_last_run(self.schedule.cancel);
            }
            self.scratch.settle()?;
        }
        let stderr = self.scratch.stderr()?;
        self.scratch.flush()?;
        if self.schedule.cache == Cache::Cold {
            space::drop_caches()?;
        }
        check_cancelled(self.schedule.cancel)?;
        let used_before = self.scratch.used_bytes()?;
        let clocks = Clocks::now();
        let workload = &self.rows[index].workload;
        let ran = process::measure(&(workload.argv)(&dst), &workload.environment, stderr, self.schedule.cancel);
        check_cancelled(self.schedule.cancel)?;
        let others = |ended: &ProcessResult| clocks?.others_since(ended.usage.seconds, ended.usage.user_seconds);
        let others = ran.as_ref().ok().and_then(others);
        let flushing = Instant::now();
        self.scratch.flush()?;
        let flush_seconds = flushing.elapsed().as_secs_f64();
        if self.rows[index].workload.prepare.is_some() {
            // Space that became free of what was there before counts too.
            self.scratch.settle()?;
        }
        let disk_bytes = self.scratch.used_bytes()?.cast_signed() - used_before.cast_signed();

        match failure(&ran, round, &dst, &self.scratch.said()) {
            Some(failure) => self.fail(index, failure),
            None => {
                let ended = ran?;
                // A program that fails may have filled the disk.
                self.needs.bytes = self.needs.bytes.max(u64::try_from(disk_bytes).unwrap_or(0));
                let took = duration(Duration::from_secs_f64(ended.usage.seconds));
                (self.schedule.say)(&format!("{}  {took:>9}  {}", which(round), self.rows[index].workload.command));
                let row = &mut self.rows[index];
                if row.said.is_empty() && row.remarks.is_empty() {
                    row.said = self.scratch.said();
                    row.remarks = (self.schedule.inspect)(&dst);
                }
                if round > 0 {
                    let position = self.position;
                    let usage = ended.usage;
                    row.samples.push(Sample { round, position, usage, disk_bytes, flush_seconds, others });
                    self.position += 1;
                }
            }
        }
        if self.rows[index].workload.leftovers == Leftovers::DeleteAtOnce {
            self.scratch.delete_last_run(self.schedule.cancel)?;
            self.scratch.settle()?;
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, failure: BenchFailure) {
        let command = &self.rows[index].workload.command;
        (self.schedule.say)(&format!("{}  {:>9}  {command}: {}", which(failure.round), "failed", failure.reason));
        self.rows[index].failed = Some(failure);
    }

    fn is_full(&self, for_more: u64) -> Result<bool, BenchError> {
        let free = self.scratch.free()?;
        Ok(free.bytes < for_more.max(self.needs.bytes) || free.inodes < self.needs.inodes)
    }

    /// Reports whether results fill the memory: their names, inodes and contents stay in memory, and would push out the source's.
    fn fills_memory(&self) -> bool {
        let kept = self.scratch.runs() as u64 * self.schedule.needs.bytes;
        self.schedule.memory_bytes > 0 && kept > self.schedule.memory_bytes / 2
    }

    fn ensure_room(&mut self, round: u32) -> Result<(), BenchError> {
        if self.is_full(0)? && self.scratch.has_runs() {
            self.make_room(format!("within round {round}"))?;
        }
        if self.is_full(0)? { Err(no_room(self.scratch, self.needs)?) } else { Ok(()) }
    }

    fn make_room(&mut self, when: String) -> Result<(), BenchError> {
        (self.schedule.say)("deleting the results of earlier runs, to make room");
        self.scratch.delete_runs(self.schedule.cancel)?;
        self.scratch.settle()?;
        self.deletions.push(when);
        Ok(())
    }
}

fn which(round: u32) -> String {
    if round == 0 { "warm-up".to_owned() } else { format!("round {round}") }
}

pub(crate) fn check_room(scratch: &Scratch<'_>, needs: Room) -> Result<(), BenchError> {
    let free = scratch.free()?;
    let fits = free.bytes >= needs.bytes && free.inodes >= needs.inodes;
    if fits { Ok(()) } else { Err(no_room(scratch, needs)?) }
}

pub(crate) fn no_room(scratch: &Scratch<'_>, needs: Room) -> Result<BenchError, BenchError> {
    let free = scratch.free()?;
    let into = scratch.path().parent().unwrap_or(scratch.path());
    let (needed, available) = if free.bytes < needs.bytes {
        (size(needs.bytes), size(free.bytes))
    } else {
        (format!("{} inodes", needs.inodes), format!("{} inodes", free.inodes))
    };
    let text = format!("a run needs {needed} in `{}`, and only {available} are free", ShownPath(into));
    Ok(BenchError::stated(FailureKind::Failed, text, Remedy::FreeSpaceOrChooseAnotherPlace))
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
            (Some(0), None, with_words("it ended well and made nothing".into()))
        }
        Ok(_) => return None,
    };
    Some(BenchFailure { round, exit_code, signal, reason, ..BenchFailure::default() })
}

/// Returns the turns of a round. A workload has different ones before it in every round; and each second round goes backwards through the
/// one before it, so that a machine that becomes slower and slower is as hard on the first as on the last.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order = shuffled(count, u64::from(round.div_ceil(2)));
    if round > 0 && round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// Returns the numbers below `count` in an order that depends on `seed` alone, so that a run of the bench can be repeated exactly.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
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
