//! Runs git through a transfer: its output is heard, it can be stopped, and other users cannot see its credentials.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use calve_core::CancelToken;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use crate::error::Error;
use crate::git::Git;
use crate::nesting::Nesting;
use crate::remote::clone::purpose::Purpose;
use crate::remote::clone::recipe::Step;
use crate::remote::error::RemoteError;
use crate::remote::prompts::Prompts;
use crate::remote::traffic::Traces;
use crate::remote::url::{Credentials, RepositoryUrl};
use crate::transfer_failure::{ENDLESS, GitError, TransferFailure};

/// Hears each piece of text that git prints for people, as it comes, without control characters.
pub type Listener<'l> = &'l dyn Fn(&str);

pub(crate) struct Session<'s> {
    pub(crate) url: &'s RepositoryUrl,
    /// The purpose of the clone that is made; `None` in an existing one.
    pub(crate) makes: Option<Purpose>,
    pub(crate) prompts: Prompts,
    pub(crate) cancel: &'s CancelToken,
    pub(crate) listener: Listener<'s>,
    pub(crate) traces: &'s Traces,
}

/// Settings of a clone: no maintenance, which would go on in a repository that gets another name. Objects stay in the
/// pack that they came in, whose size counts as received.
const OF_A_CLONE: [&str; 6] = ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "fetch.unpackLimit=1"];

/// Passes git's credentials by the environment, which only this user can read; all users can read arguments.
const HELPER: &str = "!f() { test \"$1\" = get || exit 0; printf 'username=%s\\n' \"$CALVE_GIT_USERNAME\"; \
    test -z \"${CALVE_GIT_PASSWORD+x}\" || printf 'password=%s\\n' \"$CALVE_GIT_PASSWORD\"; }; f";

/// Between the first signal and the one that cannot be caught.
const GRACE: Duration = Duration::from_secs(3);

impl Session<'_> {
    /// Runs one step to its end. Returns its text on stderr if it succeeds.
    pub(crate) fn run(&self, step: &Step, directory: &Path) -> Result<String, RemoteError> {
        if self.cancel.is_cancelled() {
            return Err(RemoteError::Interrupted);
        }
        let (mut command, mut nesting) = self.command(directory)?;
        // Without a terminal, git shows progress only on request, and without progress it counts no bytes.
        let (name, rest) = step.arguments.split_at(1);
        command.args(name).args((name == ["clone"] || name == ["fetch"]).then_some("--progress")).args(rest);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).stdin(Stdio::piped());
        let spawned = command.spawn();
        let mut child = GitProcess { child: spawned.map_err(Error::start(directory))?, prompts: self.prompts };
        if let Some(mut stdin) = child.child.stdin.take() {
            // If git ends before it has read everything, its exit code says why.
            let _ = stdin.write_all(&step.input);
        }
        let pieces = read_pieces(child.child.stderr.take());
        let mut said = Transcript::default();
        let status = loop {
            match pieces.recv_timeout(PAUSE) {
                Ok(piece) => self.hear(&piece, &mut said),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::sleep(PAUSE),
            }
            if self.cancel.is_cancelled() {
                return Err(RemoteError::Interrupted);
            }
            if let Some(status) = child.child.try_wait()? {
                break status;
            }
            if nesting.is_endless()? {
                nesting.end(&[Pid::from_child(&child.child), getpgrp()])?;
                let (what, trouble, said) = (step.name(), TransferFailure::SourceShallow, ENDLESS.to_owned());
                return Err(RemoteError::Git { what, trouble, said });
            }
        };
        // A process that git started, such as a shared ssh connection, may outlive it and keep the pipe open.
        let deadline = Instant::now() + Duration::from_millis(500);
        while let Ok(piece) = pieces.recv_timeout(deadline - Instant::now()) {
            self.hear(&piece, &mut said);
        }
        match status.success() {
            true => Ok(said.text()),
            // Ctrl-C on a terminal has reached git too.
            false if self.cancel.is_cancelled() => Err(RemoteError::Interrupted),
            false => Err(self.failure(step, &said, nesting.errors()?)),
        }
    }

    fn hear(&self, piece: &str, said: &mut Transcript) {
        // git indents commands for the user with tabs.
        let piece = piece.replace('\t', "    ");
        let clean = self.url.censored(&calve_core::internal::ShownPath(Path::new(&piece)).to_string());
        (self.listener)(&clean);
        said.add(&clean);
    }

    /// Returns a command to add arguments to. Its own arguments hold no secret.
    fn command(&self, directory: &Path) -> Result<(Command, Nesting), Error> {
        let (mut command, nesting) = Git::at(directory).fetching(&self.traces.events())?;
        command.args(["-c", "clone.defaultRemoteName=origin"]);
        if self.makes.is_some() {
            command.args(OF_A_CLONE);
        }
        self.traces.apply(&mut command);
        match self.prompts {
            Prompts::OnTerminal => command.env("GIT_TERMINAL_PROMPT", "1"),
            Prompts::Never => command.process_group(0),
        };
        let credentials = self.url.credentials.as_ref().filter(|_| self.makes.is_some());
        if let Some(Credentials { username, password }) = credentials {
            if password.is_some() {
                // The user's own helpers would store credentials that work.
                command.args(["-c", "credential.helper="]);
            }
            let helper: OsString = format!("credential.{}.helper={HELPER}", self.url.origin).into();
            command.arg("-c").arg(helper).env("CALVE_GIT_USERNAME", username);
            match password {
                Some(password) => command.env("CALVE_GIT_PASSWORD", password),
                None => command.env_remove("CALVE_GIT_PASSWORD"),
            };
        }
        Ok((command, nesting))
    }

    fn failure(&self, step: &Step, said: &Transcript, errors: &[GitError]) -> RemoteError {
        let text = said.text();
        let said = if text.is_empty() { SILENCE.to_owned() } else { text };
        let asks_server = ["clone", "fetch", "ls-remote"].iter().any(|word| step.arguments[0] == *word);
        let trouble = match TransferFailure::new(errors, &said, asks_server) {
            TransferFailure::DiskFull { .. } => {
                TransferFailure::DiskFull { is_for_ci: self.makes == Some(Purpose::Ci) }
            }
            known => known,
        };
        RemoteError::Git { what: step.name(), trouble, said }
    }
}

