//! Distributes pieces of work among threads, in order.

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
        while !stopped() {
            let first = next.fetch_add(TOGETHER, Ordering::Relaxed);
            if first >= count {
                break;
            }
            for piece in first..count.min(first + TOGETHER) {
                if !stopped() {
                    work(&mut state, piece);
                }
            }
        }
        state
    };
    std::thread::scope(|scope| {
        // This thread is one of them, so the work is done even if no other can be started.
        let start = |_| std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads.min(count.div_ceil(TOGETHER))).map_while(start).collect();
        let mut states = vec![worker()];
        states.extend(others.into_iter().map(joined));
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_shared_out_once_and_in_order() {
        for (threads, count) in [(1, 0), (1, 70), (3, 0), (3, 32), (3, 70)] {
            let all = for_each(threads, count, || false, Vec::new, |done: &mut Vec<usize>, number| done.push(number));
            assert!(all.iter().all(|done| done.is_sorted()), "{all:?}");
            let mut all = all.concat();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
