//! The parts of a database engine that Calve needs, and the values that they exchange.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use calve_core::CancelToken;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::engine::address::Address;
use crate::error::{Result, UnusableData};
use crate::files::account::Account;
use crate::files::directory::Directory;
use crate::files::log;
use crate::files::private;

pub(crate) const URL_VARIABLE: &str = "DATABASE_URL";

pub(crate) trait Engine: Sync {
    fn name(&self) -> &'static str;

    fn url_variable(&self) -> &'static str {
        URL_VARIABLE
    }

    fn accounts(&self) -> &'static [&'static str];

    fn program(&self) -> &'static str;

    /// Returns whether the program's behaviour depends on its name, so that a link to it must not be resolved.
    fn is_known_by_name(&self) -> bool {
        false
    }

    /// Returns the directories outside PATH in which distributions have the program, the best first.
    fn usual_places(&self) -> Vec<PathBuf>;

    /// Parses the output of `--version`.
    fn version(&self, printed: &str) -> Option<Version>;

    /// Returns the supported versions, in words, if `version` is not one of them.
    fn unsupported(&self, version: &Version) -> Option<&'static str>;

    /// Returns the facts that shape a new data directory, in words: part of a template's key.
    fn recipe(&self) -> String;

    /// Returns the command that fills the empty directory `data`, if any. `is_there` looks for its program.
    fn init(&self, program: &Path, data: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>>;

    /// Returns the server's command line. Writes its configuration into `instance.settings`.
    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>>;

    /// Returns whether a server of this version (as its program prints it) may get a socket to report readiness.
    fn may_notify(&self, _version: &str) -> bool {
        true
    }

    /// Derives the part that a data directory lacks from the words in which its server refused Calve.
    fn lacking(&self, _said: &str) -> Option<UnusableData> {
        None
    }

    /// Fails unless a server answers queries. Waits for its answer no longer than `patience`.
    fn probe(&self, address: &Address, patience: Duration) -> std::result::Result<(), Refusal>;

    /// Connects once to a server that answers, so that it reads its catalog. Ignores failures.
    fn warm(&self, address: &Address, patience: Duration) {
        let _ = self.probe(address, patience);
    }

    /// Counts the connections to a server under construction, except those of `asked` earlier calls. `log`: its output.
    fn connections(&self, address: &Address, log: &[u8], asked: u64) -> Result<u64>;

    /// Runs as soon as the server answers, until `cancel`. Returns the changes in an adopted data directory.
    fn finish_start(&self, _instance: &Instance, _cancel: &CancelToken) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Describes contents of the databases that never run under Calve.
    fn without_effect(&self, _server: &Address) -> Vec<String> {
        Vec::new()
    }

    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// Asks the server in its protocol to end, where a signal could not report a failure. After an error the server
    /// goes on. `false`: it takes the signal.
    fn ask_to_end(&self, _: &Address, _purpose: Purpose, _data: &Path) -> Result<bool> {
        Ok(false)
    }

    /// Returns the disk space that a server needs to end by the signal. With less it may crash, or wait for space.
    fn bytes_to_end(&self) -> u64 {
        log::LITTLE
    }

    fn log_tells_of_recovery(&self, log: &str) -> bool;

    /// Describes the contents of a data directory that a recovery empties, if it may have any.
    fn lost_in_recovery(&self, _data: &Path) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns a number that every write changes, of the server or of cleanly stopped data. `None`: unknown.
    fn written(&self, _data: &Path, _server: Option<&Address>) -> Option<String> {
        None
    }

    /// Returns whether [`Engine::written`] needs a count that begins anew with each server.
    fn counts(&self) -> bool {
        false
    }

    /// Begins the count. No client can connect yet.
    fn begin_count(&self, _data: &Path, _server: &Address) -> Result<()> {
        Ok(())
    }

    /// Notes, just before a server is asked to end, what [`Engine::written`] needs once it has ended.
    fn end_count(&self, _data: &Path, _server: &Address) {}

    /// Makes a server write back its memory while it runs, so that a server on a clone recovers quickly.
    fn write_back(&self, _server: &Address) -> Result<()> {
        Ok(())
    }

    /// Returns whether `server` takes data that `maker` made. An early answer: [`Engine::examine`] decides.
    fn takes(&self, maker: &Version, server: &Version) -> bool {
        (maker.major, maker.minor) == (server.major, server.minor)
    }

    /// Fails unless a data directory is whole, unused as its files show, shut down cleanly, and of this version.
    fn examine(&self, data: &Path, version: &Version) -> Result<()>;

    /// Removes everything that would contact other machines. Describes it.
    fn neutralise(&self, data: &Path) -> Result<Vec<String>>;

    /// Removes leftovers of a server's run.
    fn scrub(&self, data: &Path) -> Result<()>;

    /// Returns the memory that a server on this data may need in use, without the page cache.
    fn memory_bytes(&self, data: &Path) -> u64;

    /// Returns the keys that a server may choose for System V memory, by its data directory's inode number.
    fn memory_keys(&self, _inode: u64) -> Vec<i32> {
        Vec::new()
    }

    /// Returns the POSIX shared memory that the head of a server's System V memory names.
    fn noted_memory(&self, _head: &[u8]) -> Option<String> {
        None
    }

    /// Refuses option files, in `home` and of the system, that would lead the engine's own programs to another server.
    fn check_option_files(&self, _home: Option<&Path>) -> Result<()> {
        Ok(())
    }

    fn address(&self, directory: &Path, tcp: Option<u16>, password: Option<&str>) -> Address;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) text: String,
}

