//! Calls for which PyO3 has no safe form.

use pyo3::{Python, ffi};

/// Returns true in the process's first interpreter.
pub(crate) fn is_main_interpreter(_attached: Python<'_>) -> bool {
    // SAFETY: this thread is attached to an interpreter, which is what the first call answers; its state is there as long as the thread
    // is attached to it.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}
