//! Pieces of work, shared out to threads.

use super::turns::Turns;
use crate::source::Source;
use crate::sys;

/// Calls `work` with a worker's state and the number of each piece, in parallel, until `stopped`. Gives the states back.
///
/// The threads have descriptor tables of their own. So `work` must use no descriptors but those of `roots` and what it opened, and
/// `close` must leave none in a state.
pub(super) fn for_each<W: Send>(
    threads: usize,
    roots: &[Source],
    turns: &Turns,
    stopped: impl Fn() -> bool + Sync,
    state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) + Sync,
    close: impl Fn(&mut W) + Sync,
) -> Vec<W> {
    let worker = || {
        let mut state = state();
        while !stopped()
            && let Some(turn) = turns.next()
        {
            for &piece in &turn.pieces {
                if !stopped() {
                    work(&mut state, piece as usize);
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
        let others: Vec<_> = (1..threads.min(turns.most_threads())).map_while(start).collect();
        let mut states = vec![worker()];
        for other in others {
            states.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        states
    })
}
