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

/// The variable by which programs find a database with SQL.
pub(crate) const URL_VARIABLE: &str = "DATABASE_URL";

pub(crate) trait Engine: Sync {
    fn name(&self) -> &'static str;

    fn url_variable(&self) -> &'static str {
        URL_VARIABLE
    }

    fn accounts(&self) -> &'static [&'static str];

    fn program(&self) -> &'static str;

    /// Returns whether the program is another one by another name, so that a link to it must not be resolved.
    fn is_told_by_its_name(&self) -> bool {
        false
    }

    /// Returns the directories beside those of PATH in which distributions have the program, the best first.
    fn usual_places(&self) -> Vec<PathBuf>;

    /// Parses the output of `--version` into major, minor, and all of it.
    fn version(&self, printed: &str) -> Option<Version>;

    /// Returns which versions are supported, in words, when `version` is not.
    fn unsupported(&self, version: &Version) -> Option<&'static str>;

    /// Returns the facts that shape a new data directory, in words: part of a template's key.
    fn recipe(&self) -> String;

    /// Returns the command that fills the empty directory `data`, if one is needed. `is_there` reports whether a program exists beside the
    /// server's.
    fn init(&self, program: &Path, data: &Path, is_there: &dyn Fn(&Path) -> bool) -> Result<Option<Vec<OsString>>>;

    /// Returns the server's command line. Writes the configuration that the server needs into `instance.settings`.
    fn arguments(&self, instance: &Instance) -> Result<Vec<OsString>>;

    /// Returns whether a server of this version, in its program's words, may be given a socket to tell that it is ready.
    fn may_notify(&self, _version: &str) -> bool {
        true
    }

    /// Returns what a data directory lacks, by the words in which its server refused Calve.
    fn lacking(&self, _said: &str) -> Option<UnusableData> {
        None
    }

    /// Fails unless a server answers queries. Waits no longer than `patience` for what it says.
    fn probe(&self, address: &Address, patience: Duration) -> std::result::Result<(), Refusal>;

    /// Makes a first connection to a server that answers, so that it reads its catalog. Failures are ignored.
    fn warm(&self, address: &Address, patience: Duration) {
        let _ = self.probe(address, patience);
    }

    /// Returns how many connections a server that is built with has had, but for those by which it was asked this before: `asked` times.
    /// `log`: what it has said.
    fn connections(&self, address: &Address, log: &[u8], asked: u64) -> Result<u64>;

    /// Runs as soon as it answers, until `cancel` ends that. Returns the changes in a data directory that was taken over.
    fn finish_start(&self, _instance: &Instance, _cancel: &CancelToken) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Returns what its databases have that never runs in a server of Calve's, in words.
    fn without_effect(&self, _server: &Address) -> Vec<String> {
        Vec::new()
    }

    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// Asks for it in words, where a signal would not tell that it failed. An error: the server goes on. `false`: it takes the signal.
    /// `data`: its directory.
    fn ask_to_end(&self, _: &Address, _purpose: Purpose, _data: &Path) -> Result<bool> {
        Ok(false)
    }

    /// Returns the room on the disk without which a server that ends by the signal may crash, or wait for some.
    fn bytes_to_end(&self) -> u64 {
        log::LITTLE
    }

    /// Returns whether the log tells of a recovery, as after a crash.
    fn log_tells_of_recovery(&self, log: &str) -> bool;

    /// Returns the contents of a data directory that a recovery empties, in words, if it may have any.
    fn lost_in_recovery(&self, _data: &Path) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns a number that changes with everything that is written: of the server at this address, or without one of a data directory
    /// whose server ended in order. `None` if it cannot be told.
    fn written(&self, _data: &Path, _server: Option<&Address>) -> Option<String> {
        None
    }

    /// Has a server write back what it holds in memory, so that one on a clone of its files recovers quickly. It goes on meanwhile.
    fn write_back(&self, _server: &Address) -> Result<()> {
        Ok(())
    }

    /// Returns whether a server of the version `server` takes data that one of `maker` has made. It tells early; [`Engine::examine`] decides.
    fn takes(&self, maker: &Version, server: &Version) -> bool {
        (maker.major, maker.minor) == (server.major, server.minor)
    }

    /// Returns whether a data directory can be used: whole, not in use as far as its files tell, stopped in order, and of this version.
    fn examine(&self, data: &Path, version: &Version) -> Result<()>;

    /// Takes away what would contact other machines. Says what that was.
    fn neutralise(&self, data: &Path) -> Result<Vec<String>>;

    /// Takes away what belongs to one run of a server.
    fn scrub(&self, data: &Path) -> Result<()>;

    /// Returns the bytes of memory that a server on this data directory may need once it is used, apart from the cache of files.
    fn memory_bytes(&self, data: &Path) -> u64;

    /// Returns the keys that a server may choose for its System V memory, by its data directory's inode number.
    fn memory_keys(&self, _inode: u64) -> Vec<i32> {
        Vec::new()
    }

    /// Returns the POSIX shared memory that a server notes at the beginning of its System V memory.
    fn noted_memory(&self, _head: &[u8]) -> Option<String> {
        None
    }

    /// Refuses option files in `home` and of the system that would lead the engine's own programs to another server.
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

/// The program of a server on some data, as it is recorded beside that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerProgram {
    pub engine: String,
    #[serde(rename = "program")]
    pub path: PathBuf,
    /// Its version, in its own words.
    pub version: String,
    /// The user that the server runs as.
    pub(crate) account: Account,
    /// It is known to tell when it is ready.
    pub(crate) notifies: bool,
}

#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nothing listens, or it is not ready.
    NotYet,
    /// It answers, but not as it should, in these words: it never will.
    Said(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To be written to, and killed.
    Serve,
    /// To be written to, and kept: no commit is lost, whatever ends it.
    Keep,
    /// To become a template: stopped in order.
    #[default]
    Build,
    /// The same, on a data directory that is taken over.
    TakeOver,
}

impl Purpose {
    /// Returns whether its data directory is that of a template, and the server that filled it has ended in order.
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
    /// For sockets: the server's own.
    pub(crate) sockets: PathBuf,
    /// For configuration: the server may only read it.
    pub(crate) settings: Directory,
    pub(crate) address: Address,
    pub(crate) purpose: Purpose,
}

impl Instance {
    /// Writes a file that the server reads. Returns its path.
    pub(super) fn configure(&self, name: &str, text: &str) -> Result<PathBuf> {
        private::write_shared(&self.settings, name, text, self.program.account)
    }
}

/// Returns `NAME=VALUE`: a word of a command line, or a variable.
pub(crate) fn setting(name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> OsString {
    [name.as_ref(), value.as_ref()].join(OsStr::new("="))
}

/// Parses the first two numbers in a text such as `postgres (PostgreSQL) 15.6` or `15.6`. The second is 0 if it is missing.
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
