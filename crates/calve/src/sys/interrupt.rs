//! Ctrl-C and its kin: the first asks to stop and clean up, a second Ctrl-C ends the process where it is.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use calve_core::CancelToken;
use signal_hook::consts::SIGINT;
use signal_hook::{SigId, flag};

use crate::sys::STOPPING;

/// The effect of a second Ctrl-C.
static SECOND: Mutex<Option<SigId>> = Mutex::new(None);

/// Makes a second Ctrl-C do no more than the first: it is meant for a command that this process runs, which the terminal sends it to as well.
pub(crate) fn is_for_a_command() {
    if let Some(second) = SECOND.lock().unwrap_or_else(PoisonError::into_inner).take() {
        signal_hook::low_level::unregister(second);
    }
}

/// Returns whether whoever started this wants it to go on in spite of that signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    static IGNORED: LazyLock<u64> = LazyLock::new(ignored);
    *IGNORED & (1 << (signal - 1)) != 0
}

/// Listens for the signals that stop the program, and returns the token that they cancel. A second Ctrl-C ends it with the exit code `code`.
pub(crate) fn listen(code: u8) -> io::Result<CancelToken> {
    // Only what a person repeats. `timeout` sends its signal to the process and then to the group that it is in, and the end of a
    // terminal is told by the kernel and by the shell: two signals at once, of which the second must not keep it from cleaning up.
    // So a Ctrl-C counts no other signal than the one before: of two that wait, the kernel has the handlers run in reverse order.
    if !is_ignored(SIGINT) {
        let pressed = Arc::new(AtomicBool::new(false));
        // In this order: the first finds it off, and only turns it on.
        let second = flag::register_conditional_shutdown(SIGINT, i32::from(code), Arc::clone(&pressed))?;
        *SECOND.lock().unwrap_or_else(PoisonError::into_inner) = Some(second);
        flag::register(SIGINT, pressed)?;
    }
    listen_again()
}

/// Returns a token that each signal sets which the starter of this process has not ignored: `nohup` ignores hangups, and a shell those Ctrl-C
/// that are not for its jobs. Called again after a command has ended, it forgets earlier signals, which may have been meant for that.
pub(crate) fn listen_again() -> io::Result<CancelToken> {
    let thrown = Arc::new(AtomicBool::new(false));
    for signal in STOPPING.into_iter().filter(|signal| !is_ignored(*signal)) {
        flag::register(signal, Arc::clone(&thrown))?;
    }
    Ok(CancelToken::from_flag(thrown))
}

/// Returns a bit mask of the ignored signals. `/proc` shows them without changing anything. Without `/proc`, none counts as ignored.
fn ignored() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    field.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}
