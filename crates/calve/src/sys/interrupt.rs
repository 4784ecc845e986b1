//! Ctrl-C and similar signals: the first asks to stop and clean up, a second Ctrl-C ends the process at once.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use calve_core::CancelToken;
use signal_hook::consts::SIGINT;
use signal_hook::{SigId, flag};

use crate::sys::STOPPING;

/// The handler for a second Ctrl-C.
static SECOND: Mutex<Option<SigId>> = Mutex::new(None);

/// Disables the second Ctrl-C: it is meant for the running command, which the terminal sends it to as well.
pub(crate) fn is_for_a_command() {
    if let Some(second) = SECOND.lock().unwrap_or_else(PoisonError::into_inner).take() {
        signal_hook::low_level::unregister(second);
    }
}

/// Returns whether this process's starter made it ignore the signal.
pub(crate) fn is_ignored(signal: i32) -> bool {
    static IGNORED: LazyLock<u64> = LazyLock::new(ignored);
    *IGNORED & (1 << (signal - 1)) != 0
}

/// Listens for stopping signals, and returns the token that they cancel. A second Ctrl-C exits with `code`.
pub(crate) fn listen(code: u8) -> io::Result<CancelToken> {
    // Only a repeated Ctrl-C ends the process. Other signals come twice at once: `timeout` signals the process and then
    // its group, and both the kernel and the shell report a lost terminal. The second must not prevent cleaning up. A
    // Ctrl-C counts only an earlier one, because the kernel runs two pending signals' handlers in reverse order.
    if !is_ignored(SIGINT) {
        let pressed = Arc::new(AtomicBool::new(false));
        // Register in this order: the first Ctrl-C finds the flag off, and only then sets it.
        let second = flag::register_conditional_shutdown(SIGINT, i32::from(code), Arc::clone(&pressed))?;
        *SECOND.lock().unwrap_or_else(PoisonError::into_inner) = Some(second);
        flag::register(SIGINT, pressed)?;
    }
    listen_again()
}

/// Returns a token set by each signal that this process's starter did not ignore: `nohup` ignores hangups, and shells
/// ignore Ctrl-C for background jobs. A new token forgets earlier signals, perhaps meant for a command that has ended.
pub(crate) fn listen_again() -> io::Result<CancelToken> {
    let thrown = Arc::new(AtomicBool::new(false));
    for signal in STOPPING.into_iter().filter(|signal| !is_ignored(*signal)) {
        flag::register(signal, Arc::clone(&thrown))?;
    }
    Ok(CancelToken::from_flag(thrown))
}

/// Returns a bit mask of the ignored signals. Reading `/proc` changes none; without `/proc`, none counts as ignored.
fn ignored() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    field.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}
