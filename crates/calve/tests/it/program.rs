//! One run of `calve`, and assertions about it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Once};

use calve_testkit::{UnprivilegedUser, assert_document, copy_program, require_root};
use rustix::process::Signal;
use serde_json::Value;

/// The program of this build.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_calve");

/// Keeps the user's own state from influencing a test.
const NO_HOME: &str = "/nonexistent/calve";

/// A command line of `calve`.
pub(crate) struct Calve {
    command: Command,
}

pub(crate) fn cp() -> Calve {
    calve(["cp"])
}

pub(crate) fn rm() -> Calve {
    calve(["rm"])
}

pub(crate) fn probe() -> Calve {
    calve(["probe"])
}

pub(crate) fn calve<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Calve {
    signals_as_usual();
    let mut command = Command::new(PROGRAM);
    // Cargo's own libraries, of which the program needs none: the loader would look for each in every directory.
    command.args(args).env_remove("LD_LIBRARY_PATH");
    command.env("CALVE_HOME", NO_HOME);
    // Nor the user's configuration of git.
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    Calve { command }
}

/// Who starts the tests in the background, or by nohup, has signals ignored, which the program would inherit and leave so. What a
/// process handles itself, its children find as usual.
fn signals_as_usual() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
        let field = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = field.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            if ignored & (1 << (signal.as_raw() - 1)) != 0 {
                signal_hook::flag::register(signal.as_raw(), Arc::default()).unwrap();
            }
        }
    });
}

impl Calve {
    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Runs in the directory `dir`.
    pub(crate) fn within(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// The same command line, run by the shell after `before` (`"ulimit -n 64;"`), with `redirections` (`"2>&-"`).
    pub(crate) fn in_shell(self, before: &str, redirections: &str) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before} exec \"$0\" \"$@\" {redirections}")).arg(self.command.get_program());
        Self { command: carry_over(&self.command, command) }
    }

    /// The same command line, run by another program, whose own command line is `words`.
    pub(crate) fn under(self, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(self.command.get_program());
        Self { command: carry_over(&self.command, command) }
    }

    /// The same command line, run by a user who owns nothing. The program is taken from where he can reach it.
    pub(crate) fn by_somebody_else(self, reachable: &Reachable) -> Self {
        let command = UnprivilegedUser::command(reachable.program());
        Self { command: carry_over(&self.command, command) }
    }

    /// The same command line on a terminal of its own, as `script` makes one. Everything comes out on stdout.
    pub(crate) fn on_a_terminal(self) -> Self {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        let line = words.map(quoted).collect::<Vec<_>>().join(OsStr::new(" "));
        let mut command = Command::new("script");
        command.args(["-qec".as_ref(), line.as_os_str(), "/dev/null".as_ref()]).env("TERM", "xterm");
        carry_environment(&self.command, &mut command);
        Self { command }
    }

    pub(crate) fn command(self) -> Command {
        self.command
    }

    /// Starts it, with its output kept for [`RunningProgram::wait`].
    pub(crate) fn start(mut self) -> RunningProgram {
        let line = format!("{:?}", self.command);
        let piped = self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        RunningProgram { child: piped.spawn().unwrap(), line }
    }

    pub(crate) fn run(self) -> RunResult {
        self.start().wait()
    }

    /// Runs it and expects this exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> RunResult {
        self.start().ends(code)
    }

    /// Runs it and expects success.
    #[track_caller]
    pub(crate) fn succeeds(self) -> RunResult {
        self.ends(0)
    }

    /// Runs it and expects exit code `code`, an error on stderr, and nothing on stdout but a document with `--json`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> RunResult {
        let wants_json = self.command.get_args().any(|argument| argument == "--json");
        let ran = self.ends(code);
        assert!(
            ran.stdout.is_empty() || wants_json,
            "{} printed on stdout although it failed: {}",
            ran.line,
            ran.stdout
        );
        assert!(ran.stderr.contains("error: "), "{}: no error is printed: {}", ran.line, ran.stderr);
        ran
    }
}

fn carry_over(from: &Command, mut to: Command) -> Command {
    to.args(from.get_args());
    carry_environment(from, &mut to);
    to
}

