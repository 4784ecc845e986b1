//! The runs: in rounds, in another order each time, each into a new place, with nothing else going on.

use std::path::Path;
use std::time::{Duration, Instant};

use calve_core::{Cancel, Error, Shown};

use super::machine::Clocks;
use super::memory;
use super::place::Place;
use super::process::{self, Ended};
use super::quiet::wait_until_idle;
use super::space::{self, Cache, Room};
use super::workload::{Failed, Leftovers, Row, Sample, Workload};
use crate::error::{BenchError, FailureKind};
use calve_receipt::human::{duration, size};

/// How the runs go.
pub(crate) struct Plan<'a> {
    pub(crate) rounds: Rounds,
    pub(crate) warmup: u32,
    pub(crate) cache: Cache,
    /// What one run makes, at the most.
    pub(crate) needs: Room,
    /// The machine's; 0 where that is not known.
    pub(crate) memory_bytes: u64,
    /// Looks at the result of a workload's first run, and says what is to be known about it.
    pub(crate) inspect: &'a dyn Fn(&Path) -> Vec<String>,
    /// Called with each line of progress.
    pub(crate) say: &'a dyn Fn(&str),
    pub(crate) cancel: &'a Cancel,
}

/// How many rounds count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// This many.
    Exactly(u32),
    /// As many as go into eight minutes, 3 to 10; of short ones more, up to 30, within two minutes.
    Fitting,
}

impl Rounds {
    pub(crate) fn another(self, done: u32, elapsed: Duration) -> bool {
        const LONG: Duration = Duration::from_secs(480);
        const SHORT: Duration = Duration::from_secs(120);
        match self {
            Self::Exactly(number) => done < number,
            Self::Fitting if done < 3 => true,
            Self::Fitting => {
                let then = elapsed + elapsed / done;
                (done < 10 && then < LONG) || (done < 30 && then < SHORT)
            }
        }
    }
}

/// What was run.
pub(crate) struct Runs {
    pub(crate) rows: Vec<Row>,
    pub(crate) rounds: u32,
    /// When earlier results were deleted to make room: "before round 2".
    pub(crate) deletions: Vec<String>,
}

/// Runs all of them, and says how it went. What a program does wrong is in its row; an error is of the bench itself.
pub(crate) fn run(workloads: Vec<Workload>, plan: &Plan<'_>, place: &mut Place) -> Result<Runs, BenchError> {
    let rows = workloads.into_iter().map(|workload| Row {
        workload,
        samples: Vec::new(),
        failed: None,
        said: String::new(),
        remarks: Vec::new(),
    });
    let mut bench = Bench {
        plan,
        place,
        rows: rows.collect(),
        needs: plan.needs,
        used_in_round: 0,
        deletions: Vec::new(),
        position: 0,
        longest: Duration::ZERO,
    };
    for _ in 0..plan.warmup {
        bench.round(0)?;
    }
    let began = Instant::now();
    let mut rounds = 0;
    while plan.rounds.another(rounds, began.elapsed()) && bench.rows.iter().any(|row| row.failed.is_none()) {
        rounds += 1;
        bench.round(rounds)?;
    }
    Ok(Runs { rows: bench.rows, rounds, deletions: bench.deletions })
}

struct Bench<'a, 'p, 'h> {
    plan: &'a Plan<'a>,
    place: &'p mut Place<'h>,
    rows: Vec<Row>,
    /// What one run is known to need: as estimated, or more when a run took more.
    needs: Room,
    used_in_round: u64,
    deletions: Vec<String>,
    position: usize,
    /// What a run took at the most, so far.
    longest: Duration,
}

/// How long a run may wait for the machine. Short ones wait no longer than they take.
const MOST_WAITING: Duration = Duration::from_secs(1);

