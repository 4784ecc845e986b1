//! Feeds parsers with mutations of real inputs, by proptest, which makes an input that fails as small as it can.
//!
//! An ordinary test run tries [`rounds`] of inputs, always the same ones. `scripts/steps/fuzz` gives each target a time limit instead, and
//! new inputs each time.

use std::fmt::Write as _;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::rounds::rounds;

/// How many inputs an ordinary run usually tries.
const INPUTS: usize = 3_000;
/// How many are tried between two looks at the clock.
const ROUND: usize = 250;
const LONGEST: usize = 64 << 10;
/// No parser takes that long for [`LONGEST`] bytes, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `target` with `seeds`, and with mutations of them. CALVE_FUZZ_SECONDS sets how long (default: a fixed number of inputs),
/// CALVE_FUZZ_SEED which ones.
///
/// # Panics
/// Panics when `target` panics, with the smallest such input that was found, as a Rust byte string, and the seed. If a target does not
/// return, prints its input and ends the process.
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
    let watch = Watch::start();
    let called = |input: &[u8]| {
        watch.sees(input);
        target(input);
    };
    seeds.iter().for_each(|seed| called(seed));
    let strategy = mutations();
    let inputs = rounds(INPUTS);
    let mut tried = 0;
    for seed in first.. {
        if deadline.map_or(tried >= inputs, |deadline| Instant::now() >= deadline) {
            break;
        }
        let config = Config { cases: ROUND as u32, failure_persistence: None, ..Config::default() };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let result = TestRunner::new_with_rng(config, random).run(&strategy, |mutation| {
            called(&mutation.of(seeds));
            Ok(())
        });
        match result {
            Ok(()) => tried += ROUND,
            Err(TestError::Fail(reason, smallest)) => {
                panic!("{reason} (CALVE_FUZZ_SEED={seed}) with {}", spelled(&smallest.of(seeds)))
            }
            Err(TestError::Abort(reason)) => panic!("{reason} (CALVE_FUZZ_SEED={seed})"),
        }
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

/// Ends the process when a target does not return.
struct Watch {
    current: Arc<Mutex<Vec<u8>>>,
    alive: std::sync::mpsc::Sender<()>,
}

impl Watch {
    #[expect(clippy::print_stderr, reason = "an input that fails is for whoever reads the log")]
    fn start() -> Self {
        let current = Arc::new(Mutex::new(Vec::new()));
        let (alive, heard) = channel::<()>();
        let watched = Arc::clone(&current);
        std::thread::spawn(move || {
            loop {
                match heard.recv_timeout(PATIENCE) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        let input = watched.lock().unwrap_or_else(PoisonError::into_inner);
                        eprintln!("no end after {PATIENCE:?} with {}", spelled(&input));
                        std::process::abort();
                    }
                }
            }
        });
        Self { current, alive }
    }

    fn sees(&self, input: &[u8]) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.clear();
        current.extend_from_slice(input);
        let _ = self.alive.send(());
    }
}

/// One of the seeds, and what is changed in it.
#[derive(Debug, Clone)]
struct Mutation {
    seed: Index,
    changes: Vec<Change>,
}

/// A change of some bytes: those from `at` on, as many as `length` or to the end.
#[derive(Debug, Clone)]
struct Change {
    at: Index,
    length: usize,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Turns a bit of the first of them around.
    Flip(u8),
    /// Puts other bytes in their place: a number, a word that means something in texts, noise, or nothing.
    Replace(Vec<u8>),
    /// The same, in place of as many: a length stays where it is read.
    Overwrite(Vec<u8>),
    /// Puts other bytes before them.
    Insert(Vec<u8>),
    /// Puts a piece of another seed in their place.
    Splice(Index, Index),
    /// Says them twice.
    Repeat,
    /// Ends there.
    Truncate,
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let numbers = select(vec![0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX]);
    let numbers = (numbers, select(vec![1_usize, 2, 4, 8]), any::<bool>()).prop_map(|(number, width, little)| {
        if little { number.to_le_bytes()[..width].to_vec() } else { number.to_be_bytes()[8 - width..].to_vec() }
    });
    let words =
        ["\0", "\n", "\r\n\r\n", " ", "\"", "\\", "%", "..", "/", "{", "}", "-1", "99999999999999999999", "é🧊"];
    let words = select(words.map(|word| word.as_bytes().to_vec()).to_vec());
    let bytes = prop_oneof![numbers, words, vec(any::<u8>(), 0..16), Just(Vec::new())].boxed();
    let kind = prop_oneof![
        (0_u8..8).prop_map(Kind::Flip),
        bytes.clone().prop_map(Kind::Replace),
        bytes.clone().prop_map(Kind::Overwrite),
        bytes.prop_map(Kind::Insert),
        (any::<Index>(), any::<Index>()).prop_map(|(seed, at)| Kind::Splice(seed, at)),
        Just(Kind::Repeat),
        Just(Kind::Truncate),
    ];
    // Short pieces more often than long ones.
    let length = (0_u32..10, any::<Index>()).prop_map(|(bits, index)| index.index(1 << bits));
    let change = (any::<Index>(), length, kind).prop_map(|(at, length, kind)| Change { at, length, kind });
    (any::<Index>(), vec(change, 1..8)).prop_map(|(seed, changes)| Mutation { seed, changes })
}

impl Mutation {
    fn of(&self, seeds: &[&[u8]]) -> Vec<u8> {
        let mut input = self.seed.get(seeds).to_vec();
        for Change { at, length, kind } in &self.changes {
            let start = at.index(input.len() + 1);
            let range = start..input.len().min(start + length);
            match kind {
                Kind::Flip(bit) => {
                    if let Some(byte) = input.get_mut(start) {
                        *byte ^= 1 << bit;
                    }
                }
                Kind::Replace(bytes) => drop(input.splice(range, bytes.iter().copied())),
                Kind::Overwrite(bytes) => {
                    let end = input.len().min(start + bytes.len());
                    drop(input.splice(start..end, bytes.iter().copied()));
                }
                Kind::Insert(bytes) => drop(input.splice(start..start, bytes.iter().copied())),
                Kind::Splice(seed, from) => {
                    let other = seed.get(seeds);
                    let from = from.index(other.len() + 1);
                    let piece = other[from..other.len().min(from + length)].to_vec();
                    drop(input.splice(range, piece));
                }
                Kind::Repeat => {
                    let piece = input[range].to_vec();
                    drop(input.splice(start..start, piece));
                }
                Kind::Truncate => input.truncate(start),
            }
        }
        input.truncate(LONGEST);
        input
    }
}