impl Version {
    /// Returns the third number: 6 in `8.4.6`.
    pub(crate) fn patch(&self) -> u32 {
        let start = format!("{}.{}.", self.major, self.minor);
        let rest = self.text.split_once(&start).map_or("", |(_, rest)| rest);
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// A server's program, as recorded beside the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerProgram {
    pub engine: String,
    #[serde(rename = "program")]
    pub path: PathBuf,
    /// As the program prints it.
    pub version: String,
    pub(crate) account: Account,
    /// It is known to report readiness.
    pub(crate) notifies: bool,
}

#[derive(Debug)]
pub(crate) enum Refusal {
    /// No server listens, or it is not ready.
    NotYet,
    /// It refuses, in these words, and always will.
    Said(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To be written to, then killed.
    Serve,
    /// To be written to, and kept: no commit is lost, however it ends.
    Keep,
    /// To become a template: shut down cleanly.
    #[default]
    Build,
    /// The same, on an adopted data directory.
    TakeOver,
}

impl Purpose {
    /// Returns whether its data is a template's, and was shut down cleanly by the server that filled it.
    pub(crate) fn is_on_a_template(self) -> bool {
        matches!(self, Self::Serve | Self::Keep)
    }
}

#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) program: ServerProgram,
    /// The data directory as the server sees it. Beside it is `tmp`, for temporary files.
    pub(crate) data: PathBuf,
    /// The data directory as this process sees it.
    pub(crate) data_here: PathBuf,
    /// The directory for configuration, which the server may only read.
    pub(crate) settings: Directory,
    pub(crate) address: Address,
    pub(crate) purpose: Purpose,
}

impl Instance {
    pub(super) fn configure(&self, name: &str, text: &str) -> Result<PathBuf> {
        private::write_shared(&self.settings, name, text, self.program.account)
    }
}

pub(crate) fn setting(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> OsString {
    [name.as_ref(), value.as_ref()].join(OsStr::new("="))
}

/// Parses the first two numbers of a text such as `postgres (PostgreSQL) 15.6` or `15`. The second defaults to 0.
pub(crate) fn numbers(text: &str) -> Option<(u32, u32)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[at..];
    let length = digits(rest);
    let minor = rest[length..].strip_prefix('.').map_or(0, |rest| rest[..digits(rest)].parse().unwrap_or(0));
    Some((rest[..length].parse().ok()?, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(numbers("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some((15, 18)));
        assert_eq!(numbers("16beta1"), Some((16, 0)));
        assert_eq!(numbers("none"), None);
    }
}