impl Bench<'_, '_, '_> {
    /// Round 0 does not count.
    fn round(&mut self, round: u32) -> Result<(), BenchError> {
        if self.place.has_runs() && (self.is_full(self.used_in_round)? || self.fills_memory()) {
            self.make_room(format!("before round {round}"))?;
        }
        let before = self.place.used_bytes()?;
        for index in order(self.rows.len(), round) {
            if self.rows[index].failed.is_none() {
                self.one(index, round)?;
            }
        }
        self.used_in_round = self.place.used_bytes()?.saturating_sub(before);
        Ok(())
    }

    fn one(&mut self, index: usize, round: u32) -> Result<(), BenchError> {
        self.ensure_room(round)?;
        let dst = self.place.next_run();
        if let Some(prepare) = &self.rows[index].workload.prepare {
            if let Some(reason) = prepare(&dst)? {
                let failed = Failed { round, exit_code: None, signal: None, reason };
                self.fail(index, round, failed);
                return self.place.delete_last_run(self.plan.cancel);
            }
            self.place.settle()?;
        }
        let stderr = self.place.stderr()?;
        self.place.flush()?;
        memory::make_free(self.memory_for(index));
        if self.plan.cache == Cache::Cold {
            space::drop_caches()?;
        }
        wait_until_idle(self.longest.min(MOST_WAITING));
        self.check_cancelled()?;
        let used_before = self.place.used_bytes()?;
        let clocks = Clocks::now();
        let ran = process::measure(&(self.rows[index].workload.argv)(&dst), stderr, self.plan.cancel);
        self.check_cancelled()?;
        let others = |ended: &Ended| clocks?.others_since(ended.seconds, ended.user_seconds);
        let others = ran.as_ref().ok().and_then(others);
        let flushing = Instant::now();
        self.place.flush()?;
        let flush_seconds = flushing.elapsed().as_secs_f64();
        for name in self.rows[index].workload.kept {
            self.place.delete_of_last_run(name, self.plan.cancel)?;
        }
        if self.rows[index].workload.prepare.is_some() {
            // What became free of what was there before counts too.
            self.place.settle()?;
        }
        let disk_bytes = self.place.used_bytes()?.cast_signed() - used_before.cast_signed();

        match failure(&ran, round, &dst, &self.place.said()) {
            Some(failed) => self.fail(index, round, failed),
            None => {
                let ended = ran?;
                // A program that fails may have filled the disk.
                self.needs.bytes = self.needs.bytes.max(u64::try_from(disk_bytes).unwrap_or(0));
                let took = Duration::from_secs_f64(ended.seconds);
                self.longest = self.longest.max(took);
                let took = duration(took);
                (self.plan.say)(&format!("{}  {took:>9}  {}", which(round), self.rows[index].workload.command));
                let row = &mut self.rows[index];
                if row.said.is_empty() && row.remarks.is_empty() {
                    row.said = self.place.said();
                    row.remarks = (self.plan.inspect)(&dst);
                }
                if round > 0 {
                    let position = self.position;
                    row.samples.push(sample(&ended, round, position, disk_bytes, flush_seconds, others));
                    self.position += 1;
                }
            }
        }
        if self.rows[index].workload.leftovers == Leftovers::DeleteAtOnce {
            self.place.delete_last_run(self.plan.cancel)?;
            self.place.settle()?;
        }
        Ok(())
    }

    fn fail(&mut self, index: usize, round: u32, failed: Failed) {
        let command = &self.rows[index].workload.command;
        (self.plan.say)(&format!("{}  {:>9}  {command}: {}", which(round), "failed", failed.reason));
        self.rows[index].failed = Some(failed);
    }

    /// What a run of this workload fills: what it wrote before, or the most that it may write. Twice, for file systems in a file,
    /// whose contents are cached in both.
    fn memory_for(&self, index: usize) -> u64 {
        let known = self.rows[index].samples.iter().map(|sample| sample.disk_bytes).max();
        known.map_or(self.plan.needs.bytes, |bytes| u64::try_from(bytes).unwrap_or(0)) * 2
    }

    fn check_cancelled(&self) -> Result<(), BenchError> {
        if self.plan.cancel.is_cancelled() { Err(Error::Interrupted.into()) } else { Ok(()) }
    }

    fn is_full(&self, for_more: u64) -> Result<bool, BenchError> {
        let free = self.place.free()?;
        Ok(free.bytes < for_more.max(self.needs.bytes) || free.inodes < self.needs.inodes)
    }

    /// Names, inodes and contents of results stay in memory, and would push out the source's.
    fn fills_memory(&self) -> bool {
        let kept = self.place.runs() as u64 * self.plan.needs.bytes;
        self.plan.memory_bytes > 0 && kept > self.plan.memory_bytes / 2
    }

    fn ensure_room(&mut self, round: u32) -> Result<(), BenchError> {
        if self.is_full(0)? && self.place.has_runs() {
            self.make_room(format!("within round {round}"))?;
        }
        if self.is_full(0)? { Err(no_room(self.place, self.needs)?) } else { Ok(()) }
    }

    fn make_room(&mut self, when: String) -> Result<(), BenchError> {
        (self.plan.say)("deleting the results of earlier runs, to make room");
        self.place.delete_runs(self.plan.cancel)?;
        self.place.settle()?;
        self.deletions.push(when);
        Ok(())
    }
}

