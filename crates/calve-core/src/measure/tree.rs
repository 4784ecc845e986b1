//! Trials with a whole tree of small files: whether copies pay, and how many threads do.

use std::ffi::{CStr, CString};
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::choice::{best_threads, decide, to_try};
use super::trial::{Trial, fewer, median, number, number_after};
use crate::error::Error;
use crate::measurement::{SmallCopies, ThreadCost};
use crate::sys;
use crate::tree::contents::Contents;
use crate::tree::pool::thread_count;

/// The tree that is cloned as a whole is like a `node_modules`: many directories, with small files of these sizes.
const TREE_DIRECTORIES: usize = 80;
const TREE_FILES: [u64; 16] = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1300, 1600, 2200, 4000, 7000];
const CHOICE_ROUNDS: usize = 15;
const THREADS_ROUNDS: usize = 11;
/// Making the tree, a pair of clones, and one with each number of threads; and for each of them deleting.
const LEAST_CLONES: usize = 10;
/// Until when, as a share of the budget and with the time for cleaning up, each part may begin another round.
const SETTLED_UNTIL: f64 = 0.45;
const CHOICE_UNTIL: f64 = 0.60;
const THREADS_UNTIL: f64 = 0.85;

/// The tree of many directories.
pub(super) struct Tree {
    directories: usize,
    bytes: u64,
}

impl Tree {
    /// `per_file` is what a small file takes at the most. Where that is long the tree is smaller: it is made, and cloned some times
    /// at least.
    pub(super) fn make(trial: &mut Trial<'_>, per_file: Duration) -> Result<Self, Error> {
        let directory = per_file.max(trial.create) * (TREE_FILES.len() * LEAST_CLONES) as u32;
        let affordable = trial.left(THREADS_UNTIL).as_nanos() / directory.as_nanos().max(1);
        let directories = fewer(TREE_DIRECTORIES, trial.create * 48)
            .min(usize::try_from(affordable).unwrap_or(usize::MAX))
            .max(thread_count(None));
        let tree = trial.make_directory(trial.root, TREE)?;
        for index in 0..directories {
            let directory = trial.make_directory(tree.as_fd(), &number(index as u64))?;
            trial.make_files(directory.as_fd(), &TREE_FILES)?;
        }
        let made = Self { directories, bytes: directories as u64 * TREE_FILES.iter().sum::<u64>() };
        for index in 0..directories {
            trial.settle(&directory_of(TREE, index), TREE_FILES.len(), SETTLED_UNTIL)?;
        }
        Ok(made)
    }

    fn files(&self) -> usize {
        self.directories * TREE_FILES.len()
    }

    fn write_back(&self, trial: &Trial<'_>, name: &CStr) -> Result<(), Error> {
        for index in 0..self.directories {
            trial.write_back(&directory_of(name, index), TREE_FILES.len())?;
        }
        Ok(())
    }

    /// The size up to which files are to be copied, where `limit` is what follows from single sizes, and what was tried.
    pub(super) fn choose(
        &self,
        trial: &mut Trial<'_>,
        limit: u64,
    ) -> Result<(Option<u64>, Option<SmallCopies>), Error> {
        let built_in = sys::copy_is_cheaper_up_to(sys::magic(trial.root).unwrap_or(0));
        let limit = to_try(limit, built_in);
        if limit == 0 {
            return Ok((Some(0), None));
        }
        let mut ratios = self.small_copies(trial, limit)?;
        let decided = decide(limit, built_in, &ratios);
        ratios.sort_unstable_by(f64::total_cmp);
        let ratio = ratios.get(ratios.len() / 2).copied();
        Ok((Some(decided), ratio.map(|ratio| SmallCopies { up_to_bytes: limit, ratio })))
    }

    /// The times with files up to `limit` copied, as shares of the times with all shared: of pairs that follow one another, since
    /// disturbances last longer than a pair.
    ///
    /// For each file that is not yet written back btrfs reserves room for metadata, far more than will be used. In a larger tree than
    /// this one that room runs out, and the writer waits for files to be written back: so there that counts.
    fn small_copies(&self, trial: &mut Trial<'_>, limit: u64) -> Result<Vec<f64>, Error> {
        let mut ratios = Vec::new();
        let mut longest = Duration::ZERO;
        for round in 0..CHOICE_ROUNDS {
            let began = Instant::now();
            if round > 0 && !(trial.may_go_on(CHOICE_UNTIL, longest) && trial.may_write(2 * self.files(), self.bytes)) {
                break;
            }
            let [mut shared, mut copied] = [Duration::ZERO; 2];
            for copies in [round.is_multiple_of(2), !round.is_multiple_of(2)] {
                let contents = trial.reflink(if copies { limit } else { 0 });
                let (mut took, _, out) = trial.clone_batch(TREE, contents, 1)?;
                let started = Instant::now();
                if trial.on_btrfs {
                    self.write_back(trial, &out)?;
                    took += started.elapsed();
                }
                *(if copies { &mut copied } else { &mut shared }) = took;
            }
            ratios.push(copied.as_secs_f64() / shared.as_secs_f64());
            longest = longest.max(began.elapsed());
        }
        Ok(ratios)
    }

    /// With one thread, two, four, …; and what is best.
    pub(super) fn thread_costs(
        &self,
        trial: &mut Trial<'_>,
        contents: Contents,
    ) -> Result<(Vec<ThreadCost>, Option<NonZeroUsize>), Error> {
        let mut times: Vec<(NonZeroUsize, Vec<Duration>)> =
            numbers_of_threads(thread_count(None)).map(|threads| (threads, Vec::new())).collect();
        let mut longest = Duration::ZERO;
        'rounds: for round in 0..THREADS_ROUNDS {
            times.reverse();
            for (threads, took) in &mut times {
                if round > 0 && !(trial.may_go_on(THREADS_UNTIL, longest) && trial.may_write(self.files(), self.bytes))
                {
                    break 'rounds;
                }
                took.push(trial.clone_batch(TREE, contents, threads.get())?.0);
                longest = longest.max(took.last().copied().unwrap_or_default());
            }
        }
        let best = best_threads(&times);
        let cost = |(threads, mut took): (NonZeroUsize, Vec<Duration>)| {
            Some(ThreadCost { threads, per_file: median(&mut took)? / u32::try_from(self.files()).unwrap_or(1) })
        };
        let mut costs: Vec<ThreadCost> = times.into_iter().filter_map(cost).collect();
        costs.sort_unstable_by_key(|cost| cost.threads);
        Ok((costs, best))
    }
}

const TREE: &CStr = c"tree";

fn directory_of(tree: &CStr, index: usize) -> CString {
    number_after(&format!("{}/", tree.to_string_lossy()), index)
}

/// One, two, four, … and as many as there are.
fn numbers_of_threads(most: usize) -> impl Iterator<Item = NonZeroUsize> {
    let doubling =
        std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(move |threads| *threads < most);
    doubling.chain([most]).filter_map(NonZeroUsize::new)
}
