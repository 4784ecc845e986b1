//! A program in Python that works beside a test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A command that runs `program`. Debian's packages are for Debian's Python, which need not be the first in PATH.
pub fn python(program: &str) -> Command {
    let name = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    let mut command = Command::new(name);
    command.args(["-c", program]);
    command
}

/// A running program that reads and writes lines. It is killed when dropped.
pub struct Script {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Script {
    pub fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Self { process, input, output }
    }

    /// Tells the program a line.
    pub fn tell(&mut self, line: &[u8]) {
        self.input.as_mut().unwrap().write_all(&[line, b"\n"].concat()).unwrap();
    }

    /// Waits for the next line of the program, which has to be `expected`.
    #[track_caller]
    pub fn wait_for(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    /// Ends the program's input and waits for it, which has to succeed.
    #[track_caller]
    pub fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
