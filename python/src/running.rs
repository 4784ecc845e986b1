//! What is running in this process, so that it can be ended when the interpreter is.

use std::process::id;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{ThreadId, current};

use calve_core::Cancel;

struct Running {
    next: u64,
    operations: Vec<Known>,
    /// The thread in which the interpreter exits. It waits for what it does itself, and for nobody else.
    exiting: Option<ThreadId>,
}

/// A child that was forked has the list, and none of the threads.
struct Known {
    number: u64,
    process: u32,
    cancel: Cancel,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { next: 0, operations: Vec::new(), exiting: None });
static FEWER: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One operation, until it is dropped.
pub(crate) struct Operation(u64);

impl Operation {
    pub(crate) fn begin(cancel: Cancel) -> Self {
        let mut running = lock();
        running.next += 1;
        let number = running.next;
        if running.exiting.is_some_and(|exiting| exiting != current().id()) {
            cancel.cancel();
        }
        running.operations.push(Known { number, process: id(), cancel });
        Self(number)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        lock().operations.retain(|known| known.number != self.0);
        FEWER.notify_all();
    }
}

/// Ends all of them, and returns when they have ended. Other threads than this one begin no more.
pub(crate) fn end_all() {
    let mut running = lock();
    running.exiting = Some(current().id());
    running.operations.iter().for_each(|known| known.cancel.cancel());
    let own = id();
    let waits = FEWER.wait_while(running, |running| running.operations.iter().any(|known| known.process == own));
    drop(waits.unwrap_or_else(PoisonError::into_inner));
}