fn which(round: u32) -> String {
    if round == 0 { "warm-up".to_owned() } else { format!("round {round}") }
}

pub(crate) fn check_room(place: &Place, needs: Room) -> Result<(), BenchError> {
    let free = place.free()?;
    let fits = free.bytes >= needs.bytes && free.inodes >= needs.inodes;
    if fits { Ok(()) } else { Err(no_room(place, needs)?) }
}

pub(crate) fn no_room(place: &Place, needs: Room) -> Result<BenchError, BenchError> {
    let free = place.free()?;
    let into = place.path().parent().unwrap_or(place.path());
    let (needed, available) = if free.bytes < needs.bytes {
        (size(needs.bytes), size(free.bytes))
    } else {
        (format!("{} inodes", needs.inodes), format!("{} inodes", free.inodes))
    };
    let text = format!("a run needs {needed} in `{}`, and only {available} are free", Shown(into));
    Ok(BenchError::stated(FailureKind::Failed, text, "free some there, or name another place with `--into`"))
}

fn failure(ran: &std::io::Result<Ended>, round: u32, dst: &Path, said: &str) -> Option<Failed> {
    let with_words = |what: String| if said.is_empty() { what } else { format!("{what}: {said}") };
    match ran {
        Err(error) => {
            let reason = format!("it could not be started: {error}");
            Some(Failed { round, exit_code: None, signal: None, reason })
        }
        Ok(ended) if !ended.status.success() => {
            use std::os::unix::process::ExitStatusExt;
            let (exit_code, signal) = (ended.status.code(), ended.status.signal());
            Some(Failed { round, exit_code, signal, reason: with_words(ended.in_words()) })
        }
        Ok(_) if fs_err::symlink_metadata(dst).is_err() => {
            let reason = with_words("it ended well and made nothing".into());
            Some(Failed { round, exit_code: Some(0), signal: None, reason })
        }
        Ok(_) => None,
    }
}

fn sample(
    ended: &Ended,
    round: u32,
    position: usize,
    disk_bytes: i64,
    flush_seconds: f64,
    others: Option<f64>,
) -> Sample {
    Sample {
        round,
        position,
        seconds: ended.seconds,
        user_seconds: ended.user_seconds,
        system_seconds: ended.system_seconds,
        peak_memory_bytes: ended.peak_memory_bytes,
        disk_bytes,
        flush_seconds,
        others,
    }
}

/// The turns of a round. A workload has different ones before it in every round; and each second round goes backwards through the one
/// before it, so that a machine that becomes slower and slower is as hard on the first as on the last.
fn order(count: usize, round: u32) -> Vec<usize> {
    let mut order = shuffled(count, u64::from(round.div_ceil(2)));
    if round > 0 && round.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// The numbers below `count` in an order that depends on `seed` alone, so that a run of the bench can be repeated exactly.
pub(crate) fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    // SplitMix64, by Sebastiano Vigna.
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (next() % (last as u64 + 1)) as usize);
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
