//! Starts the bench's git programs, and measures them.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use calve_core::CancelToken;
use calve_core::internal::ShownPath;
use calve_git::remote::ENDLESS;

use super::upload_pack;
use crate::error::BenchError;
use crate::process::{self, ProcessResult};
use crate::remedy::Remedy;

/// Variables that git keeps from the user's environment. Any other could change the measurement.
const KEPT: &[&str] = &["PATH", "TMPDIR", "LD_LIBRARY_PATH", "GIT_EXEC_PATH"];

pub(super) const PROTOCOL: u8 = 2;

pub(super) struct GitOutput {
    pub(super) ended: ProcessResult,
    pub(super) stdout: Vec<u8>,
    pub(super) said: String,
}

/// Returns the end of a message, on one line, without control characters.
pub(super) fn brief(said: &str) -> String {
    const LONGEST: usize = 400;
    let plain: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain: Vec<char> = plain.chars().filter(|c| !c.is_control()).collect();
    plain[plain.len().saturating_sub(LONGEST)..].iter().collect()
}

/// Returns a pipe for a program's output, and a thread that reads it, so that the program never waits.
fn listen() -> io::Result<(PipeWriter, JoinHandle<Vec<u8>>)> {
    let (mut reader, writer) = io::pipe()?;
    let heard = thread::spawn(move || {
        let mut bytes = Vec::new();
        // After an error, the bytes read so far are the answer.
        let _ = reader.read_to_end(&mut bytes);
        bytes
    });
    Ok((writer, heard))
}

pub(super) struct GitPrograms<'a> {
    /// Has the bench's own configuration, and the stand-in for `git upload-pack`.
    home: PathBuf,
    cancel: &'a CancelToken,
}

impl<'a> GitPrograms<'a> {
    /// Writes the configuration of both sides to the existing directory `home`.
    pub(super) fn configure(home: PathBuf, cancel: &'a CancelToken) -> Result<Self, BenchError> {
        let stand_in = home.join(upload_pack::NAME);
        fs_err::os::unix::fs::symlink(std::env::current_exe()?, &stand_in)?;
        let escaped = upload_pack::COMMAND.replace('"', "\\\"");
        let text = format!(
            "[user]\n\tname = Calve\n\temail = calve@localhost\n\
             [gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n\
             [protocol]\n\tversion = {PROTOCOL}\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n\
             [remote \"origin\"]\n\tuploadpack = \"{escaped}\"\n\
             [uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n[safe]\n\tdirectory = *\n"
        );
        fs_err::write(home.join(".gitconfig"), text)?;
        Ok(Self { home, cancel })
    }

    pub(super) fn at(&self, directory: &Path) -> Command {
        let kept = KEPT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let mut command = Command::new("git");
        command.current_dir(directory).env_clear().envs(kept).stdin(Stdio::null());
        command.env("HOME", &self.home).env("XDG_CONFIG_HOME", &self.home);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command
    }

    /// Fails if git cannot be started or the bench is interrupted. git's own failures are in the result.
    pub(super) fn run(&self, command: &mut Command) -> Result<GitOutput, BenchError> {
        self.heard(command, |command| process::measure_command(command, self.cancel))
    }

    /// Runs git in the user's environment, for servers that only the user can reach. Stops endless chains of processes.
    pub(super) fn run_as_user(&self, directory: &Path, arguments: &[&OsStr]) -> Result<GitOutput, BenchError> {
        let events = self.home.join("events");
        let (mut command, mut nesting) = calve_git::Git::at(directory).fetching(&events)?;
        command.args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"]).args(arguments);
        command.env("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file").stdin(Stdio::null());
        let mut is_endless = false;
        let mut ran = self.heard(&mut command, |command| {
            process::run_command(command, None, self.cancel, |group, has_ended| {
                is_endless = nesting.guard(has_ended, &[group]).unwrap_or(false);
            })
        })?;
        fs_err::remove_file(&events)?;
        if is_endless {
            ran.said = ENDLESS.into();
        }
        Ok(ran)
    }

    fn heard(
        &self,
        command: &mut Command,
        measure: impl FnOnce(&mut Command) -> io::Result<ProcessResult>,
    ) -> Result<GitOutput, BenchError> {
        // Through pipes: on a full disk, a file would lose the message that says so.
        let ((to_out, out), (to_err, err)) = (listen()?, listen()?);
        command.stdout(to_out).stderr(to_err);
        let ended = measure(command);
        // Drops the command's ends of the pipes. Otherwise the readers would wait forever.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let [stdout, said] = [out, err].map(|reader| reader.join().unwrap_or_default());
        let ended = ended.map_err(|error| not_started(&error))?;
        self.cancel.check()?;
        Ok(GitOutput { ended, stdout, said: String::from_utf8_lossy(&said).into_owned() })
    }

    /// Returns git's output. A failure of git's is one of the bench.
    pub(super) fn output(&self, command: &mut Command, what: &str) -> Result<Vec<u8>, BenchError> {
        let ran = self.run(command)?;
        if ran.ended.status.success() {
            return Ok(ran.stdout);
        }
        let text = format!("{what}: {}", self.reason(&ran).0);
        Err(BenchError::failed(text, Remedy::ReadGitOutput))
    }

    /// Returns the reason of a failure, on one line, and true if the disk is full: git does not always say so.
    pub(super) fn reason(&self, ran: &GitOutput) -> (String, bool) {
        const HARDLY_ANY: u64 = 1 << 20;
        let disk_full = rustix::fs::statvfs(&self.home).is_ok_and(|stat| stat.f_bavail * stat.f_frsize < HARDLY_ANY);
        let said = brief(&ran.said);
        let mut text = ran.ended.in_words();
        if disk_full {
            text = format!("no space is left below `{}`: {text}", ShownPath(&self.home));
        }
        if !said.is_empty() {
            text = format!("{text}: {said}");
        }
        (text, disk_full)
    }
}

pub(super) fn not_started(error: &io::Error) -> BenchError {
    BenchError::failed(format!("git cannot be started: {error}"), Remedy::InstallGit)
}
