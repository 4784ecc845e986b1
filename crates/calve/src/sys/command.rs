use std::io::{ErrorKind, Read as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;
use signal_hook::{SigId, flag};

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
    let asked = Arc::new(AtomicUsize::new(0));
    let (mut woken, wake) = UnixStream::pair()?;
    let mut listening = Listening(Vec::new());
    for (number, _) in signals.iter().filter(|(number, _)| !interrupt::is_ignored(*number)) {
        let value = usize::try_from(*number).unwrap_or_default();
        listening.0.push(flag::register_usize(*number, Arc::clone(&asked), value)?);
        listening.0.push(pipe::register(*number, wake.try_clone()?)?);
    }
    listening.0.push(pipe::register(SIGCHLD, wake)?);
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let number = asked.swap(0, Ordering::Relaxed);
        if let Some((_, signal)) = signals.iter().find(|(known, _)| usize::try_from(*known) == Ok(number)) {
            // The child has not been reaped, so its pid has not been reused.
            let _ = send(Pid::from_child(&child), *signal);
        }
        match woken.read(&mut [0; 64]) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

struct Listening(Vec<SigId>);

impl Drop for Listening {
    fn drop(&mut self) {
        for id in &self.0 {
            signal_hook::low_level::unregister(*id);
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

pub(crate) struct Answers {
    interrupted: UnixStream,
    /// Signals other than Ctrl-C.
    stopped: UnixStream,
}

impl Answers {
    /// Listens for the signals from now on, before the user sees the first question.
    pub(crate) fn new() -> std::io::Result<Self> {
        let ((interrupted, interrupt), (stopped, stop)) = (UnixStream::pair()?, UnixStream::pair()?);
        for number in STOPPING.into_iter().chain([SIGQUIT]).filter(|number| !interrupt::is_ignored(*number)) {
            pipe::register(number, if number == SIGINT { &interrupt } else { &stop }.try_clone()?)?;
        }
        Ok(Self { interrupted, stopped })
    }

    /// Reads a line. `None` if the user declines (Ctrl-C, Ctrl-D). Fails if the terminal is gone.
    pub(crate) fn line(&self) -> std::io::Result<Option<String>> {
        let (input, mut line) = (std::io::stdin(), Vec::new());
        while !line.contains(&b'\n') {
            let mut sources = [
                PollFd::new(&self.interrupted, PollFlags::IN),
                PollFd::new(&self.stopped, PollFlags::IN),
                PollFd::new(&input, PollFlags::IN),
            ];
            // The second call sees a Ctrl-C that came with the input: poll(2) checks before handlers run.
            match poll(&mut sources, None).and_then(|_| poll(&mut sources, Some(&Timespec::default()))) {
                Err(Errno::INTR) => continue,
                ready => ready?,
            };
            let [interrupted, stopped, read] = sources.map(|source| source.revents());
            if !stopped.is_empty() || read.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(Errno::IO.into());
            }
            if !interrupted.is_empty() {
                return Ok(None);
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
