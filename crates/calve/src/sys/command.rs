use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::{STOPPING, interrupt};

/// Signals that may reach this process alone. The terminal's signals also reach the command.
const PASSED_ON: [(i32, Signal); 2] = [(SIGTERM, Signal::TERM), (SIGHUP, Signal::HUP)];

/// Runs a command, forwarding SIGTERM and SIGHUP. Ctrl-C and `Ctrl-\` are its own: `psql` and `java` go on after them.
pub(crate) fn run_command(command: &mut Command) -> std::io::Result<ExitStatus> {
    interrupt::is_for_a_command();
    if !interrupt::is_ignored(SIGQUIT) {
        // Handle it, because the command would inherit an ignored signal.
        flag::register(SIGQUIT, Arc::default())?;
    }
    forwarding(command, &PASSED_ON, kill_process)
}

/// Runs a hook, and forwards signals that reach only this process: without a terminal all, to descendants too.
pub(crate) fn run_hook(command: &mut Command) -> std::io::Result<ExitStatus> {
    // In its own process group, a hook could not read from the terminal.
    let has_terminal =
        fs_err::File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()));
    if has_terminal {
        return forwarding(command, &PASSED_ON, kill_process);
    }
    let all = [PASSED_ON[0], PASSED_ON[1], (SIGINT, Signal::INT)];
    forwarding(command.process_group(0), &all, kill_process_group)
}

fn forwarding(
    command: &mut Command,
    signals: &[(i32, Signal)],
    send: fn(Pid, Signal) -> rustix::io::Result<()>,
) -> std::io::Result<ExitStatus> {
    let heard = signals.iter().map(|(number, _)| *number).filter(|number| !interrupt::is_ignored(*number));
    let mut arrived = Signals::new(heard.chain([SIGCHLD]))?;
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for number in arrived.wait() {
            if let Some((_, signal)) = signals.iter().find(|(known, _)| *known == number) {
                // The child has not been reaped, so its pid has not been reused.
                let _ = send(Pid::from_child(&child), *signal);
            }
        }
    }
}

/// The terminal's settings. A killed command leaves its own behind, perhaps without line editing and Ctrl-C.
pub(crate) struct TerminalModes(Termios);

impl TerminalModes {
    /// Reads the settings. `None` if standard input is not a terminal.
    pub(crate) fn current() -> Option<Self> {
        tcgetattr(std::io::stdin()).ok().map(Self)
    }

    /// Restores the settings. A missing terminal is no error.
    pub(crate) fn restore(&self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// The user's answers on standard input, and the signals that come meanwhile.
pub(crate) struct Answers(SignalDelivery<UnixStream, SignalOnly>);

impl Answers {
    /// Listens for the signals from now on, before the user sees the first question.
    pub(crate) fn new() -> std::io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let heard = STOPPING.into_iter().chain([SIGQUIT]).filter(|number| !interrupt::is_ignored(*number));
        Ok(Self(SignalDelivery::with_pipe(read, write, SignalOnly, heard)?))
    }

    /// Reads a line. `None` if the user declines (Ctrl-C, Ctrl-D). Fails if the terminal is gone.
    pub(crate) fn line(&mut self) -> std::io::Result<Option<String>> {
        let (input, mut line) = (std::io::stdin(), Vec::new());
        while !line.contains(&b'\n') {
            let mut sources = [PollFd::new(self.0.get_read(), PollFlags::IN), PollFd::new(&input, PollFlags::IN)];
            match poll(&mut sources, None) {
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            let read = sources[1].revents();
            // Also sees a Ctrl-C that came with the input: its handler runs before poll(2) returns.
            let signals: Vec<i32> = self.0.pending().collect();
            if signals.iter().any(|number| *number != SIGINT) || read.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(Errno::IO.into());
            }
            if !signals.is_empty() {
                return Ok(None);
            }
            if read.is_empty() {
                continue;
            }
            let mut part = [0; 4096];
            match rustix::io::read(&input, &mut part) {
                Err(Errno::INTR) => {}
                Ok(0) => return Ok(None),
                Ok(length) => line.extend_from_slice(&part[..length]),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

/// Replaces this process by the command. Returns only on failure, with the reason.
pub(crate) fn become_command(command: &mut Command) -> std::io::Error {
    command.exec()
}
