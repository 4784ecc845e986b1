//! Threads that share out pieces of work: in order, and those that would wait for each other's locks in turn.
//!
//! XFS changes the maps of an allocation group under a lock that is held until the transaction ends. Sharing changes those of the
//! groups that both files are in, so that two threads in one group take turns at every file, and are slower than one. Here a thread
//! gets pieces only while no other worker is in any of their groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::tree::pool::joined;

/// A set of allocation groups, as bits; empty for work that conflicts with no other.
pub(super) type GroupMask = u64;

/// Neighbours are in one directory, which is then opened once.
pub(super) const TOGETHER: usize = 32;

pub(super) struct Turns {
    queue: Mutex<Queue>,
    left: Condvar,
    pieces: usize,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<(GroupMask, VecDeque<u32>)>,
    busy: GroupMask,
}

/// Some pieces, and the groups that they keep busy until this is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    groups: GroupMask,
    pub(super) pieces: Vec<u32>,
}

impl Turns {
    /// Creates turns for the numbers below `count`, each in the groups that `groups` returns.
    pub(super) fn new(count: usize, groups: impl Fn(usize) -> GroupMask) -> Self {
        let mut waiting: Vec<(GroupMask, VecDeque<u32>)> = Vec::new();
        for piece in 0..count {
            let wanted = groups(piece);
            match waiting.iter_mut().find(|(groups, _)| *groups == wanted) {
                Some((_, pieces)) => pieces.push_back(piece as u32),
                None => waiting.push((wanted, VecDeque::from([piece as u32]))),
            }
        }
        Self { queue: Mutex::new(Queue { waiting, busy: 0 }), left: Condvar::new(), pieces: count }
    }

    /// Creates turns for work without conflicts.
    pub(super) fn in_order(count: usize) -> Self {
        Self::new(count, |_| 0)
    }

    pub(super) fn most_threads(&self) -> usize {
        self.pieces.div_ceil(TOGETHER)
    }

    /// Waits until there is work without a conflict. `None` when nothing is left.
    pub(super) fn next(&self) -> Option<Turn<'_>> {
        let mut queue = self.lock();
        loop {
            let Queue { waiting, busy } = &mut *queue;
            waiting.retain(|(_, pieces)| !pieces.is_empty());
            if waiting.is_empty() {
                return None;
            }
            // The longest queue first, so that the last ones are not all in one group.
            let free = waiting.iter_mut().filter(|(groups, _)| groups & *busy == 0);
            if let Some((groups, pieces)) = free.max_by_key(|(_, pieces)| pieces.len()) {
                *busy |= *groups;
                let pieces = pieces.drain(..TOGETHER.min(pieces.len())).collect();
                return Some(Turn { turns: self, groups: *groups, pieces });
            }
            queue = self.left.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().busy &= !self.groups;
        self.turns.left.notify_all();
    }
}

/// Calls `work` with a worker's state and the number of each piece, in parallel, until `stopped`. Returns the states.
pub(super) fn for_each<W: Send>(
    threads: usize,
    turns: &Turns,
    stopped: impl Fn() -> bool + Sync,
    state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize) + Sync,
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
        state
    };
    std::thread::scope(|scope| {
        // This thread is one of them, so that the work is done even where no other can be started.
        let start = |_| std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, worker).ok();
        let others: Vec<_> = (1..threads.min(turns.most_threads())).map_while(start).collect();
        let mut states = vec![worker()];
        states.extend(others.into_iter().map(joined));
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_works_where_another_does() {
        // Two groups of a hundred pieces each, and one that needs both.
        let turns = Turns::new(201, |piece| [1, 2, 3][piece / 100]);
        let (one, two) = (turns.next().unwrap(), turns.next().unwrap());
        assert_eq!((one.groups | two.groups, one.groups & two.groups), (3, 0));
        drop((one, two));
        let mut done = Vec::new();
        std::thread::scope(|scope| {
            let worker = || {
                let mut done = Vec::new();
                while let Some(turn) = turns.next() {
                    assert_eq!(turns.lock().busy & turn.groups, turn.groups);
                    done.extend_from_slice(&turn.pieces);
                }
                done
            };
            let workers = [(); 3].map(|()| scope.spawn(worker));
            workers.into_iter().for_each(|worker| done.extend(worker.join().unwrap()));
        });
        done.sort_unstable();
        done.dedup();
        assert_eq!(done.len(), 201 - 2 * TOGETHER);
    }

    #[test]
    fn what_is_in_nobodys_way_comes_in_order() {
        let turns = Turns::in_order(70);
        let all: Vec<u32> = std::iter::from_fn(|| turns.next()).flat_map(|turn| turn.pieces.clone()).collect();
        assert_eq!((all, turns.most_threads()), ((0..70).collect(), 3));
    }
}
