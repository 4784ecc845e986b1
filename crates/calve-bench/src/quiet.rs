//! Before a run: until the machine has finished what the runs before it left it to do.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Written out is not finished: file systems free inodes, give back blocks and clean up behind themselves, in threads of the kernel's
/// own, which would then take the time of the next command.
///
/// Waits until the processors have had little to do for a moment, and no longer than `most`: whatever else goes on may never end.
pub(super) fn wait_until_idle(most: Duration) {
    const MOMENT: Duration = Duration::from_millis(50);
    const IDLE: f64 = 0.7;
    let give_up = Instant::now() + most;
    let Some(mut before) = Spent::now() else { return };
    while Instant::now() + MOMENT <= give_up {
        sleep(MOMENT);
        let Some(now) = Spent::now() else { return };
        if now.idle - before.idle >= IDLE * (now.all - before.all) {
            return;
        }
        before = now;
    }
}

/// What the processors' clocks have counted, in ticks.
struct Spent {
    all: f64,
    idle: f64,
}

impl Spent {
    /// `None` where nothing tells.
    fn now() -> Option<Self> {
        Self::parse(&fs_err::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        Some(Self { all: ticks.iter().sum(), idle: ticks.get(3)? + ticks.get(4)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_disk_is_idle_and_guests_count_once() {
        let spent = Spent::parse("cpu  10 1 20 300 40 0 5 4 9 1\ncpu0 1 1 1 1 1 1 1 1\n").unwrap();
        assert_eq!((spent.all, spent.idle), (380.0, 340.0));
        assert!(Spent::parse("").is_none() && Spent::parse("cpu  1 2\n").is_none());
    }

    #[test]
    fn it_never_waits_for_longer_than_it_may() {
        for most in [Duration::ZERO, Duration::from_millis(120)] {
            let began = Instant::now();
            wait_until_idle(most);
            // That the test itself is not held up for longer nobody promises.
            assert!(began.elapsed() < most + Duration::from_secs(60));
        }
    }
}