const PAUSE: Duration = Duration::from_millis(20);

/// A git process that is ended, with those it started, when it is dropped.
struct GitProcess {
    child: Child,
    prompts: Prompts,
}

impl GitProcess {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        let _ = match self.prompts {
            Prompts::Never => kill_process_group(pid, signal),
            Prompts::OnTerminal => kill_process(pid, signal),
        };
    }
}

impl Drop for GitProcess {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        // On this signal, git ends the processes that it started.
        self.signal(Signal::TERM);
        let give_up = Instant::now() + GRACE;
        while Instant::now() < give_up && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(PAUSE);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Reads the text of a pipe on a thread, cut where a line ends or begins anew.
fn read_pieces(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = [0; 4096];
        let mut piece = Vec::new();
        let give = |piece: &[u8]| piece.is_empty() || send.send(String::from_utf8_lossy(piece).into_owned()).is_ok();
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            for byte in &buffer[..count] {
                match byte {
                    b'\r' | b'\n' if give(&piece) => piece.clear(),
                    b'\r' | b'\n' => return,
                    // A line without an end, from a hostile server.
                    _ if piece.len() >= 4096 => {}
                    _ => piece.push(*byte),
                }
            }
        }
        give(&piece);
    });
    receive
}

/// git's words, without its progress.
#[derive(Default)]
struct Transcript(Vec<String>);

const MOST_LINES: usize = 40;

impl Transcript {
    fn add(&mut self, piece: &str) {
        let piece = piece.trim();
        let counts = piece.contains("% (") || piece.ends_with(", done.") || piece.starts_with("remote: Total ");
        let known =
            ["Cloning into", "remote: Enumerating", "Updating files:"].iter().any(|start| piece.starts_with(start));
        if counts || known || piece.is_empty() || self.0.last().is_some_and(|last| last == piece) {
            return;
        }
        if self.0.len() == MOST_LINES {
            self.0.remove(0);
        }
        self.0.push(piece.to_owned());
    }

    fn text(&self) -> String {
        self.0.join("\n")
    }
}

pub(crate) const SILENCE: &str = "it said nothing";
