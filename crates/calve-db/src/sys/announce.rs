//! A command that tells its process number before it begins.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::net::{SendFlags, send};

/// A process that is gone sends no signal. Other systems are told so for the whole socket, by the standard library.
#[cfg(target_os = "linux")]
const QUIET: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const QUIET: SendFlags = SendFlags::empty();

/// Makes a command send its process number on a socket, between these words, before its program begins. So there is no moment in which the
/// program runs and the other end does not know it.
pub(crate) fn announce(command: &mut Command, to: UnixStream, [before, after]: [&'static str; 2]) {
    let tell = move || {
        let mut message = [0; 64];
        let mut rest = &mut message[..];
        write!(rest, "{before}{}{after}", std::process::id())?;
        let length = 64 - rest.len();
        // A missing listener is noticed by the process that starts the command.
        let _ = send(&to, &message[..length], QUIET);
        Ok(())
    };
    // SAFETY: the closure runs in the child, between fork and exec. It writes into an array of its own and makes two system calls; it
    // does not allocate, lock, or touch state of other threads.
    unsafe {
        command.pre_exec(tell);
    }
}
