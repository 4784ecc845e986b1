//! Work in this process, to be ended with the interpreter, and the threads that wait for it with the GIL released.

use std::process::id;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use calve_core::CancelToken;

struct RunningOperations {
    next: u64,
    operations: Vec<RunningOperation>,
    /// Python's threads in this module, which may release the GIL there.
    inside: Vec<(u32, ThreadId)>,
    /// The thread in which the interpreter exits. It waits for its own work, and for no other that begins later.
    exiting: Option<ThreadId>,
}

/// A forked child has the list, but none of the threads.
struct RunningOperation {
    number: u64,
    process: u32,
    cancel: CancelToken,
}

static RUNNING: Mutex<RunningOperations> =
    Mutex::new(RunningOperations { next: 0, operations: Vec::new(), inside: Vec::new(), exiting: None });
static FEWER: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, RunningOperations> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One operation, until it is dropped.
pub(crate) struct Operation(u64);

impl Operation {
    pub(crate) fn begin(cancel: CancelToken) -> Self {
        let mut running = lock();
        running.next += 1;
        let number = running.next;
        if running.exiting.is_some_and(|exiting| exiting != current().id()) {
            cancel.cancel();
        }
        running.operations.push(RunningOperation { number, process: id(), cancel });
        Self(number)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        lock().operations.retain(|known| known.number != self.0);
        FEWER.notify_all();
    }
}

/// Presence of a Python thread in this module. Drop it last, with the GIL held: the thread is then back in Python
/// before any other has the GIL.
pub(crate) struct InsideGuard(u32, ThreadId);

impl InsideGuard {
    /// Notes a thread's presence. `None` if the interpreter exits in another thread, which no longer waits for this
    /// one: the GIL must not be released.
    pub(crate) fn enter() -> Option<Self> {
        let mut running = lock();
        let (process, thread) = (id(), current().id());
        if running.exiting.is_some_and(|exiting| exiting != thread) {
            return None;
        }
        running.inside.push((process, thread));
        Some(Self(process, thread))
    }
}

impl Drop for InsideGuard {
    fn drop(&mut self) {
        let mut running = lock();
        let own = running.inside.iter().rposition(|inside| *inside == (self.0, self.1));
        own.map(|own| running.inside.swap_remove(own));
        FEWER.notify_all();
    }
}

/// Ends all operations. Returns when they have ended and no other thread is in this module. No more begin.
pub(crate) fn end_all() {
    let mut running = lock();
    let (own, exiting) = (id(), current().id());
    running.exiting = Some(exiting);
    running.operations.iter().for_each(|known| known.cancel.cancel());
    let waits = FEWER.wait_while(running, |running| {
        let others = |inside: &(u32, ThreadId)| inside.0 == own && inside.1 != exiting;
        running.operations.iter().any(|known| known.process == own) || running.inside.iter().any(others)
    });
    drop(waits.unwrap_or_else(PoisonError::into_inner));
}
