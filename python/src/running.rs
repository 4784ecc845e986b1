//! What is running in this process, so that it can be ended when the interpreter is, and who waits for it with the GIL released.

use std::process::id;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use calve_core::CancelToken;

struct RunningOperations {
    next: u64,
    operations: Vec<RunningOperation>,
    /// Threads of Python's that are in this module and may release the GIL there.
    inside: Vec<(u32, ThreadId)>,
    /// The thread in which the interpreter exits. It waits for what it does itself, and for nobody else.
    exiting: Option<ThreadId>,
}

/// A child that was forked has the list, and none of the threads.
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

/// The presence of a thread of Python's in this module. It is to be dropped with the GIL held, last: then the thread is back in Python
/// before any other has the GIL.
pub(crate) struct InsideGuard(u32, ThreadId);

impl InsideGuard {
    /// Notes that a thread of Python's is inside. `None` where the interpreter exits in another thread, which does not wait for this one
    /// any more: the GIL must not be released.
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

/// Ends all of them, and returns when they have ended and no other thread is in this module. Others begin no more.
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
