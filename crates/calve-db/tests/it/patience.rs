//! How long a test waits for a condition that must come: time without waiting for a processor or the disk counts.

use std::time::{Duration, Instant};

/// However busy the machine is.
const MOST: Duration = Duration::from_secs(120);

/// A limit on a machine that has nothing else to do. Time in which a process was kept waiting does not count (PSI, as in
/// /proc/pressure); where the kernel does not tell, that time is unknown.
pub(crate) struct Patience {
    limit: Duration,
    began: Instant,
    stalled: Option<Duration>,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, began: Instant::now(), stalled: stalled() }
    }

    pub(crate) fn is_over(&self) -> bool {
        let elapsed = self.began.elapsed();
        if elapsed < self.limit {
            return false;
        }
        let waited = self.stalled.zip(stalled()).map_or(MOST, |(then, now)| now.saturating_sub(then));
        elapsed >= MOST || elapsed.saturating_sub(waited) >= self.limit
    }
}

/// The time since boot in which some process had to wait for a processor, for the disk, or for memory.
fn stalled() -> Option<Duration> {
    ["cpu", "io", "memory"].into_iter().map(stalled_for).sum()
}

fn stalled_for(what: &str) -> Option<Duration> {
    let text = fs_err::read_to_string(format!("/proc/pressure/{what}")).ok()?;
    let total = text.lines().find(|line| line.starts_with("some "))?.split("total=").nth(1)?;
    Some(Duration::from_micros(total.parse().ok()?))
}

#[test]
fn patience_ends() {
    let patience = Patience::new(Duration::from_millis(10));
    assert!(!Patience::new(MOST).is_over());
    while !patience.is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(patience.began.elapsed() >= patience.limit);
}
