//! `calve run` on a terminal: the question afterwards, and job control.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use calve_testkit::{fingerprint, require_program};

use super::{left, place, run};
use crate::program::{Calve, PROGRAM};
use crate::spot::Spot;

const QUESTION: &str = "[a/k/d/N]";

/// A terminal as `script` makes one, and what has come out of it.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    seen: String,
}

impl Terminal {
    fn new(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keys, screen, seen: String::new() }
    }

    /// Types `keys` when `text` has come out, and forgets what came before it.
    #[track_caller]
    fn after(&mut self, text: &str, keys: &str) {
        let mut part = [0; 4096];
        let end = loop {
            if let Some(at) = self.seen.find(text) {
                break at + text.len();
            }
            let length = self.screen.read(&mut part).unwrap();
            assert!(length > 0, "there is no `{text}` in {}", self.seen);
            self.seen += &String::from_utf8_lossy(&part[..length]);
        };
        self.seen.drain(..end);
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the exit code, and what came out at last.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), self.seen + &String::from_utf8_lossy(&rest))
    }
}

fn on_a_terminal(calve: Calve) -> Terminal {
    Terminal::new(calve.on_a_terminal().command())
}

#[test]
fn the_user_is_asked_and_the_changes_are_dropped_by_default() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    if !require_program("script") {
        return;
    }
    let before = fingerprint(spot.join("tree"));
    // Enter, "no", Ctrl-D, Ctrl-C, and what is no answer.
    for keys in ["\n", "n\n", "\x04", "\x03", "x\nN\n", "half\x03"] {
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
    if !require_program("script") {
        return;
    }
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
fn it_stops_and_goes_on_as_a_job_of_the_shell() {
    let Some(spot) = place(Spot::anywhere()) else { return };
    if !require_program("script") {
        return;
    }
    let mut command = Command::new("script");
    command.args(["-qec", "sh -i", "/dev/null"]).current_dir(spot.join("tree"));
    command.env("CALVE_HOME", spot.join("home")).env("TERM", "dumb").env_remove("ENV");
    let mut shell = Terminal::new(command);
    let script = "echo > new; echo re''ady; read line; echo \"got $line\"; ls";
    shell.after("", &format!("{PROGRAM} run --discard -- sh -c '{}'\n", script.replace('\'', "'\\''")));
    shell.after("ready", "\x1a");
    shell.after("Stopped", "");
    shell.keys.write_all(b"fg\n").unwrap();
    shell.keys.write_all(b"it\n").unwrap();
    shell.after("got it", "");
    shell.after("1 new", "exit\n");
    assert_eq!(shell.end().0, Some(0));
    assert!(!spot.join("tree/new").exists());
    assert_eq!(left(&spot), [""; 0]);
}
