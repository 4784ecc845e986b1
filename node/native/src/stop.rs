//! Ending work, and the question that it asks the event loop before it publishes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use calve_core::CancelToken;

/// Switch that ends work early, shared by its clones.
#[derive(Clone, Default)]
pub(crate) struct StopSwitch {
    cancel: CancelToken,
    answer: Arc<Answer>,
}

#[derive(Default)]
struct Answer {
    go_on: Mutex<bool>,
    given: Condvar,
}

impl Answer {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.go_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StopSwitch {
    pub(crate) fn token(&self) -> CancelToken {
        self.cancel.clone()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Ends the work, also while it waits for an answer.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
        // Under the lock: a thread that has just looked at the token is waiting by now.
        let _answer = self.answer.lock();
        self.answer.given.notify_all();
    }

    pub(crate) fn go_on(&self) {
        *self.answer.lock() = true;
        self.answer.given.notify_all();
    }

    /// Waits for [`StopSwitch::go_on`] or [`StopSwitch::cancel`].
    pub(crate) fn wait(&self) {
        let answer = self.answer.lock();
        let waits = |go_on: &mut bool| !*go_on && !self.is_cancelled();
        let _answer = self.answer.given.wait_while(answer, waits).unwrap_or_else(PoisonError::into_inner);
    }
}
