//! Feeds parsers with mutations of real inputs, and reduces a failing input to the fewest mutations.
//!
//! An ordinary test run tries [`rounds`] of inputs, always the same ones. `scripts/steps/fuzz` instead gives each
//! target a time limit, and new inputs each time.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::prng::SplitMix64;
use crate::rounds::rounds;

/// Number of inputs before [`rounds`] scales it.
const INPUTS: usize = 3_000;
const LONGEST: usize = 64 << 10;
/// No parser needs this long for [`LONGEST`] bytes, even on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `target` with `seeds` and with mutations of them. CALVE_FUZZ_SECONDS sets the duration (default: a fixed
/// number of inputs), CALVE_FUZZ_SEED the first seed.
///
/// # Panics
/// Panics when `target` panics, with the smallest failing mutation found, as a Rust byte string, and its seed. If a
/// call does not return, this prints the input and aborts the process.
#[expect(clippy::print_stderr, reason = "an input that fails is for whoever reads the log")]
pub fn fuzz(seeds: &[&[u8]], target: impl Fn(&[u8])) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = number("CALVE_FUZZ_SECONDS");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| u64::from(time.subsec_nanos()));
    let first = match number("CALVE_FUZZ_SEED") {
        Some(chosen) => chosen as u64,
        None if seconds.is_some() => clock(),
        None => 1,
    };
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let inputs = watch();
    let called = |input: &[u8]| {
        let _ = inputs.send(input.to_vec());
        target(input);
    };
    seeds.iter().for_each(|seed| called(seed));
    let fails = |mutation: &Mutation| catch_unwind(AssertUnwindSafe(|| called(&mutation.applied_to(seeds)))).is_err();
    let usual = rounds(INPUTS) as u64;
    let mut tried = 0;
    while deadline.map_or(tried < usual, |deadline| Instant::now() < deadline) {
        let seed = first.wrapping_add(tried);
        let mut mutation = Mutation::made(&mut SplitMix64::new(seed));
        if fails(&mutation) {
            let mut at = 0;
            while at < mutation.changes.len() {
                let mut fewer = mutation.clone();
                fewer.changes.remove(at);
                if fails(&fewer) {
                    mutation = fewer;
                } else {
                    at += 1;
                }
            }
            panic!("a target failed (CALVE_FUZZ_SEED={seed}) with {}", spelled(&mutation.applied_to(seeds)));
        }
        tried += 1;
    }
    eprintln!("{tried} inputs");
}

fn spelled(input: &[u8]) -> String {
    let mut text = String::from("b\"");
    for byte in input {
        let _ = write!(text, "{}", std::ascii::escape_default(*byte));
    }
    text + "\""
}

/// Returns the channel that reports each input before it is tried. Aborts the process when a target does not return.
#[expect(clippy::print_stderr, reason = "an input that fails is for whoever reads the log")]
fn watch() -> SyncSender<Vec<u8>> {
    let (inputs, seen) = sync_channel::<Vec<u8>>(1);
    std::thread::spawn(move || {
        let mut current = Vec::new();
        loop {
            match seen.recv_timeout(PATIENCE) {
                Ok(input) => current = input,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!("no end after {PATIENCE:?} with {}", spelled(&current));
                    std::process::abort();
                }
            }
        }
    });
    inputs
}

/// A seed input, and the random seeds of the changes to it.
#[derive(Clone)]
struct Mutation {
    seed: u64,
    changes: Vec<u64>,
}

const NUMBERS: [u64; 10] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
const WORDS: [&str; 14] =
    ["\0", "\n", "\r\n\r\n", " ", "\"", "\\", "%", "..", "/", "{", "}", "-1", "99999999999999999999", "é🧊"];

/// Returns a number, a word with a meaning in text formats, noise, or nothing.
fn bytes(random: &mut SplitMix64) -> Vec<u8> {
    match random.below(4) {
        0 => {
            let (number, width) = (*random.pick(&NUMBERS), *random.pick(&[1, 2, 4, 8]));
            let is_little = random.below(2) == 0;
            if is_little { number.to_le_bytes()[..width].to_vec() } else { number.to_be_bytes()[8 - width..].to_vec() }
        }
        1 => random.pick(&WORDS).as_bytes().to_vec(),
        2 => {
            let length = random.below(16) as usize;
            random.bytes(length)
        }
        _ => Vec::new(),
    }
}

impl Mutation {
    fn made(random: &mut SplitMix64) -> Self {
        let changes = 1 + random.below(7);
        Self { seed: random.next_u64(), changes: (0..changes).map(|_| random.next_u64()).collect() }
    }

    fn applied_to(&self, seeds: &[&[u8]]) -> Vec<u8> {
        let mut input = seeds[(self.seed % seeds.len() as u64) as usize].to_vec();
        for change in &self.changes {
            change_some(&mut input, seeds, &mut SplitMix64::new(*change));
        }
        input.truncate(LONGEST);
        input
    }
}

/// Changes some bytes, more often a short piece than a long one.
fn change_some(input: &mut Vec<u8>, seeds: &[&[u8]], random: &mut SplitMix64) {
    let longest = 1 << random.below(10);
    let length = random.below(longest) as usize;
    let start = random.below(input.len() as u64 + 1) as usize;
    let range = start..input.len().min(start + length);
    let (range, bytes) = match random.below(7) {
        0 => match input.get(start) {
            Some(byte) => (start..start + 1, vec![byte ^ (1u8 << random.below(8))]),
            None => return,
        },
        1 => (range, bytes(random)),
        // Keep the total length, so that length fields stay where the parser expects them.
        2 => {
            let bytes = bytes(random);
            (start..input.len().min(start + bytes.len()), bytes)
        }
        3 => (start..start, bytes(random)),
        // Insert a piece of another seed.
        4 => {
            let other = random.pick(seeds);
            let from = random.below(other.len() as u64 + 1) as usize;
            (range, other[from..other.len().min(from + length)].to_vec())
        }
        5 => (start..start, input[range].to_vec()),
        _ => (start..input.len(), Vec::new()),
    };
    drop(input.splice(range, bytes));
}
