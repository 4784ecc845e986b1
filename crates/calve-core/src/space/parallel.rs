//! A list of pieces of work, shared out to threads in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::source::Source;
use crate::sys;

/// Calls `work` with a worker's state and each number below `count`, in parallel, until `stopped`. Gives the states back.
///
/// The threads have descriptor tables of their own. So `work` must use no descriptors but those of `roots` and what it opened, and
/// `close` must leave none in a state.
pub(super) fn for_each<W: Send>(
    threads: usize,
    roots: &[Source],
    count: usize,
    stopped: impl Fn() -> bool + Sync,
    state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) + Sync,
    close: impl Fn(&mut W) + Sync,
) -> Vec<W> {
    /// Neighbours are in one directory, which is then opened once.
    const TOGETHER: usize = 32;
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut state = state();
        while !stopped() {
            let begin = next.fetch_add(TOGETHER, Ordering::Relaxed);
            if begin >= count {
                break;
            }
            for index in begin..(begin + TOGETHER).min(count) {
                if !stopped() {
                    work(&mut state, index);
                }
            }
        }
        close(&mut state);
        state
    };
    let keep: Vec<_> = roots.iter().map(Source::directory).collect();
    let other = || {
        sys::private_descriptors(&keep);
        worker()
    };
    std::thread::scope(|scope| {
        // This thread is one of them, so that the work is done even where no other can be started.
        let start = |_| std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, other).ok();
        let others: Vec<_> = (1..threads.min(count.div_ceil(TOGETHER))).map_while(start).collect();
        let mut states = vec![worker()];
        for other in others {
            states.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        states
    })
}
