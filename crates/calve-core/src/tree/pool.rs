//! Worker threads that share work: each keeps its own, and gives some away when another has none.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::Error;
use crate::progress::CancelToken;
use crate::vocabulary::operation::Operation;

pub(crate) struct Pool<T> {
    state: Mutex<PoolState<T>>,
    wake: Condvar,
    /// Waiting workers that were not offered work yet. Read without the lock, once per directory.
    hungry: AtomicUsize,
    stopped: AtomicBool,
    cancel: CancelToken,
}

struct PoolState<T> {
    queue: VecDeque<T>,
    waiting: usize,
    threads: usize,
    error: Option<Error>,
}

impl<T: Send> Pool<T> {
    pub(crate) fn new(threads: usize, cancel: CancelToken) -> Self {
        Self {
            state: Mutex::new(PoolState { queue: VecDeque::new(), waiting: 0, threads, error: None }),
            wake: Condvar::new(),
            hungry: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            cancel,
        }
    }

    /// Runs `worker` on every thread until all work is done. Returns the workers' results, or the first error. If the
    /// system starts fewer threads than wanted, those do the work.
    pub(crate) fn run<R: Send>(&self, first: T, worker: impl Fn(&Self) -> R + Sync) -> Result<Vec<R>, Error> {
        self.give(first);
        let wanted = self.lock().threads;
        let results = std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(wanted);
            for _ in 0..wanted {
                let work = || {
                    let _guard = StopOnPanic(self);
                    worker(self)
                };
                match std::thread::Builder::new().name("calve".into()).spawn_scoped(scope, work) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => self.one_thread_less(error),
                }
            }
            handles.into_iter().map(joined).collect()
        });
        self.cancel.check()?;
        match self.lock().error.take() {
            Some(error) => Err(error),
            None => Ok(results),
        }
    }

    fn one_thread_less(&self, error: std::io::Error) {
        let mut state = self.lock();
        state.threads -= 1;
        if state.threads == 0 {
            let path = std::path::PathBuf::from(".");
            state.error.get_or_insert(Error::Io { operation: Operation::StartThread, path, source: error });
        }
        // The waiting ones count themselves again.
        if state.waiting == state.threads {
            self.stop();
        }
    }

    /// Waits for the next piece of shared work. Returns `None` when all is done or the run has stopped.
    pub(crate) fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if self.stopped() {
                // Working threads notice a cancelled run; waiting ones must be woken.
                self.stop();
                return None;
            }
            if let Some(task) = state.queue.pop_front() {
                return Some(task);
            }
            state.waiting += 1;
            if state.waiting == state.threads {
                self.stop();
                return None;
            }
            self.hungry.fetch_add(1, Ordering::Relaxed);
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            if self.stopped() {
                return None;
            }
            state.waiting -= 1;
        }
    }

    pub(crate) fn hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Returns whether a worker that becomes free would find nothing. Takes the lock, so only for large pieces of work.
    pub(crate) fn nothing_offered(&self) -> bool {
        let state = self.lock();
        state.threads > 1 && state.queue.is_empty()
    }

    pub(crate) fn give(&self, task: T) {
        let mut state = self.lock();
        state.queue.push_back(task);
        let fed = self.hungry.load(Ordering::Relaxed).saturating_sub(1);
        self.hungry.store(fed, Ordering::Relaxed);
        drop(state);
        self.wake.notify_one();
    }

    /// Returns whether to stop: another worker failed or has the answer, or the caller cancelled.
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.cancel.is_cancelled()
    }

    pub(crate) fn fail(&self, error: Error) {
        self.lock().error.get_or_insert(error);
        self.stop();
    }

    /// Ends the run early: the answer is known.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a panicking worker from leaving the others waiting for it.
struct StopOnPanic<'a, T: Send>(&'a Pool<T>);

impl<T: Send> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _state = self.0.lock();
            self.0.stop();
        }
    }
}

/// Returns the number of workers. By default at most eight: more only fight over the file system's locks.
pub(crate) fn thread_count(wanted: Option<NonZeroUsize>) -> usize {
    // Asking reads the control group's files, and takes longer than a small clone.
    static DEFAULT: OnceLock<usize> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(2, NonZeroUsize::get).clamp(1, 8);
    wanted.map_or_else(|| *DEFAULT.get_or_init(count), NonZeroUsize::get).min(64)
}

/// Returns how many directories each worker may keep open: its share of all descriptors, less some for files.
pub(crate) fn open_directories_per_worker(threads: usize, descriptors_per_directory: usize) -> usize {
    const RESERVED: usize = 32;
    const PER_WORKER: usize = 6;
    let share = (crate::sys::MOST_DESCRIPTORS - RESERVED) / threads;
    (share.saturating_sub(PER_WORKER) / descriptors_per_directory).max(1)
}

/// Joins a thread, and continues its panic if it had one.
pub fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
