//! A command line of a test, run to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use calve_testkit::assert_document;
use serde_json::Value;

/// A command line to be run.
pub(crate) struct Run {
    pub(crate) command: Command,
}

impl Run {
    pub(crate) fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command.args(words);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn within(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(crate) fn spawn(mut self) -> Child {
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn ends(mut self) -> RunResult {
        let line = format!("{:?}", self.command);
        RunResult { output: self.command.stdin(Stdio::null()).output().unwrap(), line }
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> RunResult {
        self.ends().code(0)
    }

    /// Fails with that exit code, says all of `words`, and what to do next.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> RunResult {
        let ran = self.ends().code(code);
        let stderr = ran.stderr();
        for word in words {
            assert!(stderr.contains(word), "{} lacks {word:?}: {stderr}", ran.line);
        }
        assert!(stderr.contains("hint: "), "{}: {stderr}", ran.line);
        match ran.line.contains("--json") {
            true => assert_eq!(ran.json()["schema"], "calve.error/1"),
            false => assert_eq!(ran.stdout(), ""),
        }
        ran
    }
}

pub(crate) struct RunResult {
    output: Output,
    line: String,
}

impl RunResult {
    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.output.status.code()
    }

    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        let found = self.output.status.code();
        assert_eq!(found, Some(code), "{}: {}{}", self.line, self.stdout(), self.stderr());
        self
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let document = serde_json::from_str(&self.stdout());
        let document = document.unwrap_or_else(|error| panic!("{}: {error}: {}", self.line, self.stdout()));
        assert_document(&document);
        document
    }
}
