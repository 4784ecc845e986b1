//! Threads that share out pieces of work, in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::tree::pool::joined;

/// Neighbours are in one directory, which is then opened once.
const TOGETHER: usize = 32;

/// Calls `work` with a worker's state and each number below `count`, in parallel, until `stopped`. Returns the states.
pub(super) fn for_each<W: Send>(
    threads: usize,
    count: usize,
    stopped: impl Fn() -> bool + Sync,
    state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) + Sync,
) -> Vec<W> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut state = state();
        let take = || Some(next.fetch_add(TOGETHER, Ordering::Relaxed)).filter(|&first| first < count && !stopped());
        while let Some(first) = take() {
            for piece in first..count.min(first + TOGETHER) {
                if !stopped() {
                    work(&mut state, piece);
                }
            }
        }
        state
    };
    std::thread::scope(|scope| {
        // This thread is one of them, so that the work is done even where no other can be started.
        let start = |_| std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads.min(count.div_ceil(TOGETHER))).map_while(start).collect();
        let mut states = vec![worker()];
        states.extend(others.into_iter().map(joined));
        states
    })
}
