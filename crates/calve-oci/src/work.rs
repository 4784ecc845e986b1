use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;

/// Divides a list into groups of neighbours. An item that does not fit the present group begins another.
pub(crate) fn grouped<T>(mut items: &[T], fits: impl Fn(&[T], &T) -> bool) -> Vec<&[T]> {
    let mut groups = Vec::new();
    while !items.is_empty() {
        let end = (1..items.len()).find(|&at| !fits(&items[..at], &items[at])).unwrap_or(items.len());
        let (group, rest) = items.split_at(end);
        groups.push(group);
        items = rest;
    }
    groups
}

/// More do not make a connection faster.
pub(crate) const THREADS: usize = 4;

/// Runs `work` for each item. Results have the order of the items; the first error ends the rest early.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    threads: Option<NonZeroUsize>,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Ok(Vec::with_capacity(items.len())));
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed));
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(all) = &mut *done {
                match result {
                    Ok(result) => all.push((index, result)),
                    Err(error) => *done = Err(error),
                }
            }
        }
    };
    let threads = threads.map_or(THREADS, NonZeroUsize::get).min(items.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
