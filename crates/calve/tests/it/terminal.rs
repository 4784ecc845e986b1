//! A terminal for a program, with a test at its keys.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::program::carry_environment;

/// A program on a terminal of its own, and what has come out of it.
pub(crate) struct Terminal {
    child: Child,
    /// The other end of the terminal.
    side: File,
    seen: String,
}

impl Terminal {
    /// `setsid` gives the program the terminal as its own, so that keys are signals.
    pub(crate) fn new(program: &Command) -> Self {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
        // A key that is a signal throws away bytes on their way in both directions, which may come from a program that was quick to answer.
        let mut modes = tcgetattr(&terminal).unwrap();
        modes.local_modes |= LocalModes::NOFLSH;
        tcsetattr(&terminal, OptionalActions::Now, &modes).unwrap();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program.get_program()).args(program.get_args());
        carry_environment(program, &mut command);
        let end = || Stdio::from(terminal.try_clone().unwrap());
        let child = command.env("TERM", "dumb").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { child, side: side.into(), seen: String::new() }
    }

    /// Reads what has come out. Whether there will be more.
    fn read(&mut self) -> bool {
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut sides = [PollFd::new(&self.side, PollFlags::IN)];
        let ready = rustix::io::retry_on_intr(|| poll(&mut sides, Some(&limit))).unwrap();
        assert_eq!(ready, 1, "nothing comes after {}", self.seen);
        let mut part = [0; 4096];
        // Once no process has the terminal open any more, this fails with EIO.
        let Ok(length @ 1..) = self.side.read(&mut part) else { return false };
        self.seen += &String::from_utf8_lossy(&part[..length]);
        true
    }

    /// Types `keys` when `text` has come out. Returns what came out until then, and forgets it.
    #[track_caller]
    pub(crate) fn after(&mut self, text: &str, keys: &str) -> String {
        let end = loop {
            if let Some(at) = self.seen.find(text) {
                break at + text.len();
            }
            assert!(self.read(), "there is no `{text}` in {}", self.seen);
        };
        let until_then = self.seen.drain(..end).collect();
        self.side.write_all(keys.as_bytes()).unwrap();
        until_then
    }

    /// Takes the terminal away. Returns the exit code.
    pub(crate) fn hang_up(self) -> Option<i32> {
        let Self { mut child, side, .. } = self;
        drop(side);
        child.wait().unwrap().code()
    }

    /// Returns the exit code, and what came out at last.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.seen)
    }
}
