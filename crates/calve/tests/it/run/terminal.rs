//! `calve run` on a terminal: the question afterwards, and job control.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use calve_testkit::fingerprint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::{left, place, run};
use crate::program::{Calve, PROGRAM, carry_environment};
use crate::spot::Spot;

const QUESTION: &str = "[a/k/d/n]";

/// A program on a terminal of its own, and what has come out of it.
struct Terminal {
    child: Child,
    /// The other end of the terminal.
    side: File,
    seen: String,
}

impl Terminal {
    /// `setsid` gives the program the terminal as its own, so that keys are signals.
    fn new(program: &Command) -> Self {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&side).unwrap();
        unlockpt(&side).unwrap();
        let name = ptsname(&side, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = File::from(rustix::fs::open(&*name, flags, Mode::empty()).unwrap());
        // A key that is a signal throws away what is on its way in both directions, which may come from a program that was quick to answer.
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
        let ready = poll(&mut [PollFd::new(&self.side, PollFlags::IN)], Some(&limit)).unwrap();
        assert_eq!(ready, 1, "nothing comes after {}", self.seen);
        let mut part = [0; 4096];
        // Once nobody has the terminal open any more, this fails with EIO.
        let Ok(length @ 1..) = self.side.read(&mut part) else { return false };
        self.seen += &String::from_utf8_lossy(&part[..length]);
        true
    }

    /// Types `keys` when `text` has come out, and forgets what came before it.
    #[track_caller]
    fn after(&mut self, text: &str, keys: &str) {
        let end = loop {
            if let Some(at) = self.seen.find(text) {
                break at + text.len();
            }
            assert!(self.read(), "there is no `{text}` in {}", self.seen);
        };
        self.seen.drain(..end);
        self.side.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the exit code, and what came out at last.
    fn end(mut self) -> (Option<i32>, String) {
        while self.read() {}
        (self.child.wait().unwrap().code(), self.seen)
    }
}

fn on_a_terminal(calve: Calve) -> Terminal {
    Terminal::new(&calve.command())
}

#[test]
fn the_user_is_asked_and_without_an_answer_the_changes_are_dropped() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let before = fingerprint(spot.join("tree"));
    // "No", Ctrl-D, Ctrl-C, and before it an Enter that was meant for the command, or what is no answer.
    for keys in ["n\n", "\x04", "\x03", "\nn\n", "x\nN\n", "half\x03"] {
        let mut terminal = on_a_terminal(run(&spot, &[], "echo > new; rm b; exit 5"));
        terminal.after(QUESTION, keys);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(5), "{keys:?}: {seen}");
        assert!(seen.contains("discarded"), "{keys:?}: {seen}");
        before.assert_unchanged(spot.join("tree"));
    }
    assert_eq!(left(&spot), [""; 0]);
    // Nothing to ask about, or nothing to ask.
    for (options, script) in [(&[][..], "true"), (&["--discard"], "echo > new"), (&["-q"], "echo > new")] {
        let (code, seen) = on_a_terminal(run(&spot, options, script)).end();
        assert!(code == Some(0) && !seen.contains(QUESTION), "{seen}");
    }
    spot.holds(&["home", "tree"]);
}

#[test]
fn the_answers_apply_keep_and_show() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let mut terminal = on_a_terminal(run(&spot, &[], "echo 2 > a"));
    terminal.after("1 file changed", "");
    terminal.after(QUESTION, "d\n");
    terminal.after("+2", "");
    terminal.after(QUESTION, "k\n");
    // One that is there already, then a new one.
    terminal.after("keep it at:", "../home\n");
    terminal.after(QUESTION, "k\n");
    terminal.after("keep it at:", "../kept\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("kept in `"), "{seen}");
    let read = |path: &str| fs_err::read_to_string(spot.join(path)).unwrap();
    assert_eq!([read("kept/a"), read("tree/a")], ["2\n", "a"]);
    // The user may apply what a command has left that failed.
    let mut terminal = on_a_terminal(run(&spot, &[], "echo 3 > a; exit 4"));
    terminal.after(QUESTION, "a\n");
    assert_eq!(terminal.end().0, Some(4));
    assert_eq!(read("tree/a"), "3\n");
    assert_eq!(left(&spot), [""; 0]);
    spot.holds(&["home", "kept", "tree"]);
}

#[test]
fn a_command_that_is_interrupted_loses_nothing() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let script = "trap 'exit 5' INT; echo > new; echo ready; while :; do sleep 0.1; done";
    let mut terminal = on_a_terminal(run(&spot, &[], script));
    terminal.after("ready", "\x03");
    terminal.after(QUESTION, "a\n");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(5), "{seen}");
    assert!(spot.join("tree/new").exists());
}

#[test]
fn it_stops_and_goes_on_as_a_job_of_the_shell() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    let mut command = Command::new("sh");
    command.arg("-i").env("CALVE_HOME", spot.join("home")).env_remove("ENV").current_dir(spot.join("tree"));
    let mut shell = Terminal::new(&command);
    // It does not read from the terminal: one key of the shell's could get to it before it has stopped.
    let script = "echo > new; echo re''ady; while test ! -e ../go; do sleep 0.05; done; echo \"got it\"";
    shell.after("", &format!("{PROGRAM} run --discard -- sh -c '{}'\n", script.replace('\'', "'\\''")));
    shell.after("ready", "\x1a");
    // So that what comes is no more than what `fg` says: the command, which goes on.
    shell.after("Stopped", "echo as''ide\n");
    shell.after("aside", "fg\n");
    shell.after("calve", "");
    fs_err::write(spot.join("go"), "").unwrap();
    shell.after("got it", "");
    shell.after("1 new", "exit\n");
    assert_eq!(shell.end().0, Some(0));
    assert!(!spot.join("tree/new").exists());
    assert_eq!(left(&spot), [""; 0]);
}