pub(crate) fn carry_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
    if let Some(dir) = from.get_current_dir() {
        to.current_dir(dir);
    }
}

/// For the shell.
fn quoted(word: &OsStr) -> OsString {
    let mut quoted = OsString::from("'");
    quoted.push(word);
    quoted.push("'");
    quoted
}

/// A run that has not ended.
pub(crate) struct RunningProgram {
    child: Child,
    line: String,
}

impl RunningProgram {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for it and expects this exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> RunResult {
        let ran = self.wait();
        ran.ended(code);
        ran
    }

    pub(crate) fn wait(self) -> RunResult {
        let output = self.child.wait_with_output().unwrap();
        RunResult {
            status: output.status,
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            line: self.line,
        }
    }
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    line: String,
}

impl RunResult {
    #[track_caller]
    pub(crate) fn ended(&self, code: i32) {
        let Self { status, stdout, stderr, line } = self;
        assert_eq!(status.code(), Some(code), "{line} ended with {status}\nstdout: {stdout}\nstderr: {stderr}");
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(9)
    }

    /// Expects each of `words` on stderr.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "{}: stderr lacks {word:?}: {}", self.line, self.stderr);
        }
        self
    }

    /// Expects a hint, with no option that the command lacks.
    #[track_caller]
    pub(crate) fn hints(self) -> Self {
        let hint = self.stderr.lines().find_map(|line| line.strip_prefix("hint: ").filter(|hint| !hint.is_empty()));
        let Some(hint) = hint else { panic!("{}: no hint: {}", self.line, self.stderr) };
        let quoted = hint
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|text| text.starts_with('-') && !text.trim_matches('-').is_empty());
        let mut options = quoted.filter_map(|text| text.split([' ', '=']).next()).peekable();
        if options.peek().is_some() {
            let help = self.help();
            let has = |option: &str| help.split([' ', ',', '\n', '[', '=']).any(|word| word == option);
            options.for_each(|option| assert!(has(option), "{}: it has no {option}: {hint}", self.line));
        }
        self
    }

    /// The help of the command that ran.
    fn help(&self) -> String {
        let is_program = |word: &str| word.ends_with("/calve") && word != NO_HOME;
        let words = self.line.split('"').skip(1).step_by(2).skip_while(|word| !is_program(word));
        let words: Vec<_> = words.skip(1).take_while(|word| !word.starts_with(['-', '/', '.'])).take(3).collect();
        let help = |words: &[&str]| Command::new(PROGRAM).args(words).arg("-h").output().unwrap();
        let helps = (1..=words.len()).rev().map(|count| help(&words[..count]));
        let printed = helps.map(|output| output.stdout).find(|stdout| !stdout.is_empty());
        String::from_utf8(printed.unwrap_or_default()).unwrap()
    }

    /// The one JSON document that is all of stdout, which is as its published schema says.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(document) => {
                assert_document(&document);
                document
            }
            Err(error) => panic!("{}: stdout is no JSON document: {error}\n{}", self.line, self.stdout),
        }
    }
}

/// The keys of a JSON object, sorted.
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    let mut keys = keys_in_order(object);
    keys.sort_unstable();
    keys
}

/// The keys of a JSON object, in the order in which they were printed.
pub(crate) fn keys_in_order(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The program at a place that every user can reach.
pub(crate) struct Reachable {
    program: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Reachable {
    /// For [`Calve::by_somebody_else`]. `None` is a skip.
    #[track_caller]
    pub(crate) fn for_somebody_else() -> Option<Self> {
        require_root("another user").then(Self::new)
    }

    pub(crate) fn new() -> Self {
        let built = Path::new(PROGRAM);
        if built.ancestors().all(may_be_searched_by_all) {
            return Self { program: built.into(), _folder: None };
        }
        let folder = tempfile::tempdir().unwrap();
        rustix::fs::chmod(folder.path(), 0o755.into()).unwrap();
        let program = folder.path().join("calve");
        copy_program(built, &program);
        Self { program, _folder: Some(folder) }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

fn may_be_searched_by_all(path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| stat.st_mode & 0o001 != 0)
}
