//! Feeds parsers with mutations of real inputs.
//!
//! An ordinary test run tries a fixed number of inputs, always the same ones. `scripts/fuzz` gives each target a time limit instead, and
//! new inputs each time.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::prng::SplitMix64;

const INPUTS: u64 = 3_000;
const LONGEST: usize = 64 << 10;
/// No parser takes that long for [`LONGEST`] bytes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `target` with mutations of `seeds`. CALVE_FUZZ_SECONDS sets how long (default: a fixed number of inputs), CALVE_FUZZ_SEED which
/// ones.
///
/// # Panics
/// Panics when `target` panics, after printing the input as a Rust byte string, and the seed. If a target does not return, prints its input
/// and ends the process.
#[expect(clippy::print_stderr, reason = "an input that fails is for whoever reads the log")]
pub fn fuzz(seeds: &[&[u8]], target: impl Fn(&[u8])) {
    let seconds: Option<f64> = std::env::var("CALVE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let chosen = std::env::var("CALVE_FUZZ_SEED").ok().and_then(|text| text.parse().ok());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64);
    let seed = chosen.unwrap_or_else(|| if seconds.is_some() { clock() } else { 1 });
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let mut mutator = Mutator { random: SplitMix64::new(seed), seeds, last: VecDeque::new() };
    let current = Arc::new(Mutex::new(Vec::new()));
    let (alive, heard) = channel::<()>();
    let watched = Arc::clone(&current);
    let watcher = std::thread::spawn(move || {
        loop {
            match heard.recv_timeout(PATIENCE) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let input = watched.lock().unwrap_or_else(PoisonError::into_inner);
                    eprintln!("no end after {PATIENCE:?} (CALVE_FUZZ_SEED={seed}) with {}", spelled(&input));
                    std::process::abort();
                }
            }
        }
    });
    let mut tried = 0;
    while deadline.map_or(tried < INPUTS, |deadline| Instant::now() < deadline) {
        // The seeds themselves come first.
        let input = match usize::try_from(tried).ok().and_then(|at| seeds.get(at)) {
            Some(seed) => seed.to_vec(),
            None => mutator.next(),
        };
        current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&input);
        if tried % 64 == 0 {
            let _ = alive.send(());
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            eprintln!("input {tried} (CALVE_FUZZ_SEED={seed}): {}", spelled(&input));
            resume_unwind(panic);
        }
        tried += 1;
    }
    drop(alive);
    let _ = watcher.join();
    eprintln!("{tried} inputs");
}

fn spelled(input: &[u8]) -> String {
    let mut text = String::from("b\"");
    for byte in input {
        let _ = write!(text, "{}", std::ascii::escape_default(*byte));
    }
    text + "\""
}

struct Mutator<'s> {
    random: SplitMix64,
    seeds: &'s [&'s [u8]],
    /// Some of the inputs tried last, to be changed further.
    last: VecDeque<Vec<u8>>,
}

impl Mutator<'_> {
    fn next(&mut self) -> Vec<u8> {
        let mut input = match self.random.below(3) {
            0 if !self.last.is_empty() => {
                let at = self.below(self.last.len());
                self.last[at].clone()
            }
            _ => self.random.pick(self.seeds).to_vec(),
        };
        for _ in 0..=self.random.below(6) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        if self.random.below(8) == 0 {
            self.last.truncate(31);
            self.last.push_front(input.clone());
        }
        input
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound.max(1) as u64) as usize
    }

    fn range(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let from = self.below(input.len() + 1);
        let most = (input.len() - from).min(1 << self.random.below(10));
        from..from + self.below(most + 1)
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        const NUMBERS: [u64; 10] =
            [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
        const WORDS: [&[u8]; 14] = [
            b"\0",
            b"\n",
            b"\r\n\r\n",
            b" ",
            b"\"",
            b"\\",
            b"%",
            b"..",
            b"/",
            b"{",
            b"}",
            b"-1",
            b"99999999999999999999",
            "\u{e9}\u{1f9ca}".as_bytes(),
        ];
        let range = self.range(input);
        match self.random.below(8) {
            0 => {
                let at = self.below(input.len());
                let bit = 1 << self.random.below(8);
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= bit;
                }
            }
            1 => {
                let piece = input[range].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, piece);
            }
            2 => drop(input.splice(range, [])),
            3 => {
                let number = *self.random.pick(&NUMBERS);
                let width = 1 << self.random.below(4);
                let bytes = if self.random.below(2) == 0 {
                    number.to_le_bytes()
                } else {
                    number.rotate_left(64 - 8 * width).to_be_bytes()
                };
                let at = range.start;
                let end = input.len().min(at + width as usize);
                input.splice(at..end, bytes[..width as usize].iter().copied());
            }
            4 => {
                let word = *self.random.pick(&WORDS);
                input.splice(range.start..range.start, word.iter().copied());
            }
            5 => {
                let length = self.below(16);
                let noise = self.random.bytes(length);
                input.splice(range, noise);
            }
            6 => {
                let other = *self.random.pick(self.seeds);
                let piece = other[self.range(other)].to_vec();
                input.splice(range, piece);
            }
            _ => input.truncate(range.end),
        }
    }
}
