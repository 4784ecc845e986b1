//! Commands that announce their pid before they begin.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::net::{SendFlags, send};

/// Prevents the signal for a peer that is gone. On other systems the standard library does so for the whole socket.
#[cfg(target_os = "linux")]
const QUIET: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const QUIET: SendFlags = SendFlags::empty();

/// Makes a command send its pid between these words before its program begins, so it never runs unknown to the peer.
pub(crate) fn announce(command: &mut Command, to: UnixStream, [before, after]: [&'static str; 2]) {
    let tell = move || {
        let mut message = [0; 64];
        let mut rest = &mut message[..];
        write!(rest, "{before}{}{after}", std::process::id())?;
        let length = 64 - rest.len();
        // The command's starter notices a missing listener.
        let _ = send(&to, &message[..length], QUIET);
        Ok(())
    };
    // SAFETY: the closure runs in the child, between fork and exec. It writes into an array of its own and makes two system calls; it
    // does not allocate, lock, or touch state of other threads.
    unsafe {
        command.pre_exec(tell);
    }
}
